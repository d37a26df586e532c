"""The weights of attention pooling, one a word: the attention that text classifiers without a transformer have."""

from __future__ import annotations

import numpy as np
import torch

from attnviz.errors import InvalidModel
from attnviz.models.attribution.subject import MethodScores, Subject
from attnviz.models.capture.call import Call
from attnviz.models.capture.tap import capture
from attnviz.models.device import enough_memory


def pooling(subject: Subject) -> MethodScores:
    """The share of each token in the states that the answer is taken from (Yang et al. 2016, doi:10.18653/v1/N16-1174).

    The mean over heads of the last pooling over all tokens of the text. Raises InvalidModel where there is none.
    """
    calls: list[Call] = []
    with torch.inference_mode(), enough_memory(), capture(calls.append):
        subject.answering.logits(subject.batch)
    n_tokens = len(subject.ids)
    pooled = [
        call.weights for call in calls if call.is_pooled and call.shape[0::2] == (1, 1) and call.shape[3] == n_tokens
    ]
    if not pooled:
        raise InvalidModel(
            f"{subject.provenance.model} does not pool the {n_tokens} tokens of the text by attention",
            hint="Choose --method attention, or train a model that does: attnviz train --pool attention.",
        )
    return MethodScores(pooled[-1][0, :, 0].mean(axis=0).astype(np.float64), 1, signed=False)
