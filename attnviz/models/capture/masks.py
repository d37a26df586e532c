"""What a mask says, without a matrix: a window around each query, keys that nobody may attend to, a bias by distance.

It is compared with the mask, row by row. Knows tensors, and nothing of kernels.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor

from attnviz.errors import InvalidRecord
from attnviz.models.capture.captured import find_allowed
from attnviz.records.factors import EVERYWHERE, Window

CELLS_AT_ONCE = 2**22  # of a mask
MATRIX = "Only windows, padding and biases by distance are recorded by their factors: leave out factored."


class SymbolicMask(NamedTuple):
    """A mask of one text, read."""

    window: Window
    attendable_keys: Bool[Tensor, " key"] | None = None  # None: every key
    fitting: Bool[Tensor, " query"] | None = None  # the rows of the mask that are just that; None: all. Others: padding
    bias: Float32[Tensor, "head distance"] | None = None  # as `Factors` has it; None: nothing is added to scores


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
