"""Gradient × input, nothing held (Simonyan et al. 2014, arXiv:1312.6034; Shrikumar et al. 2016, arXiv:1605.01713).

Its size is the gradient with respect to a token's presence that Jain & Wallace (2019, arXiv:1902.10186) hold attention
against. Layer norm cancels nearly all of its sum.
"""

from __future__ import annotations

import torch

from attnviz.models.attribution.inputs import WordInputs
from attnviz.models.attribution.scores import BACKWARD, MethodScores
from attnviz.models.attribution.subject import Subject


def gradient(subject: Subject) -> MethodScores:
    """Of the model; n-grams beside it have no gradient with respect to word vectors."""
    watching = WordInputs(subject.answering.words)
    logit = subject.run(watching)
    (found,) = torch.autograd.grad(logit[0], watching.vectors)
    scores = (found * watching.vectors.detach()).double().sum(dim=-1)[0].cpu().numpy()
    return MethodScores(scores, 1 + BACKWARD)
