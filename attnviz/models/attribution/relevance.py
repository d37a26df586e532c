"""Relevance: gradient × input of a pass in which norms, weights and gates are held.

Ali et al. 2022 (arXiv:2202.07304); AttnLRP, Achtibat et al. 2024 (arXiv:2402.05602). One pass forward and one back, and
the scores add up to the logit, with what biases and positions gave.
"""

from __future__ import annotations

import torch

from attnviz.models.attribution.held import HeldPass
from attnviz.models.attribution.scores import BACKWARD, MethodScores
from attnviz.models.attribution.subject import Subject

CONSTANTS = "biases and positions"


def relevance(subject: Subject) -> MethodScores:
    """The share of each token in the logit."""
    part = subject.answering
    held = HeldPass(part.words, part.module)
    with held.hooks():
        logit = subject.run(held)
        (gradient,) = torch.autograd.grad(logit[0], held.vectors)
    own = (gradient * held.vectors.detach()).double().sum(dim=-1)[0].cpu().numpy()
    beside, constant = subject.beside()
    return MethodScores(
        scores=own + beside,
        n_passes=1 + BACKWARD,
        total=float(logit.detach()[0]) + float(beside.sum()) + constant,
        others=((CONSTANTS, held.constants + constant),),
        parts=((part.name, own), (part.name_beside, beside)) if part.name_beside else (),
        not_held=tuple(held.not_held),
    )
