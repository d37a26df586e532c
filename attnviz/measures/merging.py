"""Tokens joined into larger units, such as words, or what ways to cut one text have in common. Knows records only."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from attnviz.errors import InvalidOption
from attnviz.measures.rows import check_self_attention
from attnviz.records import AttentionMaps, Tokens

Unit = tuple[int, ...]  # positions of tokens

OTHER_MARKERS = "the models put their markers at different places in the text"
MARKERS_HINT = "Compare models that put the same markers into a text."
STRETCHES_HINT = (
    "Models that cut a text into other tokens stop elsewhere in it: give a larger --max-tokens or a shorter text."
)


def merge_tokens(maps: AttentionMaps, units: Sequence[Unit], key_units: Sequence[Unit] | None = None) -> AttentionMaps:
    """Sum attention to each unit over its tokens, and average attention from it over them (Clark et al. 2019).

    Rows still sum to 1 (arXiv:1906.04341, section 4.1, for words cut into pieces). A unit may attend where any of its
    tokens may. Padding may be left out of the units. `key_units` are those of the keys where these are another text.
    Raises InvalidOption where they are and it is not given.
    """
    if key_units is None:
        check_self_attention(maps, "joining tokens")
    assert key_units is None or not maps.self_attention, "tokens that attend to each other have one way to be joined"
    rows = UnitLayout.from_units(units)
    columns = rows if key_units is None else UnitLayout.from_units(key_units)
    weights = np.empty((maps.n_layers, maps.n_heads, len(rows.sizes), len(columns.sizes)), dtype=np.float32)
    for layer, head in np.ndindex(weights.shape[:2]):
        sums = _reduce_to_units(maps.weights[layer, head].astype(np.float64), rows, columns, np.add)
        weights[layer, head] = sums / rows.sizes[:, None]
    queries = _join_tokens(maps.queries, units)
    masks = maps.attendable[:1] if maps.layers_alike else maps.attendable
    attendable = np.stack([_reduce_to_units(of_layer, rows, columns, np.logical_or) for of_layer in masks])
    sink = None
    if maps.sink is not None:
        sums = np.add.reduceat(maps.sink[:, :, rows.order].astype(np.float64), rows.starts, axis=-1)
        sink = np.asarray(sums / rows.sizes, dtype=np.float32)
    return AttentionMaps(
        weights=weights,
        queries=queries,
        keys=queries if key_units is None else _join_tokens(maps.keys, key_units),
        attendable=np.broadcast_to(attendable, (maps.n_layers, *attendable.shape[1:])),
        provenance=maps.provenance,
        sink=sink,
        layer_numbers=maps.layer_numbers,
        head_numbers=maps.head_numbers,
        weighed=maps.weighed,
    )


class UnitLayout(NamedTuple):
    """Units of tokens, one after the other: the positions of all, where each unit starts among them, and its size."""

    order: Int[np.ndarray, " token"]
    starts: Int[np.ndarray, " unit"]
    sizes: Int[np.ndarray, " unit"]

    @classmethod
    def from_units(cls, units: Sequence[Unit]) -> "UnitLayout":
        """Lay out units one after the other, none of them empty."""
        sizes = np.array([len(unit) for unit in units])
        assert sizes.all(), "a unit of no token"
        return cls(np.concatenate([np.array(unit) for unit in units]), np.cumsum(sizes) - sizes, sizes)


def _reduce_to_units(cells: np.ndarray, rows: UnitLayout, columns: UnitLayout, reduce: np.ufunc) -> np.ndarray:
    """Reduce `cells` [query, key] to one cell for each pair of units."""
    by_key = reduce.reduceat(cells[np.ix_(rows.order, columns.order)], columns.starts, axis=1)
    return np.asarray(reduce.reduceat(by_key, rows.starts, axis=0))


def find_common_units(several: Sequence[Tokens]) -> tuple[tuple[Unit, ...], ...]:
    """Return, for each way to cut one text, the tokens of each unit: the finest units whose borders all ways share.

    Tokens whose characters overlap, also in a chain, are one unit; a marker is one, and corresponds to the others' by
    its order. A token without characters of its own, or with only white space that another way leaves out, belongs to
    the unit before it. Raises InvalidOption where they cover different stretches of the text, or have markers at other
    places in it.
    """
    first = several[0]
    if all((tokens.offsets, tokens.special) == (first.offsets, first.special) for tokens in several):
        return tuple(tuple((position,) for position in range(len(first))) for _ in several)
    spans = [_place_tokens(tokens) for tokens in several]
    _check_characters(several, spans)
    clusters: list[list[list[int]]] = []  # [cluster of overlapping spans][way to cut the text]
    reached = (0, -1)
    of_all = ((span, which, position) for which, of in enumerate(spans) for position, span in enumerate(of))
    for (stretch, start, end), which, position in sorted(each for each in of_all if each[0].start < each[0].end):
        if (stretch, start) >= reached:
            clusters.append([[] for _ in several])
        clusters[-1][which].append(position)
        reached = max(reached, (stretch, end))
    shared = [cluster for cluster in clusters if all(cluster)]  # the others are white space
    return tuple(_add_others(tokens, [unit[which] for unit in shared]) for which, tokens in enumerate(several))


class Span(NamedTuple):
    """Where a token is: its characters, behind so many markers. A marker is before the first character behind it."""

    stretch: int
    start: int
    end: int


def _place_tokens(tokens: Tokens) -> list[Span]:
    of_each = zip(np.cumsum(tokens.special).tolist(), tokens.special, tokens.offsets, strict=True)
    return [Span(stretch, *((-1, 0) if special else offsets)) for stretch, special, offsets in of_each]


def _check_characters(several: Sequence[Tokens], spans: Sequence[Sequence[Span]]) -> None:
    """Check that all cover the same characters, white space aside, with their markers at the same places among them."""
    covered = [set[tuple[int, int]]() for _ in several]
    for places, tokens, of_one in zip(covered, several, spans, strict=True):
        for piece, (stretch, start, end) in zip(tokens.pieces, of_one, strict=True):
            is_known = len(piece) == end - start
            places |= {(stretch, at) for at in range(start, end) if not (is_known and piece[at - start].isspace())}
    characters = [{at for _, at in places if at >= 0} for places in covered]
    for others in characters[1:]:
        if alone := characters[0] ^ others:
            problem = f"one model reads character {min(alone)} of the text, another does not"
            raise InvalidOption(problem, hint=STRETCHES_HINT)
    if any(places != covered[0] for places in covered):
        raise InvalidOption(OTHER_MARKERS, hint=MARKERS_HINT)


def _add_others(tokens: Tokens, units: Sequence[list[int]]) -> tuple[Unit, ...]:
    """Add the tokens that are in no unit: each to the one before it, behind a marker to the one after."""
    home = {position: number for number, unit in enumerate(units) for position in unit}
    found, number = [sorted(unit) for unit in units], 0
    for position, is_marker in enumerate(tokens.special):
        number = home.get(position, number) + is_marker
        if position not in home:
            if number == len(found) or tokens.special[found[number][0]]:  # nothing else between two markers
                raise InvalidOption(OTHER_MARKERS, hint=MARKERS_HINT)
            found[number].append(position)
    return tuple(tuple(sorted(unit)) for unit in found)


def _join_tokens(tokens: Tokens, units: Sequence[Unit]) -> Tokens:
    return Tokens(
        pieces=tuple(_join_pieces(tokens, unit) for unit in units),
        offsets=tuple(
            (min(tokens.offsets[n][0] for n in unit), max(tokens.offsets[n][1] for n in unit)) for unit in units
        ),
        special=tuple(all(tokens.special[n] for n in unit) for unit in units),
        unknown=tuple(any(tokens.unknown[n] for n in unit) for unit in units),
    )


def _join_pieces(tokens: Tokens, unit: Unit) -> str:
    """Join pieces, with a space where characters lie between them, and what two of them cover only once."""
    piece, reached = tokens.pieces[unit[0]], tokens.offsets[unit[0]][1]
    for position in unit[1:]:
        start, end = tokens.offsets[position]
        piece += " " * (start > reached) + tokens.pieces[position][max(0, reached - start) :]
        reached = max(reached, end)
    return piece
