"""Integrated gradients from words of zeros (Sundararajan et al. 2017, arXiv:1703.01365), as captum computes them."""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

from attnviz.errors import InvalidOption
from attnviz.models.attribution.inputs import WordInputs
from attnviz.models.attribution.scores import BACKWARD, MethodScores
from attnviz.models.attribution.subject import Subject

N_STEPS = 32


def integrated_gradients(subject: Subject) -> MethodScores:
    """Of the model; n-grams beside it read no word vectors. Raises InvalidOption where captum is not installed."""
    if find_spec("captum") is None:
        raise InvalidOption(
            "--method integrated-gradients needs captum", hint="Install it with: pip install 'attnviz[attribution]'"
        )
    from captum.attr import IntegratedGradients

    words = subject.answering.words
    before = WordInputs(words)
    subject.run(before)
    vectors = before.vectors.detach()

    def logit(changed: Tensor) -> Tensor:
        return subject.run(WordInputs(words, lambda _: changed), subject.batch.expand(len(changed), -1))

    with torch.enable_grad():
        found = IntegratedGradients(logit).attribute(
            vectors, n_steps=N_STEPS, method="gausslegendre", internal_batch_size=8
        )
    return MethodScores(found.double().sum(dim=-1)[0].cpu().numpy(), 1 + N_STEPS * (1 + BACKWARD))
