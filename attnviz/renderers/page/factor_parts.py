"""What weights are worked out from, so that a page shows single ones of a long text. Knows `report` and the codings.

A token that comes again has the q and k of before where nothing but the token decides them, as in a first layer without
positions: such rows are held once, exactly (of 65,536 tokens of film reviews 4,968). page/factors.js reads what is
written here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import expm1
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Shaped

from attnviz.distinct_rows import find_distinct_rows
from attnviz.renderers.page.captions import exactness_of_factors
from attnviz.renderers.page.map_parts import Shared, read_tokens
from attnviz.renderers.page.packing import EXACT, EXACT_BITS, pack
from attnviz.report import Heatmap, Report, WeightFactors

ROOM = 10_000_000  # bytes of base64: with maps and labels, a page of 65,536 tokens and 8 heads stays below 12 MB
ROUNDED_BITS = 16
STEPS = 32_767  # to either side of 0, of numbers that are rounded


class PackedSide(NamedTuple):
    """q or k: the rows that are unlike, in the order of their first tokens, and which of them each token has."""

    rows: Float32[np.ndarray, "row d_head"]
    places: Int[np.ndarray, " token"] | None  # None: each its own

    @property
    def steps(self) -> Float32[np.ndarray, " d_head"]:
        """Between numbers that are rounded, of each dimension."""
        highest = np.abs(self.rows).max(axis=0)
        return np.asarray(np.where(highest > 0, highest, 1) / STEPS, dtype=np.float32)


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

    def n_bytes(self, bits: int) -> float:
        """About how many bytes of base64 it takes, with so many bits for each number of q and k."""
        n_bits = (self.query.rows.size + self.key.rows.size) * bits + self.of.log_sum_exp.size * EXACT_BITS
        return n_bits / 8 * 4 / 3

    @property
    def error(self) -> float:
        """How far a weight of rounded q and k is from its own at most, relatively."""
        (q, _), (k, _) = self.query, self.key
        by_q, by_k = (side.steps.astype(np.float64) / 2 for side in (self.query, self.key))
        apart = (np.abs(q) @ by_k).max() + (np.abs(k) @ by_q).max() + by_q @ by_k
        return expm1(abs(self.of.scale) * float(apart))

    def block(self, *, rounded: bool) -> bytes:
        """base64 of what is deflated, and of what is not; rounded, log-sum-exp alone in these, then q and k."""
        sides = self.query, self.key
        numbers = (
            self.of.log_sum_exp if rounded else np.concatenate([*(s.rows.ravel() for s in sides), self.of.log_sum_exp])
        )
        parts: list[bytes] = [*pack(numbers[None], EXACT)]
        if rounded:
            parts.append(b"".join(np.rint(s.rows / s.steps).astype("<i2").tobytes() for s in sides))
        return b" ".join(map(b64encode, parts))


def describe_factors(
    report: Report, maps: Sequence[Heatmap], block: int
) -> tuple[Mapping[str, object] | None, tuple[bytes, ...], tuple[str, ...]]:
    """A part of the page's document, a block for each map, and how exact the page says they are.

    Of the maps that are drawn pooled, as many as find room; `block` of their cells become one on the page.
    """
    heads = {
        place: PackedHead.from_factors(each.factors)
        for place, each in enumerate(maps)
        if each.factors is not None and each.block * block > 1
    }
    rounded = sum(head.n_bytes(EXACT_BITS) for head in heads.values()) > ROOM
    kept = dict(_that_fit(heads, ROUNDED_BITS)) if rounded else heads
    if not kept:
        return None, (b"",) * len(maps), ()
    tokens, arrays = Shared(), Shared()
    sides = {side: _find_markers(read_tokens(report, of)) for side, of in (("rows", "queries"), ("columns", "keys"))}

    def axis(labels: tuple[str, ...], side: str) -> int:
        return tokens.number((labels, sides[side]), lambda: {"labels": labels, "markers": sides[side]})

    described = [
        {
            "size": each.block * block,
            "rows": axis(kept[place].of.rows, "rows"),
            "columns": axis(kept[place].of.columns, "columns"),
            **_describe_head(kept[place], arrays, rounded=rounded),
        }
        if place in kept
        else None
        for place, each in enumerate(maps)
    ]
    error = max(head.error for head in kept.values()) if rounded else 0.0
    return (
        {"maps": described, "tokens": tokens.found, "arrays": arrays.found, "error": error},
        tuple(kept[place].block(rounded=rounded) if place in kept else b"" for place in range(len(maps))),
        tuple(exactness_of_factors(error, [maps[place].title for place in heads if place not in kept])),
    )


def _that_fit(heads: Mapping[int, PackedHead], bits: int) -> Iterator[tuple[int, PackedHead]]:
    """The first heads, and one however large."""
    total = 0.0
    for count, (place, head) in enumerate(heads.items()):
        total += head.n_bytes(bits)
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


def _find_markers(tokens: object) -> tuple[int, ...]:
    """Return the positions of a text's markers; none where nothing says which tokens are."""
    special = tokens["special"] if isinstance(tokens, Mapping) else ()
    return tuple(position for position, is_marker in enumerate(special) if is_marker)


def _describe_head(head: PackedHead, arrays: Shared, *, rounded: bool) -> Mapping[str, object]:
    """All but the numbers of the block and the tokens; `arrays` by number, or None."""
    of = head.of

    def array(numbers: Shaped[np.ndarray, " _n"] | None, dtype: str) -> int | None:
        if numbers is None:
            return None
        data = numbers.astype(dtype).tobytes()
        return arrays.number((dtype, data), lambda: b64encode(data).decode("ascii"))

    def side(of_side: PackedSide) -> Mapping[str, object]:
        return {
            "n": len(of_side.rows),
            "places": array(of_side.places, "<u4"),
            "steps": array(of_side.steps, "<f4") if rounded else None,
        }

    return {
        "width": of.query.shape[1],
        "scale": of.scale,
        "window": of.window,
        "query": side(head.query),
        "key": side(head.key),
        "bias": array(of.bias, "<f4"),
        "attendable": array(of.attendable, "u1"),
        "shares": array(of.equal, "<f4"),
    }
