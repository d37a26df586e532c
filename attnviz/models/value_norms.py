"""‖v_j W_O‖ of each layer, head and key: times a weight, how much of the output it moves. Knows torch and no model.

Kobayashi et al. 2020 (arXiv:2004.10102, equation 5). It is separable: one number for each key, not for each pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn

AT_ONCE = 512  # keys
Norms = Float32[np.ndarray, "head key"]


def value_norms(value: Float[Tensor, "head key d_value"], projection: Float[Tensor, "d_model head d_value"]) -> Norms:
    """Of each head and key, the length of its value as the output projection has it."""
    with torch.no_grad():
        by_head = projection.permute(1, 2, 0)  # [head, d_value, d_model]
        found = [torch.linalg.vector_norm(keys @ by_head, dim=-1) for keys in torch.split(value, AT_ONCE, dim=1)]
        return np.asarray(torch.cat(found, dim=1).float().cpu().numpy())


@contextmanager
def own_norms(attentions: Sequence[nn.Module], n_heads: int) -> Iterator[list[Norms]]:
    """Of modules of ours, filled in while they work; () for such as have no values of their own."""
    found: list[Norms] = []
    with ExitStack() as stack:
        for attention in attentions:
            value, output = (getattr(attention, name, None) for name in ("value", "output"))
            if isinstance(value, nn.Linear) and isinstance(output, nn.Linear):
                projection = output.weight.reshape(len(output.weight), n_heads, -1)
                stack.callback(value.register_forward_hook(partial(_note_norms, found, projection)).remove)
        yield found


def _note_norms(
    found: list[Norms],
    projection: Float[Tensor, "d_model head d_head"],
    _: nn.Module,
    __: object,
    states: Float[Tensor, "*batch token d_model"],
) -> None:
    heads = states.reshape(-1, *projection.shape[1:]).transpose(0, 1)
    found.append(value_norms(heads, projection))
