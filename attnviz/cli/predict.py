"""`attnviz predict`."""

from __future__ import annotations

from attnviz.cli import show_predictions
from attnviz.specs.predict import PredictSpec


def predict(spec: PredictSpec) -> None:
    """Say of each text whether it is positive or negative, with a calibrated probability; given labels, how often that
    is right.

    Example: attnviz predict --text "not a good film, but the acting saves it"
    """
    from attnviz.workflows.predict import predict as classify

    show_predictions.predicted(classify(spec), spec)
