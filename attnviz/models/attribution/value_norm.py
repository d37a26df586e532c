"""Attention × the length of what it moves, ‖A_ij v_j W_O‖ (Kobayashi et al. 2020, arXiv:2004.10102).

A token that gets much weight and has a short value, such as a sink, moves little. Summed over queries, heads, layers.
"""

from __future__ import annotations

import torch

from attnviz.errors import InvalidModel
from attnviz.models.attribution.attention_gradient import traced_pass
from attnviz.models.attribution.scores import MethodScores
from attnviz.models.attribution.subject import Subject


def value_norm(subject: Subject) -> MethodScores:
    """How much of all that is moved comes from each token. Raises InvalidModel where no output projection is seen."""
    traced, _ = traced_pass(subject)
    total = torch.zeros(len(subject.ids), dtype=torch.float64, device=subject.answering.device)
    for attention in traced.attentions:
        norms = attention.value_norms()
        if norms is None:
            raise InvalidModel(
                f"no linear layer reads the attention of {subject.provenance.model} head by head",
                hint="Choose --method attention.",
            )
        total += (attention.weights.sum(dim=2) * norms).double().sum(dim=(0, 1))
    return MethodScores((total / total.sum().clamp(min=torch.finfo(total.dtype).tiny)).cpu().numpy(), 1, signed=False)
