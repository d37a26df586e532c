"""Attention received: the mean weight on each token over queries, heads and layers. What users take for an answer."""

from __future__ import annotations

import torch

from attnviz.models.attribution.attention_gradient import traced_pass
from attnviz.models.attribution.scores import MethodScores
from attnviz.models.attribution.subject import Subject


def attention(subject: Subject) -> MethodScores:
    """Shares that sum to 1 where no layer has a sink."""
    traced, _ = traced_pass(subject)
    received = torch.stack([each.weights.double().mean(dim=(0, 1, 2)) for each in traced.attentions])
    return MethodScores(received.mean(dim=0).cpu().numpy(), 1, signed=False)
