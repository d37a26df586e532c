"""What is measured of one record as rows of a table: one for each head, and one for all heads of a layer together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attnviz.measures import measure_maps
from attnviz.records import AttentionMaps

KEYS = ("layer", "head")


def measure_heads(maps: AttentionMaps, names: Sequence[str] = ()) -> Iterator[dict[str, object]]:
    """Yield the rows of a table with a column for each measure; measures of all heads of a layer have no `head`.

    The chosen measures are those of `measure_maps`, in their units. Layers and heads go by the record's own numbers.
    Raises InvalidOption as `measure_maps` does.
    """
    measured = measure_maps(maps, names)
    of_layers = [each for each in measured if each.level == "layer"]
    of_heads = [each for each in measured if each.level == "head"]
    for place, layer in enumerate(maps.layer_numbers):
        if of_layers:
            yield {"layer": layer, "head": None, **{each.name: float(each.values[place]) for each in of_layers}}
        for column, head in enumerate(maps.head_numbers if of_heads else ()):
            yield {"layer": layer, "head": head, **{each.name: float(each.values[place, column]) for each in of_heads}}
