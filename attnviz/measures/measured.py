"""Measures by name. Knows the table of measures and records."""

from __future__ import annotations

from collections.abc import Sequence

from attnviz.measures import MEASURES, SELF_ATTENTION_ONLY
from attnviz.record import AttentionMaps, Measurement
from attnviz.registry import find, load


def measured(maps: AttentionMaps, names: Sequence[str] = ()) -> tuple[Measurement, ...]:
    """The measures called `names`, in that order; without names every measure that these maps have.

    Raises BadOption for a name that is not in the table, or a measure that these maps do not have.
    """
    apply = [m.name for m in MEASURES if maps.self_attention or m.name not in SELF_ATTENTION_ONLY]
    plugins = [find(MEASURES, name, "measure") for name in names or apply]
    return tuple(load(plugin)(maps) for plugin in plugins)
