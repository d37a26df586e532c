"""`attnviz predict`."""

from __future__ import annotations

from attnviz.cli import show_predictions
from attnviz.cli.options import MODEL_OF_OURS, takes
from attnviz.specs import PredictSpec


@takes(PredictSpec, model=MODEL_OF_OURS)
def predict(spec: PredictSpec) -> None:
    """Say of each text whether it is positive or negative, with a calibrated probability; given labels, how often that
    is right.

    Example: attnviz predict --text "not a good film, but the acting saves it"
    """
    from attnviz.workflows.predict import predict as classify

    show_predictions.predicted(classify(spec), spec)
