"""A fused kernel by its factors: q and k as it got them and its log-sum-exp, in the place of weights.

On the CPU the flash kernel gives its log-sum-exp. Of others it is worked out from q and k when it is first read. What a
mask says is kept without a matrix, too: a window around each query, keys that nobody may attend to, a bias by distance.
It is compared with the mask, row by row.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor

from attnviz.errors import InvalidRecord
from attnviz.models.capture.captured import Asked, check_error, find_allowed, to_batch_heads
from attnviz.models.capture.ids import collapse
from attnviz.models.protocols import LayersAndHeads
from attnviz.records.factors import CAUSAL, EVERYWHERE, MAX_SCORE, N_PROBES, Factors, Window

MAX_MASKS = 4  # that are remembered: layers of a model share one or two
CELLS_AT_ONCE = 2**22  # of a mask
MATRIX = "Only windows, padding and biases by distance are recorded by their factors: leave out factored."


class SymbolicMask(NamedTuple):
    """A mask of one text, read."""

    window: Window
    fitting: Bool[Tensor, " query"]  # the rows of the mask that are just that; others are of padding
    attendable_keys: Bool[Tensor, " key"] | None = None  # None: every key
    bias: Float32[Tensor, "head distance"] | None = None  # as `Factors` has it; None: nothing is added to scores


@dataclass(frozen=True, eq=False)
class FactoredRows:
    """What the weights of a call are worked out from, of each row of its batch."""

    factors: tuple[Factors, ...]
    fitting: tuple[Bool[np.ndarray, " query"], ...]  # queries whose mask is that of the factors

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Return the shape of the weights, [batch, head, query, key]."""
        n_heads, n_queries, _ = self.factors[0].query.shape
        return len(self.factors), n_heads, n_queries, self.factors[0].key.shape[1]


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
            if sums is not None and not bool(mask.fitting.all()):  # a row that attends to nothing has none
                sums = sums.nan_to_num(0.0, 0.0, 0.0).masked_fill(sums.abs() > MAX_SCORE, 0.0)
            parts = (queries, keys, sums, mask.bias, mask.attendable_keys)
            given: list[Any] = [None if of is None else of.detach().contiguous().cpu().numpy() for of in parts]
            q, k, logs, bias, seen = given
            rows.append(Factors(q, k, logs, float(scale), bias, mask.window, seen))
            values = values[[head * len(values) // shape[1] for head in heads]]
            error = float(np.maximum(error, _measure_error(rows[-1], mask, values, output[row, heads])))
        found = FactoredRows(tuple(rows), tuple(mask.fitting.numpy() for mask in masks))
        return found, check_error(error, output.dtype, what)

    def _symbolic(self, asked: Asked, shape: Sequence[int], what: str) -> list[SymbolicMask]:
        """Read the mask of each row. Raises InvalidRecord for what is no window, padding or bias by distance."""
        n_batch, n_heads, *_ = shape
        given = asked.attn_mask
        if given is None:
            window = CAUSAL if asked.is_causal and shape[2] > 1 else EVERYWHERE
            return [SymbolicMask(window, torch.ones(shape[2], dtype=torch.bool))] * n_batch
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
    apart, n_sharing = torch.unique_consecutive(keys[groups], dim=0, return_counts=True)
    return (apart if len(n_sharing.unique()) == 1 else keys[groups]).float()


def _measure_error(
    factors: Factors,
    mask: SymbolicMask,
    values: Float[Tensor, "head key d_value"],
    output: Float[Tensor, "head query d_value"],
) -> float:
    """Measure the difference of some rows' weights · value from the output, relative to the largest value.

    Raises InvalidRecord where a row is no distribution.
    """
    fitting = np.flatnonzero(mask.fitting.numpy())
    probes = fitting[np.unique(np.linspace(0, len(fitting) - 1, N_PROBES).astype(int))]
    worst = 0.0
    for head, of_head in enumerate(values.float().cpu().numpy()):
        missed = factors.rows(head, probes) @ of_head - output[head, probes].float().cpu().numpy()
        worst = float(np.maximum(worst, np.abs(missed).max()))  # keeps NaN
    return worst / max(float(values.abs().amax()), float(torch.finfo(torch.float32).tiny))


# --- masks ------------------------------------------------------------------------------------------------------------


def symbolic(mask: Tensor, what: str) -> SymbolicMask:
    """Read a mask [head, query, key], bool or additive. Raises InvalidRecord where it is anything else."""
    (_, n_queries, n_keys), few = mask.shape, collapse(mask).cpu()
    passing = few
    if few.dtype != torch.bool:
        passing = _read_rows(find_allowed, few.flatten(0, 1)).view(few.shape)
    if not all(torch.equal(passing[0], other) for other in passing[1:]):
        raise InvalidRecord(f"{what} masks heads differently", hint=MATRIX)
    if passing.shape[1] == 1:
        everybody, keys = torch.ones(n_queries, dtype=torch.bool), passing[0, 0].expand(n_keys)
        found = SymbolicMask(EVERYWHERE, everybody, None if bool(passing.all()) else keys)
    else:
        found = _read_window(passing[0].expand(n_queries, n_keys), what)
    if few.dtype == torch.bool or not bool((passing & (few != 0)).any()):
        return found
    return found._replace(bias=_read_bias(mask.cpu(), passing[0].expand(n_queries, n_keys), found, what))


def _read_rows(read: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Read tensors some rows at a time, so that what is worked out on the way takes little memory."""
    step = max(1, CELLS_AT_ONCE // tensors[0].shape[1])
    return torch.cat([read(*rows) for rows in zip(*(torch.split(each, step) for each in tensors), strict=True)])


def _read_window(passing: Bool[Tensor, "query key"], what: str) -> SymbolicMask:
    """Read which keys queries see."""
    n_queries, n_keys = passing.shape
    keys, sees, queries = passing.any(dim=0), passing.any(dim=1), torch.arange(n_queries)
    real = keys & sees if n_queries == n_keys else sees  # of padding anything may be said: it is left out
    if not bool(real.any()):
        raise InvalidRecord(f"{what} lets nobody attend to anything", hint=MATRIX)
    bits, places = passing.view(torch.uint8), keys.nonzero().flatten()
    first, last = bits.argmax(dim=1), n_keys - 1 - _read_rows(lambda rows: rows.flip(1).argmax(dim=1), bits)
    # How far queries see before and behind them, and how far there are keys: where that is as far, there is no limit.
    reaches = torch.stack([queries - first, last - queries, queries - places[0], places[-1] - queries])
    back, forward, *farthest = reaches[:, real].amax(dim=1).clamp(min=0).tolist()
    window = None if back >= farthest[0] else back, None if forward >= farthest[1] else forward
    back, forward = (n_queries + n_keys if reach is None else reach for reach in window)

    def fits(rows: Tensor, query: Tensor) -> Tensor:
        distances = torch.arange(n_keys) - query
        return (rows == (keys & (distances >= -back) & (distances <= forward))).all(dim=1)

    fitting = sees & _read_rows(fits, passing, queries[:, None])  # who sees nothing has no distribution
    wrong = ~fitting & keys if n_queries == n_keys else ~fitting
    if bool(wrong.any()):
        query = int(wrong.nonzero()[0])
        raise InvalidRecord(f"{what} has a mask that is not a window: query {query} sees other keys", hint=MATRIX)
    return SymbolicMask(window, fitting, None if bool(keys.all()) else keys)


def _read_bias(
    mask: Float[Tensor, "head query key"], passing: Bool[Tensor, "query key"], found: SymbolicMask, what: str
) -> Float32[Tensor, "head distance"]:
    """Read what a mask adds for each distance to what it lets through, as in T5."""
    n_heads, n_queries, n_keys = mask.shape
    there = passing & found.fitting[:, None]
    middle = max(n_queries, n_keys) - 1
    places = (torch.arange(n_keys) - torch.arange(n_queries)[:, None] + middle)[there]
    line = torch.zeros(n_heads, 2 * middle + 1, dtype=mask.dtype)
    line[:, places] = mask[:, there]
    if not torch.equal(line[:, places], mask[:, there]):
        raise InvalidRecord(f"{what} adds a bias to its scores that is none of distances", hint=MATRIX)
    # As far from the middle as it changes: all that lies farther has the number of the farthest that is there.
    line = line[:, torch.arange(line.shape[1]).clamp(places.amin(), places.amax())]
    changes = line.diff(dim=1).any(dim=0).nonzero().flatten().tolist()
    farthest = max((max(middle - place, place + 1 - middle) for place in changes), default=0)
    return line[:, middle - farthest : middle + farthest + 1].float()
