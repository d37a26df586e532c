"""What weights are worked out from, so that a page shows those of a query of a long text. Knows `report`, the codings.

A token that comes again has the q and k of before where nothing but the token decides them, as in a first layer without
positions: such rows are held once, exactly (of 65,536 tokens of film reviews 4,968). page/factors.js reads what is
written here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Shaped

from attnviz.distinct_rows import find_distinct_rows
from attnviz.renderers.page.captions import exactness_of_factors
from attnviz.renderers.page.map_parts import Shared
from attnviz.renderers.page.packing import EXACT, EXACT_BITS, pack
from attnviz.report import Heatmap, WeightFactors

ROOM = 10_000_000  # bytes of base64: with maps and labels, a page of 65,536 tokens and 8 heads stays below 12 MB


class PackedSide(NamedTuple):
    """q or k: the rows that are unlike, in the order of their first tokens, and which of them each token has."""

    rows: Float32[np.ndarray, "row d_head"]
    places: Int[np.ndarray, " token"] | None  # None: each its own


@dataclass(frozen=True)
class PackedHead:
    """What there is to write of one map."""

    of: WeightFactors
    query: PackedSide
    key: PackedSide

    @classmethod
    def from_factors(cls, of: WeightFactors) -> PackedHead:
        """With alike rows held once."""
        return cls(of, _side(of.query), _side(of.key))

    @property
    def numbers(self) -> Float32[np.ndarray, " number"]:
        """Rows of q, rows of k, log-sum-exp."""
        return np.concatenate([self.query.rows.ravel(), self.key.rows.ravel(), self.of.log_sum_exp])

    @property
    def block(self) -> bytes:
        """base64 of what is deflated, and of what is not."""
        return b" ".join(map(b64encode, pack(self.numbers[None], EXACT)))


def describe_factors(
    maps: Sequence[Heatmap], block: int
) -> tuple[Mapping[str, object] | None, tuple[bytes, ...], tuple[str, ...]]:
    """A part of the page's document, a block for each map, and how exact the page says they are.

    Of the maps that are drawn pooled, as many as find room; `block` of their cells become one on the page.
    """
    heads = {
        place: PackedHead.from_factors(each.factors)
        for place, each in enumerate(maps)
        if each.factors is not None and each.block * block > 1
    }
    kept = dict(_that_fit(heads))
    if not kept:
        return None, (b"",) * len(maps), ()
    tokens, arrays = Shared(), Shared()
    described = [_describe_head(kept[place], tokens, arrays) if place in kept else None for place in range(len(maps))]
    return (
        {"maps": described, "tokens": tokens.found, "arrays": arrays.found},
        tuple(kept[place].block if place in kept else b"" for place in range(len(maps))),
        tuple(exactness_of_factors([maps[place].title for place in heads if place not in kept])),
    )


def _that_fit(heads: Mapping[int, PackedHead]) -> Iterator[tuple[int, PackedHead]]:
    """The first heads, and one however large."""
    total = 0.0
    for count, (place, head) in enumerate(heads.items()):
        total += head.numbers.size * EXACT_BITS / 8 * 4 / 3
        if count and total > ROOM:
            return
        yield place, head


def _side(numbers: Float32[np.ndarray, "token d_head"]) -> PackedSide:
    found = find_distinct_rows(numbers)
    return (
        PackedSide(np.ascontiguousarray(numbers), None)
        if found is None
        else PackedSide(numbers[found.first], found.places)
    )


def _describe_head(head: PackedHead, tokens: Shared, arrays: Shared) -> Mapping[str, object]:
    """All but the numbers of the block; `tokens` and `arrays` by number, or None."""
    of = head.of

    def array(numbers: Shaped[np.ndarray, " _n"] | None, dtype: str) -> int | None:
        if numbers is None:
            return None
        data = numbers.astype(dtype).tobytes()
        return arrays.number((dtype, data), lambda: b64encode(data).decode("ascii"))

    def side(of_side: PackedSide) -> Mapping[str, object]:
        return {"n": len(of_side.rows), "places": array(of_side.places, "<u4")}

    return {
        "rows": tokens.number(of.rows, lambda: of.rows),
        "columns": tokens.number(of.columns, lambda: of.columns),
        "width": of.query.shape[1],
        "scale": of.scale,
        "window": of.window,
        "query": side(head.query),
        "key": side(head.key),
        "bias": array(of.bias, "<f4"),
        "attendable": array(of.attendable, "u1"),
        "shares": array(of.equal, "<f4"),
    }
