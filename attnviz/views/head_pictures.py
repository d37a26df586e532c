"""Heads as pictures: each map, many side by side, one query in many heads; and what their colours mean.

Knows records and `report`.

Of very many heads all are small on one picture, beside those most worth a look.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from math import floor, isnan, log10
from typing import NamedTuple, get_args

import numpy as np

from attnviz.display import format_count
from attnviz.measures.shown import Findings, RecordPart
from attnviz.records import AttentionMaps
from attnviz.records.head_names import MIN_SHARE
from attnviz.records.part import Place, TokenSelection
from attnviz.report import EdgeNames, Heatmap, HeatmapGrid, Note, Scale, name_map
from attnviz.shapes import Cells, Shown
from attnviz.specs import FigureOptions, ScaleKind
from attnviz.views.tables import describe_order
from attnviz.views.tokens import WRITTEN_PREFIX, label_keys, label_queries, quote_token

BY_CARD, BY_TEXT = "over many texts, by the model's card", "in this text"
WEIGHT_LABEL, MOVED_LABEL = "attention weight", "share of what is moved"  # the second with `--weigh values`
MAX_LIFT = 16.0  # equal shares: larger cells have the same colour


class MapFrame(NamedTuple):
    """What all maps of one record have in common: the tokens that are drawn, and what they are called."""

    part: TokenSelection
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def from_maps(cls, maps: AttentionMaps, part: TokenSelection) -> "MapFrame":
        """Collect what all maps of a text share: which tokens are drawn, and their labels."""
        queries, keys = label_queries(maps), label_keys(maps)
        return cls(part, tuple(queries[place] for place in part.queries), tuple(keys[place] for place in part.keys))

    def draw_rows(self, name: str, title: str, values: Cells, allowed: Shown) -> Heatmap:
        """Draw cells [query drawn, key]."""
        return Heatmap(
            name=name,
            title=title,
            values=self.part.select_columns(values),
            allowed=self.part.select_columns(allowed),
            rows=self.rows,
            columns=self.columns,
            row_positions=self.part.queries,
            column_positions=self.part.keys,
            equal=self.part.equal_share(values, allowed),
        )


def name_head(maps: AttentionMaps, place: Place) -> str:
    """Name a head by the model's own numbers: "3.5"."""
    return f"{maps.layer_numbers[place[0]]}.{maps.head_names[place[1]]}"


def name_place(maps: AttentionMaps, place: Place) -> tuple[str, str]:
    """Name the map of a head for files, and for people: "layer 3, head 5", "layer 3, mean of 8 heads"."""
    layer, head = maps.layer_numbers[place[0]], maps.head_names[place[1]]
    return name_map(layer, head), f"layer {layer}, {name_within_layer(maps, place)}"


def name_within_layer(maps: AttentionMaps, place: Place) -> str:
    """Name a head where its layer is known: "head 5", "mean of 8 heads"."""
    return describe_mean(maps) if is_mean(maps, place) else f"head {maps.head_names[place[1]]}"


def is_mean(maps: AttentionMaps, place: Place) -> bool:
    """Return whether a place is that of the mean over the heads of a layer (see `add_mean`)."""
    return place[1] >= maps.heads_alone.n_heads


def describe_mean(maps: AttentionMaps) -> str:
    """Say what is averaged: "mean of 8 heads"."""
    return f"mean of {format_count(maps.heads_alone.n_heads, 'heads')}"


def draw_heatmaps(maps: AttentionMaps, places: Iterable[Place], part: TokenSelection) -> tuple[Heatmap, ...]:
    """Draw one map per head."""
    frame = MapFrame.from_maps(maps, part)
    return tuple(
        frame.draw_rows(*name_place(maps, place), maps.rows(*place, part.rows), maps.read_allowed(place[0], part.rows))
        for place in places
    )


def draw_strip(maps: AttentionMaps, places: Sequence[Place], part: TokenSelection) -> Heatmap:
    """Draw what one query attends to, in a row per head."""
    frame = MapFrame.from_maps(maps, part)
    (query,), row = part.queries, part.rows
    rows = [frame.draw_rows("", "", maps.rows(*place, row), maps.read_allowed(place[0], row)) for place in places]
    one_layer = len({layer for layer, _ in places}) == 1
    names = [str(maps.head_names[place[1]]) if one_layer else name_head(maps, place) for place in places]
    heads = describe_mean(maps) if all(is_mean(maps, place) for place in places) else "heads"
    said = f", {heads} of layer {maps.layer_numbers[places[0][0]]}" if one_layer else ""
    chose = (
        label_queries(maps)[query].removeprefix(WRITTEN_PREFIX) if query >= len(maps.queries) - len(maps.chosen) else ""
    )
    said = f" as it chooses “{chose}”{said}" if chose else said
    return Heatmap(
        name=f"query-{query}",
        title=f"what {quote_token(maps.queries, query)} attends to{said}",
        values=np.concatenate([row.values for row in rows]),
        allowed=np.concatenate([row.allowed for row in rows]),
        rows=tuple(names),
        columns=frame.columns,
        row_axis="head" if one_layer else "layer.head",
        column_positions=part.keys,
        equal=np.concatenate([row.equal_share for row in rows]),
        asked=part.keys.index(query) if maps.self_attention and query in part.keys else None,
    )


def arrange_overview(
    part: RecordPart, measured: Findings, pictures: tuple[Heatmap, ...], spec: FigureOptions
) -> tuple[HeatmapGrid, ...]:
    """Arrange a row per layer; heads of a single layer, one per layer, and those picked in rows of about four."""
    maps, places = part.maps, part.places
    if len(pictures) < 2 and not spec.pick:
        return ()
    layers = {layer for layer, _ in places}
    in_a_row = len(places) // len(layers)
    edges = None if spec.pick or spec.columns not in (None, in_a_row) else _name_edges(maps, places)
    n_heads = sum(not is_mean(maps, place) for place in places)
    and_mean = f" and the {describe_mean(maps)}" if n_heads < len(places) else ""
    if spec.pick:
        title = ""
    elif not n_heads:
        title = f"{len(places)} layers, {describe_mean(maps)} each"
    elif len(layers) == 1:
        title = f"{format_count(n_heads, 'heads')} of layer {maps.layer_numbers[places[0][0]]}{and_mean}"
    else:
        title = f"{n_heads} heads of {len(layers)} layers{and_mean}"
    reflows = spec.columns is None
    n_columns = spec.columns or (in_a_row if edges else choose_columns(len(places)))
    names = [picture.title for picture in pictures]
    if len(layers) == 1 and not spec.pick:
        names = [name_within_layer(maps, place) for place in places]
    named = [measured.names[layer][head] for layer, head in places]
    pictures = tuple(
        replace(picture, title=name, note=known.pattern)
        for picture, name, known in zip(pictures, names, named, strict=True)
    )
    absent = dict.fromkeys(known.pattern for known in named if known.pattern and isnan(known.share))
    left_out = f" ({', '.join(absent)}: this text has nothing of the kind)" if absent else ""
    of = BY_CARD if maps.heads_alone.known_heads else BY_TEXT
    footnote = f"in grey: what a head looks at {of}{left_out}" if any(known.pattern for known in named) else ""
    shares = {}  # to each pattern of which any head has enough to be named for it
    for name, found, _ in measured.patterns:
        if max(of_heads := tuple(float(found[place]) for place in places)) >= MIN_SHARE:
            shares[name] = of_heads
    of_picture = {"reflows": reflows, "edges": edges, "footnote": footnote, "shares": shares}
    return (HeatmapGrid("overview", title, pictures, n_columns, **of_picture),)  # type: ignore[arg-type]


def _name_edges(maps: AttentionMaps, places: Sequence[Place]) -> EdgeNames | None:
    """Name layers and heads once each, where there are several layers and of each the same heads."""
    layers, heads = ([*dict.fromkeys(side)] for side in zip(*places, strict=True))
    if [*places] != [*product(layers, heads)] or len(layers) < 2 or len(heads) < 2:
        return None
    rows, columns = (maps.layer_numbers[layer] for layer in layers), (maps.head_names[head] for head in heads)
    return EdgeNames("layer", "head", tuple(map(str, rows)), tuple(map(str, columns)))


def choose_columns(n_maps: int, about: int = 4) -> int:
    """Return how many maps stand in a row: about so many, with the fewest empty places."""
    return n_maps if n_maps <= about else min((about, about - 1, about + 1), key=lambda n_columns: -n_maps % n_columns)


def lift_scale(what: str = WEIGHT_LABEL, of_shown: bool = False, n_keys: int = 0) -> Scale:
    """Return the scale that is the same for every text, model and head. `of_shown`: the share is of the keys shown.

    Of few keys none can get more than n equal shares: there the colours end.
    """
    equal = "an equal share among the keys shown" if of_shown else "an equal share (1/n)"
    is_bounded = 0 < n_keys < MAX_LIFT
    high = max(2.0, float(n_keys)) if is_bounded else MAX_LIFT
    return Scale("lift", 1.0, high, f"{what}, × {equal}", is_bounded=is_bounded)


def choose_scale(kind: ScaleKind, high: float, n_keys: int, of_shown: bool = False, what: str = WEIGHT_LABEL) -> Scale:
    """Return one range of colours for all maps; the label says which, so that no picture flatters unnoticed.

    `high` is the largest number drawn, and `what` says what the numbers are. `log` begins a tenth below the weight of
    uniform attention, rounded down to a power of ten.
    """
    if kind == "lift":
        return lift_scale(what, of_shown, n_keys)
    if kind == "fixed":
        return Scale(kind, 0.0, 1.0, f"{what} (fixed scale, 0 to 1)")
    if kind == "shared":
        return Scale(kind, 0.0, high, f"{what} (shared scale, 0 to {high:.3g})")
    low = min(max(10.0 ** floor(log10(0.1 / n_keys)), 1e-8), 1e-2)
    return Scale(kind, low, 1.0, f"{what} (logarithmic scale, {low:g} to 1)")


def list_scales(high: float, n_keys: int, of_shown: bool = False, what: str = WEIGHT_LABEL) -> tuple[Scale, ...]:
    """List the scales from which a reader may choose. See `choose_scale`."""
    kinds: tuple[ScaleKind, ...] = get_args(ScaleKind)
    return tuple(choose_scale(kind, high, n_keys, of_shown, what) for kind in kinds)


RULE = "they attend to more than the first token, far from equally, each unlike the others"
RULE_OF_TWO_TEXTS = "they attend far from equally, each unlike the others"
NAMED = "named: what a head gives 30 % or more of its attention to, beyond chance, in this text"


def draw_many(part: RecordPart, measured: Findings, overview: HeatmapGrid, sort: str | None) -> tuple[HeatmapGrid, ...]:
    """Draw all heads small, layer by layer, and the notable ones larger, called by what they do.

    The overview has maps of the usual size where it is not a row per layer. The notable ones stand in the same order,
    or by the measure `sort` if that says which are notable.
    """
    overview = replace(overview, small=overview.edges is not None)
    maps, places, notable = part.maps, part.places, measured.notable
    if not notable:
        return (overview,)
    order = [n for n, place in enumerate(places) if place in notable]
    title = f"{len(order)} heads worth a look: {RULE if maps.self_attention else RULE_OF_TWO_TEXTS}"
    if sort is not None:
        order = [places.index(place) for place in notable]
        title = f"{len(order)} heads, the first when sorted by {describe_order(sort)}"
    names = {n: f"{name_head(maps, places[n])} {overview.maps[n].note}".rstrip() for n in order}
    panels = tuple(replace(overview.maps[n], title=name, note="") for n, name in names.items())
    note = NAMED if any(" " in name for name in names.values()) else ""
    large = HeatmapGrid("worth-a-look", title, panels, choose_columns(len(order)), reflows=True, footnote=note)
    return overview, large


def describe_choice(n_notable: int, n_heads: int, sort: str | None) -> Note:
    """Say by which rule some of so many heads are listed, and how to have the others."""
    by = "by what moves beside the first token" if sort is None else f"the first when sorted by {describe_order(sort)}"
    listed = f"Of {n_heads} heads {n_notable} are picked out, {by}."
    return Note(f"{listed} In a terminal --table full lists all; --all-heads draws each.", is_detail=True)
