"""The numbers of a job against its baseline's: what is beyond the tolerance. Pure; reads and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeVar

from attnviz.differences import Difference
from attnviz.manifest import Entry
from attnviz.measures import OF_LAYERS

PerHead = list[list[float]]
Value = TypeVar("Value")
Compared = Difference | Literal["same number", "same bytes", "same content"]


def paired(
    expected: Mapping[str, Value], actual: Mapping[str, Value]
) -> Iterator[tuple[str, Value | None, Value | None]]:
    """What both have under each name, in order; None where one has nothing."""
    return ((name, expected.get(name), actual.get(name)) for name in dict.fromkeys([*expected, *actual]))


def compare_numbers(expected: Entry, actual: Entry, tolerance: float | None) -> Iterator[Compared]:
    """Every number that both have and how it compares, and every text, measure and head that only one has.

    Without a tolerance no number is the same, whether it differs or not.
    """
    yield from _other_places(expected, actual)
    for text, one, other in paired(expected.numbers, actual.numbers):
        if one is None or other is None:
            yield Difference("new numbers" if one is None else "missing numbers", actual.name, text=text)
            continue
        for measure, before, after in paired(one, other):
            place = Difference("number", actual.name, "", text, measure)
            for each in _compare_measure(place, before, after, tolerance):
                yield _placed(each, actual) if isinstance(each, Difference) else each


def _compare_measure(
    number: Difference, before: PerHead | None, after: PerHead | None, tolerance: float | None
) -> Iterator[Compared]:
    if before is None or after is None:
        yield replace(number, kind="new numbers" if before is None else "missing numbers")
        return
    shapes = heads_in_words(before), heads_in_words(after)
    if shapes[0] != shapes[1]:
        yield replace(number, kind="heads", expected=shapes[0], actual=shapes[1])
        if tolerance is not None:
            return  # heads of one number need not be of one kind
    for layer, rows in enumerate(zip(before, after, strict=False)):
        for head, (left, right) in enumerate(zip(*rows, strict=False)):
            if tolerance is None or not abs(right - left) <= tolerance:  # written so that NaN is beyond too
                yield replace(number, layer=layer, head=head, expected=float(left), actual=float(right))
            else:
                yield "same number"


def _placed(found: Difference, entry: Entry) -> Difference:
    """A number under the names of what it is of, instead of its place in the manifest."""
    if found.layer is None or found.head is None:
        return found
    if entry.command == "heatmap":
        layers, heads = (dict(enumerate(of_text.get(found.text, ()))) for of_text in (entry.layers, entry.heads))
        head = None if found.measure in OF_LAYERS else heads.get(found.head, found.head)
        return replace(found, layer=layers.get(found.layer, found.layer), head=head)
    models = entry.settings.get("models") if entry.command == "compare" else ()
    names = dict(enumerate(models if isinstance(models, tuple) else ()))
    what = "model" if entry.command == "compare" else "label"
    return replace(found, layer=None, head=None, of=str(names.get(found.head, f"{what} {found.head}")))


def _other_places(expected: Entry, actual: Entry) -> Iterator[Difference]:
    """Texts of which other layers or heads were measured. Where one says nothing of it, it is older or has all."""
    for text in filter(actual.numbers.__contains__, expected.numbers):
        for name in ("layers", "heads"):
            before, after = (getattr(entry, name).get(text) for entry in (expected, actual))
            if before and after and before != after:
                said = (f"{name} {', '.join(map(str, numbers))}" for numbers in (before, after))
                yield Difference("heads", actual.name, "", text, "", None, None, *said)


def heads_in_words(values: PerHead) -> str:
    """ "2 layers of 8 heads"."""
    widths = sorted({len(row) for row in values})
    if not widths:
        return "no layers"
    layers = "1 layer" if len(values) == 1 else f"{len(values)} layers"
    return f"{layers} of {' or '.join(map(str, widths))} head{'' if widths == [1] else 's'}"
