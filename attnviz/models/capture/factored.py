"""A fused kernel by its factors: q and k as it got them and its log-sum-exp, in the place of weights.

On the CPU the flash kernel gives its log-sum-exp. Of others it is worked out from q and k when it is first read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor

from attnviz.models.capture.captured import check_error, to_batch_heads
from attnviz.models.capture.kernels import Asked
from attnviz.models.capture.masks import SymbolicMask, symbolic
from attnviz.models.protocols import LayersAndHeads
from attnviz.records.factors import CAUSAL, EVERYWHERE, MAX_SCORE, N_PROBES, Factors

MAX_MASKS = 4  # that are remembered: layers of a model share one or two


@dataclass(frozen=True, eq=False)
class FactoredRows:
    """What the weights of a call are worked out from, of each row of its batch."""

    factors: tuple[Factors, ...]
    fitting: tuple[Bool[np.ndarray, " query"] | None, ...]  # queries whose mask is that of the factors; None: all
    n_heads: int  # of the call, also those that are not kept

    def __len__(self) -> int:
        return len(self.factors)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """[batch, head, query, key] of the weights."""
        n_heads, n_queries, _ = self.factors[0].query.shape
        return len(self), n_heads, n_queries, self.factors[0].key.shape[1]

    @property
    def attended(self) -> Bool[np.ndarray, "batch key"]:
        """Which keys any query may attend to."""
        return np.stack([of.keys_mask for of in self.factors])

    def same(self, other: FactoredRows) -> bool:
        """Tell whether queries and keys are the same."""
        return self.shape == other.shape and all(
            np.array_equal(one.query, two.query) and np.array_equal(one.key, two.key)
            for one, two in zip(self.factors, other.factors, strict=True)
        )


class Factoring:
    """What is kept of a kernel's calls in the place of their weights."""

    def __init__(self, choice: LayersAndHeads) -> None:
        self._choice = choice
        self._masks: list[tuple[Tensor, list[SymbolicMask]]] = []  # kept alive, so that none comes in their place

    def __call__(
        self, asked: Asked, output: Tensor, log_sum_exp: Tensor | None, what: str
    ) -> tuple[FactoredRows, float]:
        """Return factors, and by how much some rows worked out from them miss the output. Raises InvalidRecord."""
        sides = (tensor.to(output.dtype) for tensor in (asked.query, asked.key, asked.value, output))
        query, key, value, output = map(to_batch_heads, sides)
        shape = (*output.shape[:-1], key.shape[-2])
        heads = list(self._choice.heads_of(shape[1], what))
        masks = self._symbolic(asked, shape, what)
        scale = 1 / math.sqrt(query.shape[-1]) if asked.scale is None else asked.scale
        rows, error = [], 0.0
        for row, of_row in enumerate(masks):
            mask = of_row if of_row.bias is None else of_row._replace(bias=of_row.bias[heads])
            queries, keys, values = (each.expand(shape[0], *each.shape[1:])[row] for each in (query, key, value))
            queries, keys = queries.expand(shape[1], -1, -1)[heads].float(), _group_keys(keys, heads, shape[1])
            sums = None if log_sum_exp is None else log_sum_exp[row, heads].float()
            if sums is not None and mask.fitting is not None:  # a row that attends to nothing has none
                sums = sums.nan_to_num(0.0, 0.0, 0.0).masked_fill(sums.abs() > MAX_SCORE, 0.0)
            parts = (queries, keys, sums, mask.bias, mask.attendable_keys)
            q, k, *others = (None if of is None else of.detach().contiguous().cpu().numpy() for of in parts)
            assert q is not None
            assert k is not None
            rows.append(Factors(q, k, others[0], float(scale), others[1], mask.window, others[2]))
            values = values[[head * len(values) // shape[1] for head in heads]]
            error = max(error, _measure_error(rows[-1], mask, values, output[row, heads]))
        fitting = tuple(None if mask.fitting is None else mask.fitting.numpy() for mask in masks)
        return FactoredRows(tuple(rows), fitting, shape[1]), check_error(error, output.dtype, what)

    def _symbolic(self, asked: Asked, shape: Sequence[int], what: str) -> list[SymbolicMask]:
        """Read the mask of each row. Raises InvalidRecord for what is no window, padding or bias by distance."""
        n_batch, n_heads, *_ = shape
        given = asked.attn_mask
        if given is None:
            return [SymbolicMask(CAUSAL if asked.is_causal and shape[2] > 1 else EVERYWHERE)] * n_batch
        for known, masks in self._masks:
            if known.shape == given.shape and torch.equal(known, given):
                return masks
        mask = given.expand(n_batch, n_heads, *shape[2:])
        masks = [symbolic(of_row, what) for of_row in mask]
        self._masks = [*self._masks[1 - MAX_MASKS :], (given, masks)]
        return masks


def _group_keys(keys: Float[Tensor, "group key d"], heads: list[int], n_heads: int) -> Float32[Tensor, "shared key d"]:
    """Return the keys of some heads, once where neighbours share them, also where a model repeated them."""
    groups = [head * len(keys) // n_heads for head in heads]
    starts = [
        place
        for place, group in enumerate(groups)
        if not place or (group != groups[place - 1] and not torch.equal(keys[group], keys[groups[place - 1]]))
    ]
    are_even = starts == list(range(0, len(groups), -(-len(groups) // len(starts))))
    return keys[[groups[place] for place in starts] if are_even else groups].float()


def _measure_error(
    factors: Factors,
    mask: SymbolicMask,
    values: Float[Tensor, "head key d_value"],
    output: Float[Tensor, "head query d_value"],
) -> float:
    """Measure the difference of some rows' weights · value from the output, relative to the largest value.

    Raises InvalidRecord where a row is no distribution.
    """
    fitting = np.arange(output.shape[1]) if mask.fitting is None else np.flatnonzero(mask.fitting.numpy())
    probes = fitting[np.unique(np.linspace(0, len(fitting) - 1, N_PROBES).astype(int))]
    worst = 0.0
    for head, of_head in enumerate(values.float().cpu().numpy()):
        missed = factors.rows(head, probes) @ of_head - output[head, probes].float().cpu().numpy()
        worst = max(worst, float(np.abs(missed).max()))
    return worst / max(float(values.abs().amax()), float(torch.finfo(torch.float32).tiny))
