"""Attention maps as a report: pictures, tables, notes and data. Knows neither renderers nor models.

Heads or their mean are reported, weighed and merged as asked, and measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from attnviz.measures import measure_maps
from attnviz.measures.divergence import divergence_from_mean
from attnviz.measures.rows import compute_statistics
from attnviz.measures.weighing import find_reachable, rollout, weigh_values
from attnviz.measures.words import merge_words
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.mean import add_mean
from attnviz.report import Block, Heatmap, HeatmapGrid, Note, Report
from attnviz.selection import find_token, is_slice, select_numbers, select_pairs
from attnviz.specs import FigureOptions, ScaleKind
from attnviz.views import captions, head_pictures
from attnviz.views.answer import describe_heads, describe_names, tabulate_answer
from attnviz.views.data import choose_heads, collect_data
from attnviz.views.head_pictures import MapFrame, Place, choose_scale, has_too_many_weights, is_mean
from attnviz.views.patches import draw_patches, follow_places
from attnviz.views.pooled_maps import add_factors, draw_pooled_maps
from attnviz.views.tables import heads_table, layers_table, parse_sort, sort_places, top_table
from attnviz.views.tokens import TokenSelection, list_left_out, measure_hidden, select_tokens

MAX_LINES = 22  # of the first screen; up to three more say how long it takes and what was written
MAX_WORDS = 60  # tokens of a text that is read at a glance
ONE_KEY = "There is one token, which gets all attention of every head: nothing is drawn."


def heatmap_report(
    maps: AttentionMaps,
    measurements: Sequence[Measurement],
    spec: FigureOptions,
    layers: Sequence[int],
    heads: Sequence[int],
) -> Report:
    """Report all chosen heads side by side, then each alone, then tables and notes.

    `layers` and `heads` are places in the record. With `spec.pick` just those heads side by side, with `spec.query` one
    row of each. What `spec.sort` names has to be among the measurements. Raises InvalidSelection for a token that the
    record does not have and where all tokens would be hidden, InvalidOption for a rollout from one text to another.
    """
    places = find_places(maps, spec, layers, heads)
    layers, heads = (tuple(dict.fromkeys(side)) for side in zip(*places, strict=True))
    part = select_tokens(maps, spec)
    share = measure_hidden(maps, part)
    share_hidden, hidden = None, dict[str, object]()
    if share is not None:
        share_hidden = float(np.mean([share.values[place] for place in places]))
        sides = {"queries": (maps.queries, part.queries), "keys": (maps.keys, part.keys)}
        left_out = {side: list_left_out(*tokens) for side, tokens in sides.items()}
        hidden = {"hidden": {**left_out, "share": choose_heads(share.values, layers, heads)}}
    pooled = head_pictures.needs_pooling(maps, places, part)
    pictures = draw_pooled_maps(maps, places) if pooled else head_pictures.draw_heatmaps(maps, places, part)
    pictures = add_factors(maps, places, part, pictures)
    order = places if spec.sort is None else sort_places(measurements, places, spec.sort)
    is_many, asked = head_pictures.has_many(maps, places, spec), part.queries
    notable = head_pictures.find_notable(maps, order, spec.sort is not None) if is_many else {}
    patches = draw_patches(maps, places, spec)
    drawn: list[Heatmap | HeatmapGrid] = []
    if spec.query is not None and not is_slice(spec.query):
        asked = (find_token(spec.query, maps.queries.pieces),)
        drawn += [] if patches else [head_pictures.draw_strip(maps, places, part, *asked)]
    elif not patches:
        together = head_pictures.arrange_overview(maps, pictures, places, spec)
        drawn += head_pictures.draw_many(maps, together[0], places, notable, spec.sort) if is_many else together
        if not spec.pick and (not is_many or spec.all_heads or spec.layer or spec.head):
            drawn += pictures
    rolled, others = _draw_rollout(maps, part, spec.scale) if spec.rollout else ({}, ())
    numbers = heads_table(maps, [*measurements, *([share] if share else [])], places, part, spec, notable)
    of_layers = layers_table(maps, measurements, layers)
    listed = () if pooled or patches else pictures
    if notable and listed and spec.table != "full":  # of very many heads those that are worth a look
        listed = tuple(picture for picture, place in zip(pictures, places, strict=True) if place in notable)
    tops = [top_table(each, maps.real_queries, spec.top_k) for each in (*listed, *others)]
    notes = [*captions.collect_notes(maps.heads_alone)]
    asking = TokenSelection(asked, part.keys)
    answer: Sequence[Block] = patches or (*describe_heads(maps, order), tabulate_answer(maps, order, asking))
    if notable and not patches:
        n_heads = sum(not is_mean(maps, place) for place in places)
        notes.append(head_pictures.describe_choice(len(notable), n_heads, spec.sort))
    hides = _describe_mean_hides(maps, places, measurements)
    title = captions.compose_title(maps.provenance, spec.title, captions.quote_text(maps.provenance, maps.queries))
    largest = max(float(picture.values.max()) for picture in pictures)
    what = head_pictures.MOVED_LABEL if maps.weighed else head_pictures.WEIGHT_LABEL
    extent = largest, len(maps.keys), part.renormalizes(maps), what
    # Beside the sentence on one screen: of many heads those worth a look; none where it is no short text.
    is_short = maps.self_attention and maps.grid is None and part.queries == part.keys and len(part.keys) <= MAX_WORDS
    shown = [place for place in places if is_short and not is_mean(maps, place) and (not notable or place in notable)]
    report = Report(
        title=title,
        subtitle=captions.join(
            captions.compose_subtitle(maps, part, share_hidden, own_title=spec.title is not None), hides
        ),
        blocks=(*drawn, *others, *answer, numbers, *of_layers, *tops, *notes),
        scale=choose_scale(spec.scale, *extent),
        scales=head_pictures.list_scales(*extent),
        facts=captions.list_facts(maps.provenance),
        data={
            **collect_data(title if spec.title is None else spec.title, maps, measurements, layers, heads),
            **hidden,
            **rolled,
        },
        max_lines=MAX_LINES,
        screen=tuple((maps.layer_numbers[layer], int(maps.head_names[head])) for layer, head in shown),
        hint=describe_names(maps),
        panels=pictures if notable and drawn and not isinstance(drawn[0], Heatmap) else (),
        point=partial(follow_places, maps, places) if patches and maps.self_attention and len(places) > 1 else None,
    )
    is_alone = len(maps.keys) == 1 and maps.sink is None
    return replace(report, blocks=(Note(ONE_KEY, leads=True), *notes), screen=()) if is_alone else report


def _describe_mean_hides(maps: AttentionMaps, places: Sequence[Place], measurements: Sequence[Measurement]) -> str:
    """Say how far heads are from the means that are drawn of them; "" where none is drawn, or there is one head."""
    layers = sorted({place[0] for place in places if is_mean(maps, place)})
    if not layers or maps.heads_alone.n_heads == 1:
        return ""
    known = next((m for m in measurements if m.name == "divergence_from_mean"), None)
    found = known or divergence_from_mean(maps.heads_alone)
    low, high = (f"{float(end(found.values[layers])):.2f}" for end in (np.min, np.max))
    apart = low if low == high else f"{low} to {high}"
    return f"heads differ from their mean by {apart} of at most {found.bounds[1]:.2f} nats (Jensen-Shannon divergence)"


def find_places(
    maps: AttentionMaps, spec: FigureOptions, layers: Sequence[int], heads: Sequence[int]
) -> tuple[Place, ...]:
    """Return the places in the record of the layer and head of each head that is drawn."""
    if spec.pick:
        return select_pairs(spec.pick, maps.layer_numbers, maps.head_numbers)
    return tuple(product(layers, heads))


def _draw_rollout(
    maps: AttentionMaps, part: TokenSelection, kind: ScaleKind
) -> tuple[Mapping[str, object], tuple[Heatmap, ...]]:
    """Return the numbers and the picture of rollout."""
    rolled = rollout(maps.heads_alone).astype(np.float32)
    frame = MapFrame.from_maps(maps, part)
    title = f"attention rollout through {captions.name_layers(maps)} (Abnar & Zuidema 2020)"
    picture = frame.draw_rows("rollout", title, rolled[part.rows], find_reachable(maps)[part.rows])
    what = f"share of the token after {captions.name_layers(maps)}"
    scale = choose_scale(kind, float(picture.values.max()), len(maps.keys), part.renormalizes(maps), what)
    return {"rollout": rolled}, (replace(picture, scale=scale),)


class RecordPart(NamedTuple):
    """A record as it is reported, before it is measured; layers and heads are places in it."""

    maps: AttentionMaps
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    names: tuple[str, ...]  # of measures beside those that are asked for

    def walk(self) -> Iterator[int]:
        """Find the pooled maps of these heads, if any, and statistics on the same walk: after measures it is a second.

        Yields each layer before it is walked over, which takes long of a long text.
        """
        if has_too_many_weights(self.maps, len(self.layers) * len(self.heads)):
            for layer in self.layers:
                yield layer
                compute_statistics(self.maps, layer, with_pools=True)

    def measure(self, spec: FigureOptions) -> tuple[Measurement, ...]:
        """Measure it. Raises InvalidOption as measures do."""
        found = measure_maps(self.maps, spec.measure)
        more = [name for name in self.names if name not in [each.name for each in found]]
        of_more = measure_maps(self.maps, more) if more else ()
        return (*found, *of_more)


def choose_from_record(maps: AttentionMaps, spec: FigureOptions) -> RecordPart:
    """Choose layers and heads of a record, weigh and merge its weights.

    Where the mean over heads is chosen, it is the last head of each layer, and how far the heads are from it is
    measured, too. Raises InvalidSelection for a layer or head that is not there, InvalidOption as these do.
    """
    layers = select_numbers(spec.layer, maps.layer_numbers, "layer")
    heads = select_numbers(spec.head, maps.head_numbers, "head", mean=True)
    picked = select_pairs(spec.pick, maps.layer_numbers, maps.head_numbers) if spec.pick else ()
    if spec.weigh == "values":
        maps = weigh_values(maps)
    if spec.merge is not None:
        maps = merge_words(maps, spec.merge)
    names = [parse_sort(spec.sort)[0].name] if spec.sort is not None else []
    if maps.n_heads in (*heads, *(head for _, head in picked)):
        heads = tuple(dict.fromkeys((*heads, maps.n_heads)))
        maps = add_mean(maps)
        names.append("divergence_from_mean")  # what is lost where heads are averaged
    return RecordPart(maps, layers, heads, tuple(names))
