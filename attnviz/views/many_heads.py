"""Very many heads: all of them small on one picture, and those most worth a look. Knows records and measures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from attnviz.measures.notable import choose_notable, read_moved_rows
from attnviz.records import AttentionMaps
from attnviz.report import HeatmapGrid, Note
from attnviz.specs import FigureOptions
from attnviz.views.head_pictures import Place, choose_columns, is_mean, name_head, name_places
from attnviz.views.tables import describe_order

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


def draw_many(
    maps: AttentionMaps,
    overview: HeatmapGrid,
    places: Sequence[Place],
    notable: Mapping[Place, str],
    sort: str | None,
) -> tuple[HeatmapGrid, ...]:
    """Draw all heads small, layer by layer, and the notable ones, which have names, larger.

    The overview has maps of the usual size where it is not a row per layer. The notable ones stand in the same order,
    or by the measure `sort` if that says which are notable.
    """
    overview = replace(overview, small=overview.edges is not None)
    if not notable:
        return (overview,)
    order = [n for n, place in enumerate(places) if place in notable]
    title = f"{len(order)} heads worth a look: {RULE if maps.self_attention else RULE_OF_TWO_TEXTS}"
    if sort is not None:
        order = [places.index(place) for place in notable]
        title = f"{len(order)} heads, the first when sorted by {describe_order(sort)}"
    panels = tuple(replace(overview.maps[n], title=notable[places[n]], note="") for n in order)
    note = NAMED if any(" " in name for name in notable.values()) else ""
    large = HeatmapGrid("worth-a-look", title, panels, choose_columns(len(order)), reflows=True, footnote=note)
    return overview, large


def describe_choice(n_notable: int, n_heads: int, sort: str | None) -> Note:
    """Say by which rule some of so many heads are listed, and how to have the others."""
    by = "by what moves beside the first token" if sort is None else f"the first when sorted by {describe_order(sort)}"
    listed = f"Of {n_heads} heads {n_notable} are picked out, {by}."
    return Note(f"{listed} In a terminal --table full lists all; --all-heads draws each.", is_detail=True)
