"""Measures by name. Knows the table of measures and records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from attnviz.errors import InvalidOption, NotMeasurable
from attnviz.measures import ALL, FORMER_NAMES, HEADLINE, MEASURES, Measure
from attnviz.records import AttentionMaps, Level, Measurement
from attnviz.registry import load, suggestion


def chosen(names: Sequence[str], otherwise: Sequence[str] = HEADLINE) -> tuple[Measure, ...]:
    """The measures called `names`, each once and in that order; without names those called `otherwise`.

    An item may hold several names with commas; `all` is every measure that each text has. Raises InvalidOption for one
    not in the table.
    """
    known = {measure.name: measure for measure in MEASURES}
    asked = split_names(names) or list(otherwise)
    for name in asked:
        if name not in known and name != ALL:
            raise InvalidOption(f"no measure {name!r}", hint=suggestion(name, [*known, ALL]))
    if ALL in asked:
        return tuple(measure for measure in MEASURES if measure.name in asked or not measure.of_some_texts)
    return tuple(known[name] for name in dict.fromkeys(asked))


def split_names(names: Sequence[str]) -> list[str]:
    """Names of measures as they are called today, of items that may hold several with commas."""
    asked = [name.strip().lower() for item in names for name in item.split(",")]
    return [FORMER_NAMES.get(name, name) for name in asked]


def measured(maps: AttentionMaps, names: Sequence[str] = (), level: Level | None = None) -> tuple[Measurement, ...]:
    """The chosen measures, without names those of the headline that these maps have; of one level where it is given.

    Raises InvalidOption as `chosen` does, and for a measure that was named and that these maps do not have.
    """
    return tuple(load(measure)(maps) for measure in _of(maps, names) if level in (None, measure.level))


def measurable(maps: AttentionMaps, names: Sequence[str]) -> dict[str, Measurement]:
    """The chosen measures by name, without those of what this text does not have. Raises InvalidOption otherwise."""
    found = {}
    for measure in _of(maps, names):
        with suppress(NotMeasurable):
            found[measure.name] = load(measure)(maps)
    return found


def _of(maps: AttentionMaps, names: Sequence[str]) -> Iterator[Measure]:
    """A measure that is asked for by its name is tried, and says why it cannot be had."""
    some = f"the record has {maps.n_heads} of {maps.n_heads + len(maps.unseen_heads)}" if maps.unseen_heads else ""
    named = set(split_names(names)) - {ALL}
    for measure in chosen(names, HEADLINE if maps.sink is None else (*HEADLINE, "to_sink")):
        if some and measure.level == "layer":
            if measure.name in named:
                problem = f"{measure.name} is of all heads of a layer together, and {some}"
                raise InvalidOption(problem, hint="Record all heads.")
        elif maps.self_attention or not measure.self_attention_only or measure.name in named:
            yield measure
