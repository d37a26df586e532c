"""From logits to what they say of a text. Knows torch and no model."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64
from torch import Tensor

from attnviz.errors import InvalidModel
from attnviz.records.answers import AnswerKind


def read_logits(logits: Float[Tensor, "text answer"], kind: AnswerKind) -> Float64[np.ndarray, "text answer"]:
    """Probabilities that sum to 1, or one for each label by itself, or the numbers as they are."""
    logits = logits.detach().cpu().double()  # mps has no float64
    found = logits.softmax(dim=-1) if kind == "label" else logits.sigmoid() if kind == "labels" else logits
    return np.asarray(found.numpy())


def check_finite(found: Float[np.ndarray, "text answer"]) -> None:
    """Raise InvalidModel for answers that are not numbers."""
    if not np.isfinite(found).all():
        raise InvalidModel("the model's answers are not numbers", hint="Its weights are damaged: copy them again.")
