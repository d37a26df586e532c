"""Attention maps as a report: pictures, tables, notes and data. Knows neither renderers nor models."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from attnviz.measures.shown import Findings, RecordPart, choose_from_record
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.part import Place
from attnviz.report import Block, Heatmap, HeatmapGrid, Note, Report
from attnviz.shapes import Cells, Shown
from attnviz.specs import FigureOptions, ScaleKind
from attnviz.views import captions, head_pictures
from attnviz.views.answer import describe_heads, describe_names, tabulate_answer
from attnviz.views.data import collect_data
from attnviz.views.head_pictures import MapFrame, choose_scale, is_mean
from attnviz.views.patches import draw_patches, follow_places
from attnviz.views.pooled_maps import add_factors, draw_pooled_maps
from attnviz.views.tables import heads_table, layers_table, top_table

MAX_LINES = 22  # of the first screen; up to three more say how long it takes and what was written
MAX_WORDS = 60  # tokens of a text that is read at a glance
ONE_KEY = "There is one token, which gets all attention of every head: nothing is drawn."


def make_report(maps: AttentionMaps, spec: FigureOptions) -> Report:
    """Choose from one record, measure that and report it, while nobody watches. Raises as these do."""
    part = choose_from_record(maps, spec)
    return heatmap_report(part, part.measure(spec), spec)


def heatmap_report(part: RecordPart, measured: Findings, spec: FigureOptions) -> Report:
    """Report all chosen heads side by side, then each alone, then tables and notes.

    With `spec.pick` just those heads side by side, with `spec.query` one row of each.
    """
    maps, places, tokens = part.maps, part.places, part.tokens
    plain = draw_pooled_maps(part, measured) if part.is_pooled else head_pictures.draw_heatmaps(maps, places, tokens)
    pictures = add_factors(part, measured, tuple(plain))
    notable, patches = measured.notable or (), draw_patches(part, measured, spec)
    drawn: list[Heatmap | HeatmapGrid] = []
    if tokens.asked is not None:
        drawn += [] if patches else [head_pictures.draw_strip(maps, places, tokens.asking)]
    elif not patches:
        is_many, together = measured.notable is not None, head_pictures.arrange_overview(part, measured, pictures, spec)
        drawn += head_pictures.draw_many(part, measured, together[0], spec.sort) if is_many else together
        if not spec.pick and (not is_many or spec.all_heads or spec.layer or spec.head):
            drawn += pictures
    others = (_draw_rollout(part, *measured.rolled, spec.scale),) if measured.rolled else ()
    numbers = heads_table(part, measured, spec)
    of_layers = layers_table(part, measured)
    listed = () if part.is_pooled or patches else pictures
    if notable and listed and spec.table != "full":  # of very many heads those that are worth a look
        listed = tuple(picture for picture, place in zip(pictures, places, strict=True) if place in notable)
    tops = [top_table(each, maps.real_queries, spec.top_k) for each in (*listed, *others)]
    notes = [*captions.collect_notes(maps.heads_alone)]
    answer: Sequence[Block] = patches or (*describe_heads(maps, measured), tabulate_answer(part, measured))
    if notable and not patches:
        n_heads = sum(not is_mean(maps, place) for place in places)
        notes.append(head_pictures.describe_choice(len(notable), n_heads, spec.sort))
    hides = _describe_mean_hides(maps, places, measured.numbers)
    share = None if measured.hidden is None else float(np.mean([measured.hidden.values[place] for place in places]))
    title = captions.compose_title(maps.provenance, spec.title, captions.quote_text(maps.provenance, maps.queries))
    largest = max(float(picture.values.max()) for picture in pictures)
    what = head_pictures.MOVED_LABEL if maps.weighed else head_pictures.WEIGHT_LABEL
    extent = largest, len(maps.keys), tokens.renormalizes(maps), what
    # Beside the sentence on one screen: of many heads those worth a look; none where it is no short text.
    is_square = maps.self_attention and tokens.queries == tokens.keys
    is_short = is_square and maps.grid is None and len(tokens.keys) <= MAX_WORDS
    shown = [place for place in places if is_short and not is_mean(maps, place) and (not notable or place in notable)]
    report = Report(
        title=title,
        subtitle=captions.join(captions.compose_subtitle(maps, tokens, share, own_title=spec.title is not None), hides),
        blocks=(*drawn, *others, *answer, numbers, *of_layers, *tops, *notes),
        scale=choose_scale(spec.scale, *extent),
        scales=head_pictures.list_scales(*extent),
        facts=captions.list_facts(maps.provenance),
        data=collect_data(title if spec.title is None else spec.title, part, measured),
        max_lines=MAX_LINES,
        screen=tuple((maps.layer_numbers[layer], int(maps.head_names[head])) for layer, head in shown),
        hint=describe_names(maps, measured),
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
    found = next(m for m in measurements if m.name == "divergence_from_mean")
    low, high = (f"{float(end(found.values[layers])):.2f}" for end in (np.min, np.max))
    apart = low if low == high else f"{low} to {high}"
    return f"heads differ from their mean by {apart} of at most {found.bounds[1]:.2f} nats (Jensen-Shannon divergence)"


def _draw_rollout(part: RecordPart, rolled: Cells, reachable: Shown, kind: ScaleKind) -> Heatmap:
    """Draw rollout, on a scale of its own."""
    maps, tokens = part.maps, part.tokens
    frame = MapFrame.from_maps(maps, tokens)
    title = f"attention rollout through {captions.name_layers(maps)} (Abnar & Zuidema 2020)"
    picture = frame.draw_rows("rollout", title, rolled[tokens.rows], reachable[tokens.rows])
    what = f"share of the token after {captions.name_layers(maps)}"
    scale = choose_scale(kind, float(picture.values.max()), len(maps.keys), tokens.renormalizes(maps), what)
    return replace(picture, scale=scale)
