"""Attention maps as a report: pictures, tables, notes and data. Knows neither renderers nor models."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from attnviz.errors import BadSelection
from attnviz.records import AttentionMaps, Measurement
from attnviz.report import Block, Heatmap, Panels, Report, Scale
from attnviz.specs import DrawSpec, ScaleKind
from attnviz.views import captions
from attnviz.views.data import data
from attnviz.views.tables import heads_table, top_table
from attnviz.views.tokens import labels

MOST_SEEN = 64  # keys: with more of them most weights are below 0.016


def heatmap_report(
    maps: AttentionMaps,
    measurements: Sequence[Measurement],
    spec: DrawSpec,
    layers: Sequence[int],
    heads: Sequence[int],
) -> Report:
    """All chosen heads side by side, then each alone, then tables and notes.

    Raises BadSelection for a layer or head that the record does not have.
    """
    _check("layer", layers, maps.n_layers)
    _check("head", heads, maps.n_heads)
    pictures = heatmaps(maps, layers, heads)
    blocks: list[Block] = [*_overview(pictures, layers, heads), *pictures]
    blocks.append(heads_table(maps, measurements, layers, heads))
    blocks += [top_table(maps, layer, head, spec.top_k) for layer in layers for head in heads]
    blocks += captions.notes(maps)
    title = captions.title(maps.provenance, spec.title)
    return Report(
        title=title,
        subtitle=captions.subtitle(maps, own_title=bool(spec.title)),
        blocks=tuple(blocks),
        scale=scale(spec.scale, maps, layers, heads),
        facts=captions.facts(maps.provenance),
        data=data(spec.title or title, maps, measurements, layers, heads),
    )


def heatmaps(maps: AttentionMaps, layers: Sequence[int], heads: Sequence[int]) -> tuple[Heatmap, ...]:
    """One map per head, layer by layer."""
    rows = labels(maps.queries)
    columns = rows if maps.self_attention else labels(maps.keys)
    return tuple(
        Heatmap(
            name=f"layer-{layer}-head-{head}",
            title=f"layer {layer}, head {head}",
            values=maps.weights[layer, head],
            allowed=maps.attendable[layer],
            rows=rows,
            columns=columns,
        )
        for layer in layers
        for head in heads
    )


def scale(kind: ScaleKind, maps: AttentionMaps, layers: Sequence[int], heads: Sequence[int]) -> Scale:
    """One range of colours for all drawn maps (see `scale_over`)."""
    high = max(float(maps.weights[layer, head].max()) for layer in layers for head in heads)
    return scale_over(kind, high, len(maps.keys))


def scale_over(kind: ScaleKind, high: float, n_keys: int) -> Scale:
    """One range of colours; the label says which, so that no picture flatters unnoticed.

    `high` is the largest weight drawn. `log` begins a tenth below the weight of uniform attention, rounded down to a
    power of ten. `auto` is `shared`, and `log` for more than 64 keys, where most weights are too small to be seen.
    """
    if kind == "auto":
        kind = "shared" if n_keys <= MOST_SEEN else "log"
    if kind == "fixed":
        return Scale(kind, 0.0, 1.0, "attention weight (fixed scale, 0 to 1)")
    if kind == "shared":
        return Scale(kind, 0.0, high, f"attention weight (shared scale, 0 to {high:.3g})")
    low = min(max(10.0 ** floor(log10(0.1 / n_keys)), 1e-8), 1e-2)
    return Scale(kind, low, 1.0, f"attention weight (logarithmic scale, {low:g} to 1)")


def _overview(pictures: tuple[Heatmap, ...], layers: Sequence[int], heads: Sequence[int]) -> tuple[Panels, ...]:
    """A row per layer; the heads of a single layer in rows of about four."""
    if len(pictures) < 2:
        return ()
    if len(layers) > 1:
        return (Panels("overview", "one row per layer, one column per head", pictures, len(heads)),)
    return (Panels("overview", f"{len(heads)} heads of layer {layers[0]}", pictures, _grid(len(heads))),)


def _grid(n_heads: int) -> int:
    """How many heads in a row: about four, with the fewest empty places."""
    return n_heads if n_heads <= 4 else min((4, 3, 5), key=lambda n_columns: -n_heads % n_columns)


def _check(kind: str, chosen: Sequence[int], number: int) -> None:
    for index in chosen:
        if not 0 <= index < number:
            hint = f"This model has {kind}s 0 to {number - 1}." if number > 1 else f"This model has only {kind} 0."
            raise BadSelection(f"no {kind} {index}", hint=hint)
    if not chosen:
        raise BadSelection(f"no {kind} is chosen", hint=f"This model has {kind}s 0 to {number - 1}.")
