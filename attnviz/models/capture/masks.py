"""What a mask lets through, said without a matrix: a window around each query, and keys that nobody may attend to.

It is compared with the mask, row by row. Knows tensors, and nothing of kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.errors import InvalidRecord
from attnviz.factored import EVERYWHERE, Window
from attnviz.models.capture.captured import allowed

CELLS_AT_ONCE = 2**22  # of a mask
MATRIX = "Only windows and padding are recorded by their factors: leave out factored."


class SymbolicMask(NamedTuple):
    """Of one text."""

    window: Window
    attendable_keys: Bool[Tensor, " key"] | None = None  # None: every key
    fitting: Bool[Tensor, " query"] | None = None  # the rows of the mask that are just that; None: all. Others: padding

    def blocks(self, n_queries: int, n_keys: int) -> Iterator[tuple[slice, Bool[Tensor, "query key"]]]:
        """What queries may attend to, a stretch of them at a time."""
        back, forward = (n_queries + n_keys if reach is None else reach for reach in self.window)
        keys = torch.arange(n_keys)
        step = max(1, CELLS_AT_ONCE // n_keys)
        for start in range(0, n_queries, step):
            queries = torch.arange(start, min(start + step, n_queries))[:, None]
            within = (keys >= queries - back) & (keys <= queries + forward)
            if self.attendable_keys is not None:
                within &= self.attendable_keys.cpu()
            yield slice(start, start + len(queries)), within


def symbolic(mask: Tensor, what: str) -> SymbolicMask:
    """Of a mask [query, key], bool or additive. Raises InvalidRecord where it is anything else."""
    if mask.stride(0) == 0 or len(mask) == 1:
        return SymbolicMask(EVERYWHERE, _unless_all(_passing(mask[:1], what)[0]))
    square = mask.shape[0] == mask.shape[1]
    keys, first, last = _reach(mask, what)
    real = keys & (last >= 0) if square else last >= 0  # of padding anything may be said: it is left out
    if not bool(real.any()):
        raise InvalidRecord(f"{what} lets nobody attend to anything", hint=MATRIX)
    queries, places = torch.arange(len(mask))[real], keys.nonzero().flatten()
    window = (
        _limit(queries - first[real], int((queries - places[0]).max())),
        _limit(last[real] - queries, int((places[-1] - queries).max())),
    )
    found = SymbolicMask(window, _unless_all(keys))
    fitting = torch.cat(
        [(_passing(mask[rows], what) == expected).all(dim=1) for rows, expected in found.blocks(*mask.shape)]
    )
    fitting &= last >= 0  # who sees nothing has no distribution
    wrong = ~fitting & (keys if square else True)
    if bool(wrong.any()):
        query = int(wrong.nonzero()[0])
        raise InvalidRecord(f"{what} has a mask that is no window: query {query} sees other keys", hint=MATRIX)
    return found._replace(fitting=None if bool(fitting.all()) else fitting)


def _limit(reach: Int[Tensor, " query"], farthest: int) -> int | None:
    """How far queries see; None where that is as far as there are keys."""
    seen = max(0, int(reach.max()))
    return None if seen >= farthest else seen


def _unless_all(keys: Bool[Tensor, " key"]) -> Bool[Tensor, " key"] | None:
    return None if bool(keys.all()) else keys.cpu()


def _passing(rows: Tensor, what: str) -> Bool[Tensor, "query key"]:
    """Which keys some rows of a mask let through. Raises InvalidRecord where it adds something to their scores."""
    rows = rows.cpu()
    if rows.dtype == torch.bool:
        return rows
    passing = allowed(rows)
    if bool((rows.masked_fill(~passing, 0) != 0).any()):
        raise InvalidRecord(f"{what} adds a bias to its scores, which is no mask", hint=MATRIX)
    return passing


def _reach(mask: Tensor, what: str) -> tuple[Bool[Tensor, " key"], Int[Tensor, " query"], Int[Tensor, " query"]]:
    """The keys that any query attends to, and the first and last of each; the last of a query without keys is -1."""
    keys = torch.zeros(mask.shape[1], dtype=torch.bool)
    firsts, lasts = [], []
    step = max(1, CELLS_AT_ONCE // mask.shape[1])
    for start in range(0, len(mask), step):
        passing = _passing(mask[start : start + step], what)
        keys |= passing.any(dim=0)
        firsts.append(passing.to(torch.uint8).argmax(dim=1))
        from_behind = passing.flip(1).to(torch.uint8).argmax(dim=1)
        lasts.append((mask.shape[1] - 1 - from_behind).masked_fill(~passing.any(dim=1), -1))
    return keys, torch.cat(firsts), torch.cat(lasts)
