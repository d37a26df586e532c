"""Attention × its gradient, the positive part, through all layers (Chefer et al. 2021, arXiv:2103.15679, eq. 5 and 6).

R ← R + mean over heads of (A ∘ ∂L/∂A)⁺ · R, layer after layer. Read off at the tokens that the answer was taken from,
which are those whose last attention has a gradient: [CLS], the last token, or all of them where a model takes the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from attnviz.errors import InvalidModel
from attnviz.models.attribution.scores import BACKWARD, MethodScores
from attnviz.models.attribution.subject import Subject
from attnviz.models.attribution.traced import TracedPass

NONE = "State-space models such as Mamba have no attention, and some kernels cannot be seen."


def attention_gradient(subject: Subject) -> MethodScores:
    """What each token gives to the answer by way of attention, and by what it was before."""
    traced, logit = traced_pass(subject)
    mixed = [each.mixed for each in traced.attentions]
    of_mixed: Sequence[Tensor | None] = torch.autograd.grad(logit[0], mixed, allow_unused=True)
    total = torch.eye(len(subject.ids), dtype=torch.float64, device=logit.device)
    for attention, gradient in zip(traced.attentions, of_mixed, strict=True):
        if gradient is None:
            continue
        of_weights = attention.weights * attention.weight_gradient(gradient)
        total = total + of_weights.clamp(min=0).mean(dim=(0, 1)).double() @ total
    last = next(gradient for gradient in reversed(of_mixed) if gradient is not None)
    read_off = (last.abs().amax(dim=-1) > 0).flatten(0, -2).any(dim=0)
    if not read_off.any():  # the answer does not hang on attention at all
        read_off = torch.ones_like(read_off)
    scores = (total - torch.eye(len(total), dtype=total.dtype, device=total.device))[read_off].mean(dim=0)
    return MethodScores(np.asarray(scores.cpu().numpy()), 1 + BACKWARD, signed=False)


def traced_pass(subject: Subject) -> tuple[TracedPass, Tensor]:
    """A pass with its attentions. Raises InvalidModel where it has none, or such as are not over the tokens."""
    traced, n_tokens = TracedPass(subject.answering.words), len(subject.ids)
    logit = subject.run(traced)
    if not traced.attentions:
        raise InvalidModel(f"no attention was seen in {subject.provenance.model}", hint=NONE)
    for each in traced.attentions:
        if tuple(each.weights.shape[2:]) != (n_tokens, n_tokens) or len(each.weights) != 1:
            raise InvalidModel(
                f"{subject.provenance.model} attends over {tuple(each.weights.shape[2:])} places, the text has "
                f"{n_tokens} tokens",
                hint="Choose --method relevance or leave-one-out.",
            )
    return traced, logit
