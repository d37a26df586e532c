"""Very many heads: all of them small on one picture, and those most worth a look. Knows records and measures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from attnviz.measures.notable import choose_notable, read_moved_rows
from attnviz.measures.rows import compute_statistics
from attnviz.records import AttentionMaps
from attnviz.report import Fold, Heatmap, HeatmapGrid, Note
from attnviz.shapes import PerRow
from attnviz.specs import FigureOptions
from attnviz.views.head_pictures import Place, choose_columns, is_mean, name_head, name_places
from attnviz.views.tables import describe_order
from attnviz.views.tokens import TokenSelection, quote_token

MAX_FILES = 24  # heads up to which each has a file of its own
N_NOTABLE = 12
RULE = "they attend to more than the first token, far from equally, each unlike the others"
RULE_OF_TWO_TEXTS = "they attend far from equally, each unlike the others"
NAMED = "named: what a head gives 30 % or more of its attention to, beyond chance, in this text"


def has_many(maps: AttentionMaps, places: Sequence[Place], spec: FigureOptions) -> bool:
    """Return whether there are more heads than have a file each, and none of them was picked."""
    return not spec.pick and sum(not is_mean(maps, place) for place in places) > MAX_FILES


def find_notable(maps: AttentionMaps, places: Sequence[Place], are_sorted: bool = False) -> dict[Place, str]:
    """Find the heads that are worth a look, the first first: where they are sorted, the first of them. Each has a name:
    its numbers, and what it does where that is known.
    """
    heads = [place for place in places if not is_mean(maps, place)]
    rows = read_moved_rows(maps.heads_alone, heads)
    chosen = range(len(heads))[:N_NOTABLE] if are_sorted else choose_notable(rows, N_NOTABLE)
    picked = [heads[n] for n in chosen]
    named = zip(picked, name_places(maps, picked), strict=True)
    return {place: f"{name_head(maps, place)} {name.pattern}".rstrip() for place, name in named}


class ManyHeads(NamedTuple):
    """More heads than have a file each, and those of them that are worth a look, by name."""

    maps: AttentionMaps
    places: Sequence[Place]
    part: TokenSelection
    notable: Mapping[Place, str]
    sort: str | None  # the measure that says which are notable, if one does

    def draw(self, overview: HeatmapGrid) -> tuple[HeatmapGrid, ...]:
        """Draw all heads small, layer by layer, and the notable ones larger; the first token folded away in both.

        The overview has maps of the usual size where it is not a row per layer. The notable ones stand in the same
        order, or as they are sorted.
        """
        places, notable = self.places, self.notable
        grids = [replace(overview, small=overview.edges is not None, fold=self._fold_first(overview.maps))]
        if notable:
            order = [n for n, place in enumerate(places) if place in notable]
            title = f"{len(order)} heads worth a look: {RULE if self.maps.self_attention else RULE_OF_TWO_TEXTS}"
            if self.sort is not None:
                order = [places.index(place) for place in notable]
                title = f"{len(order)} heads, the first when sorted by {describe_order(self.sort)}"
            panels = tuple(replace(overview.maps[n], title=notable[places[n]], note="") for n in order)
            fold = self._fold_first(overview.maps, order)
            note = NAMED if any(" " in name for name in notable.values()) else ""
            n_columns = choose_columns(len(order))
            grids.append(HeatmapGrid("worth-a-look", title, panels, n_columns, reflows=True, fold=fold, footnote=note))
        return tuple(grids)

    def _fold_first(self, pictures: Sequence[Heatmap], drawn: Sequence[int] | None = None) -> Fold | None:
        """Find what each row of each map gives to the first token; None where that is not drawn, or nothing else is.

        `drawn` are the maps that are, by their numbers; None: all.
        """
        maps, places, keys = self.maps, self.places, self.part.keys
        first = int(maps.real_queries.argmax())
        if not maps.self_attention or first not in keys or len(keys) < 2:
            return None
        column = keys.index(first) if pictures[0].block == 1 else None  # else it is one of several in its cells
        shares = [
            picture.values[:, column] if column is not None else _average_rows(maps, place, first, picture.block)
            for picture, place in zip(pictures, places, strict=True)
        ]
        heads = [place for place in places if not is_mean(maps, place)]
        received = {place: compute_statistics(maps, place[0]).received[place[1], first] for place in heads}
        label = (
            f"grey, beside each map and row by row: the share that goes to {quote_token(maps.keys, first)}, on average"
        )
        of_all = np.mean([*received.values()])
        if drawn is None:
            return Fold(tuple(shares), f"{label} {of_all:.1%} in these {len(received)} heads", column)
        of_drawn = np.mean([received[places[n]] for n in drawn])
        said = f"{of_drawn:.1%} in these {len(drawn)} heads and {of_all:.1%} in all {len(received)}"
        return Fold(tuple(shares[n] for n in drawn), f"{label} {said}", column)

    def describe(self) -> Note:
        """Say by which rule heads are listed, and how to have the others."""
        n_heads = sum(not is_mean(self.maps, place) for place in self.places)
        by = "by what moves beside the first token"
        if self.sort is not None:
            by = f"the first when sorted by {describe_order(self.sort)}"
        listed = f"Of {n_heads} heads {len(self.notable)} are picked out, {by}."
        return Note(f"{listed} In a terminal --table full lists all; --all-heads draws each.", is_detail=True)


def _average_rows(maps: AttentionMaps, place: Place, key: int, block: int) -> PerRow:
    """Average what the queries of each block give to a key."""
    queries, (layer, head) = np.arange(len(maps.queries)), place
    weights = maps.read_cells_of_heads(layer, queries, np.full(len(queries), key))[head]
    starts = np.arange(0, len(queries), block)
    return np.asarray(np.add.reduceat(weights, starts) / np.diff([*starts, len(queries)]))
