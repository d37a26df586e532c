"""A fused kernel by its factors: q and k as it got them and its log-sum-exp, in the place of weights.

On the CPU the flash kernel gives its log-sum-exp. Of others it is worked out from q and k when it is first read. What a
mask says is kept without a matrix, too: a window around each query, keys that nobody may attend to, a bias by distance.
It is compared with the mask, row by row.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor

from attnviz.errors import InvalidRecord
from attnviz.models.capture.captured import Asked, check_error, find_allowed, to_batch_heads
from attnviz.models.protocols import LayersAndHeads
from attnviz.records.factors import CAUSAL, EVERYWHERE, MAX_SCORE, N_PROBES, Factors, Window

MAX_MASKS = 4  # that are remembered: layers of a model share one or two
CELLS_AT_ONCE = 2**22  # of a mask
MATRIX = "Only windows, padding and biases by distance are recorded by their factors: leave out factored."


class SymbolicMask(NamedTuple):
    """A mask of one text, read."""

    window: Window
    attendable_keys: Bool[Tensor, " key"] | None = None  # None: every key
    fitting: Bool[Tensor, " query"] | None = None  # the rows of the mask that are just that; None: all. Others: padding
    bias: Float32[Tensor, "head distance"] | None = None  # as `Factors` has it; None: nothing is added to scores


@dataclass(frozen=True, eq=False)
class FactoredRows:
    """What the weights of a call are worked out from, of each row of its batch."""

    factors: tuple[Factors, ...]
    fitting: tuple[Bool[np.ndarray, " query"] | None, ...]  # queries whose mask is that of the factors; None: all

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Return the shape of the weights, [batch, head, query, key]."""
        n_heads, n_queries, _ = self.factors[0].query.shape
        return len(self.factors), n_heads, n_queries, self.factors[0].key.shape[1]

    @property
    def attended(self) -> Bool[np.ndarray, "batch key"]:
        """Find the keys that any query may attend to."""
        return np.stack([of.keys_mask for of in self.factors])


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
        return FactoredRows(tuple(rows), fitting), check_error(error, output.dtype, what)

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


# --- masks ------------------------------------------------------------------------------------------------------------


def symbolic(mask: Tensor, what: str) -> SymbolicMask:
    """Read a mask [head, query, key], bool or additive. Raises InvalidRecord where it is anything else."""
    alike = mask.stride(0) == 0 or len(mask) == 1
    stretches = (rows for of_head in (mask[:1] if alike else mask) for rows in _stretches(of_head))
    if mask.dtype != torch.bool and any(rows.masked_fill(~_passing(rows), 0).any() for rows in stretches):
        return _with_bias(mask, what)
    if not alike and any(not torch.equal(mask[0], other) for other in mask[1:]):
        raise InvalidRecord(f"{what} masks heads differently", hint=MATRIX)
    return _read_mask(mask[0], what)


def _read_mask(mask: Tensor, what: str) -> SymbolicMask:
    """Read a mask [query, key] that adds nothing."""
    if mask.stride(0) == 0 or len(mask) == 1:
        return SymbolicMask(EVERYWHERE, _unless_all(_passing(mask[:1])[0]))
    (n_queries, n_keys), found = mask.shape, []
    keys = torch.zeros(n_keys, dtype=torch.bool)
    for passing in map(_passing, _stretches(mask)):
        keys |= passing.any(dim=0)
        bits = passing.to(torch.uint8)
        found.append(torch.stack([bits.argmax(dim=1), n_keys - 1 - bits.flip(1).argmax(dim=1), passing.sum(dim=1)]))
    first, last, counts = torch.cat(found, dim=1)
    sees, is_square = counts > 0, n_queries == n_keys
    real = keys & sees if is_square else sees  # of padding anything may be said: it is left out
    if not bool(real.any()):
        raise InvalidRecord(f"{what} lets nobody attend to anything", hint=MATRIX)
    queries, places = torch.arange(n_queries), keys.nonzero().flatten()
    window = (
        _limit((queries - first)[real], int((queries[real] - places[0]).max())),
        _limit((last - queries)[real], int((places[-1] - queries[real]).max())),
    )
    back, forward = (sum(mask.shape) if reach is None else reach for reach in window)
    begins, ends = queries - back, queries + forward
    # A row is just a window if it has as many keys as are in that, and none outside.
    before = torch.nn.functional.pad(keys.cumsum(dim=0), (1, 0))
    n_within = before[(ends + 1).clamp(0, n_keys)] - before[begins.clamp(0, n_keys)]
    fitting = sees & (first >= begins) & (last <= ends) & (counts == n_within)  # who sees nothing has no distribution
    wrong = ~fitting & (keys if is_square else True)
    if bool(wrong.any()):
        query = int(wrong.nonzero()[0])
        raise InvalidRecord(f"{what} has a mask that is not a window: query {query} sees other keys", hint=MATRIX)
    return SymbolicMask(window, _unless_all(keys), None if bool(fitting.all()) else fitting)


def _with_bias(mask: Float[Tensor, "head query key"], what: str) -> SymbolicMask:
    """Read a mask that adds a number for each distance to what it lets through, as in T5."""
    mask = mask.cpu()
    n_heads, n_queries, n_keys = mask.shape
    passing = _passing(mask)
    found = symbolic(passing, what)
    there = passing[0] if found.fitting is None else passing[0] & found.fitting[:, None]
    distances = (torch.arange(n_keys) + torch.arange(n_queries - 1, -1, -1)[:, None])[there]
    line = torch.zeros(n_heads, n_queries + n_keys - 1, dtype=mask.dtype)  # from the last query to the first key
    line[:, distances] = mask[:, there]
    if not torch.equal(line[:, distances], mask[:, there]):
        raise InvalidRecord(f"{what} adds a bias to its scores that is none of distances", hint=MATRIX)
    first, last, farthest = int(distances.min()), int(distances.max()), max(n_queries, n_keys) - 1
    missing = farthest + 1 - n_queries + first, farthest + 1 - n_keys + line.shape[1] - 1 - last
    line = torch.nn.functional.pad(line[None, :, first : last + 1], missing, mode="replicate")[0]
    # As far from the middle as it changes: all that lies farther has the number of the farthest.
    middle = line.shape[1] // 2
    changes = (line.diff(dim=1) != 0).any(dim=0).nonzero().flatten().tolist()
    farthest = max((max(middle - place, place + 1 - middle) for place in changes), default=0)
    return found._replace(bias=line[:, middle - farthest : middle + farthest + 1].float())


def _limit(reach: Int[Tensor, " query"], farthest: int) -> int | None:
    """Return how far queries see; None where that is as far as there are keys."""
    seen = max(0, int(reach.max()))
    return None if seen >= farthest else seen


def _unless_all(keys: Bool[Tensor, " key"]) -> Bool[Tensor, " key"] | None:
    return None if bool(keys.all()) else keys.cpu()


def _passing(rows: Tensor) -> Bool[Tensor, "*head query key"]:
    """Tell which keys some rows of a mask let through."""
    rows = rows.cpu()
    return rows if rows.dtype == torch.bool else find_allowed(rows)


def _stretches(mask: Tensor) -> Iterator[Tensor]:
    """Yield some rows of a mask [query, key] at a time."""
    step = max(1, CELLS_AT_ONCE // mask.shape[1])
    for start in range(0, 1 if mask.stride(0) == 0 else len(mask), step):
        yield mask[start : start + step].cpu()
