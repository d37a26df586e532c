"""Numbers from records. Measures of one thing share a file; adding one is a function there and one line here.

A measure knows records and nothing of models, views or files. Only real queries count (see `AttentionMaps`), rows count
as if they summed to exactly 1, and a record is walked over in blocks of rows that the processor's cache holds (see
`rows`): what several measures start from is worked out in one walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.errors import InvalidOption
from attnviz.registry import Plugin, find, load, suggest_name

if TYPE_CHECKING:  # records import numpy, which help and completion do without
    from attnviz.records import AttentionMaps, Level, Measurement


SHARE, NATS, KEYS, TOKENS, HEADS = "share", "nats", "keys", "tokens", "heads"  # units
OF_PLACES = ("distance", "to_self", "to_previous", "to_next", "to_first", "to_same_word", "to_own_bracket")
OF_LAYERS = ("vendi_score", "divergence_from_mean")  # one number of all heads of a layer together
SOME_TEXTS_MEASURES = frozenset({"to_own_bracket"})


@dataclass(frozen=True)
class Measure(Plugin):
    """A registration line. `level`: what it is one number of, a head or all heads of a layer together.

    A measure `of_some_texts` raises NotMeasurable for others, and is not among `all`. One of places in a text is of
    self-attention only.
    """

    unit: str  # what its numbers are counted in
    source: str  # the paper, short; the whole reference is in the docstring
    label: str  # name of a head that attends mostly there; "": the measure names no head
    level: Level
    self_attention_only: bool
    of_some_texts: bool


def _measure(where: str, summary: str, unit: str, source: str, label: str = "") -> Measure:
    """Register a measure by its file and its function, whose name it has."""
    name = where.partition(":")[2]
    level: Level = "layer" if name in OF_LAYERS else "head"
    needs = (name in OF_PLACES, name in SOME_TEXTS_MEASURES)
    return Measure(name, f"attnviz.measures.{where}", summary, unit, source, label, level, *needs)


def _share(name: str, summary: str, source: str, label: str) -> Measure:
    """Register a share of attention, by which heads are named."""
    return _measure(f"shares:{name}", summary, SHARE, source, label)


MEASURES = (
    _measure("concentration:entropy", "how widely a query spreads its attention", NATS, "Clark et al. 2019"),
    _measure("concentration:effective_keys", "how many keys a query attends to, exp of the entropy", KEYS, "Hill 1973"),
    _measure("concentration:peak", "the share that goes to a query's favourite key", SHARE, "Voita et al. 2019"),
    _measure("shares:distance", "how far away a query attends", TOKENS, "Vig & Belinkov 2019"),
    _share("to_self", "the share that goes to the query's own position", "Kovaleva et al. 2019", "itself"),
    _share("to_previous", "the share that goes to the position before", "Clark et al. 2019", "previous token"),
    _share("to_next", "the share that goes to the position after", "Clark et al. 2019", "next token"),
    _share("to_first", "the share that goes to the first token, often a sink", "Xiao et al. 2023", "first token"),
    _share("to_sink", "the share that goes to a learned sink, which is no token", "Agarwal et al. 2025", "sink"),
    _share("to_special", "the share that goes to markers such as [CLS]", "Clark et al. 2019", "special tokens"),
    _share("to_punctuation", "the share that goes to punctuation and symbols", "Clark et al. 2019", "punctuation"),
    _share("to_same_word", "the share that goes to the same word elsewhere", "Wang et al. 2022", "same word"),
    _share("to_own_bracket", "the share of closing brackets on their opening ones", "Clark et al. 2019", "own bracket"),
    _measure(
        "concentration:query_information",
        "how much the query decides where it attends; 0: all queries alike",
        NATS,
        "Shannon 1948",
    ),
    _measure("divergence:vendi_score", "how many distinct heads there are in effect", HEADS, "Friedman & Dieng 2022"),
    _measure("divergence:divergence_from_mean", "how far the mean of the heads is from each of them", NATS, "Lin 1991"),
)
PATTERNS = {measure.name: measure.label for measure in MEASURES if measure.label}  # those by which heads are named
DEFAULT_MEASURES = ("entropy", "effective_keys", "distance", "peak")  # shown where no measure is chosen
ALL = "all"


def choose_measures(names: Sequence[str], otherwise: Sequence[str] = DEFAULT_MEASURES) -> tuple[Measure, ...]:
    """Return the measures called `names`, each once and in that order; without names those called `otherwise`.

    An item may hold several names with commas; `all` is every measure that each text has. Raises InvalidOption for one
    not in the table.
    """
    known = {measure.name: measure for measure in MEASURES}
    asked = split_names(names) or list(otherwise)
    for name in asked:
        if name not in known and name != ALL:
            raise InvalidOption(f"no measure {name!r}", hint=suggest_name(name, [*known, ALL]))
    if ALL in asked:
        return tuple(measure for measure in MEASURES if measure.name in asked or not measure.of_some_texts)
    return tuple(known[name] for name in dict.fromkeys(asked))


def parse_sort(sort: str) -> tuple[Measure, bool]:
    """Return the measure that heads are sorted by, and whether the smallest comes first.

    Raises InvalidOption for one that there is not, and for one that is no number of a single head.
    """
    ascending = sort.strip().startswith("-")
    measure = find(MEASURES, sort.strip().removeprefix("-").lower(), "measure")
    assert isinstance(measure, Measure)
    if measure.level == "layer":
        hint = "It is one number for all heads of a layer together; sort by a number of each head, such as entropy."
        raise InvalidOption(f"heads cannot be sorted by {measure.name}", hint=hint)
    return measure, ascending


def split_names(names: Sequence[str]) -> list[str]:
    """Split items that may hold several names with commas into the names of measures."""
    return [name.strip().lower() for item in names for name in item.split(",")]


def measure_maps(maps: AttentionMaps, names: Sequence[str] = (), level: Level | None = None) -> tuple[Measurement, ...]:
    """Compute the chosen measures, by default those of DEFAULT_MEASURES that these maps have; of one level if given.

    Raises InvalidOption as `chosen` does, and for a measure that was named and that these maps do not have.
    """
    return tuple(_compute(measure, maps) for measure in _list_measurable(maps, names) if level in (None, measure.level))


def _compute(measure: Measure, maps: AttentionMaps) -> Measurement:
    """Compute one measure; a mean over heads is none of the heads that are taken together.

    Raises InvalidOption where it needs self-attention and queries and keys are different texts.
    """
    if measure.self_attention_only:
        from attnviz.measures.rows import check_self_attention  # with numpy

        check_self_attention(maps, measure.name)
    found: Measurement = load(measure)(maps.heads_alone if measure.level == "layer" else maps)
    return found


def _list_measurable(maps: AttentionMaps, names: Sequence[str]) -> Iterator[Measure]:
    """Yield the chosen measures that suit the maps, and any other that was named: computing that one raises."""
    some = f"the record has {maps.n_heads} of {maps.n_heads + len(maps.unseen_heads)}" if maps.unseen_heads else ""
    named = set(split_names(names)) - {ALL}
    for measure in choose_measures(names, DEFAULT_MEASURES if maps.sink is None else (*DEFAULT_MEASURES, "to_sink")):
        if some and measure.level == "layer":
            if measure.name in named:
                raise InvalidOption(f"{measure.name} needs all heads of a layer, and {some}", hint="Record all heads.")
        elif maps.self_attention or not measure.self_attention_only or measure.name in named:
            yield measure


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
