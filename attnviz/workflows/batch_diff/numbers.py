"""The numbers of a job against its baseline's: what is beyond the tolerance. Pure; reads and writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from attnviz.differences import Difference
from attnviz.manifest import Entry, Numbers
from attnviz.measures import OF_LAYERS

PerHead = list[list[float]]
Value = TypeVar("Value")
# A number with a fraction or an exponent, but no part of a word, an address or a version such as 2.13.0.
WRITTEN = re.compile(r"((?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\w|\.\d))", re.ASCII)


def paired(
    expected: Mapping[str, Value], actual: Mapping[str, Value]
) -> Iterator[tuple[str, Value | None, Value | None]]:
    """What both have under each name, in order; None where one has nothing."""
    return ((name, expected.get(name), actual.get(name)) for name in dict.fromkeys([*expected, *actual]))


def compare_numbers(job: str, expected: Numbers, actual: Numbers, tolerance: float | None) -> Iterator[Difference]:
    """Every number that differs by more than `tolerance`, and every text, measure and head that only one has.

    Without a tolerance every number that both have, whether it differs or not.
    """
    for text, one, other in paired(expected, actual):
        if one is None or other is None:
            yield Difference("new numbers" if one is None else "missing numbers", job, text=text)
        else:
            for measure, before, after in paired(one, other):
                yield from _compare_measure((job, "", text, measure), before, after, tolerance)


def _compare_measure(
    place: tuple[str, str, str, str], before: PerHead | None, after: PerHead | None, tolerance: float | None
) -> Iterator[Difference]:
    if before is None or after is None:
        yield Difference("new numbers" if before is None else "missing numbers", *place)
        return
    shapes = heads_in_words(before), heads_in_words(after)
    if shapes[0] != shapes[1]:
        yield Difference("heads", *place, None, None, *shapes)
        if tolerance is not None:
            return  # heads of one number need not be of one kind
    for layer, rows in enumerate(zip(before, after, strict=False)):
        for head, (left, right) in enumerate(zip(*rows, strict=False)):
            if tolerance is None or not abs(right - left) <= tolerance:  # written so that NaN is beyond too
                yield Difference("number", *place, layer, head, float(left), float(right))


def placed(found: Difference, entry: Entry) -> Difference:
    """A number under the names of what it is of, instead of its place in the manifest."""
    if found.layer is None or found.head is None:
        return found
    if entry.command != "heatmap":
        models = entry.settings.get("models")
        names = models if isinstance(models, tuple) and entry.command == "compare" else ()
        what = "model" if entry.command == "compare" else "label"
        of = str(names[found.head]) if found.head < len(names) else f"{what} {found.head}"
        return replace(found, layer=None, head=None, of=of)
    layer, head = (
        dict(enumerate(of_texts.get(found.text, ()))).get(place, place)
        for of_texts, place in ((entry.layers, found.layer), (entry.heads, found.head))
    )
    return replace(found, layer=layer, head=None if found.measure in OF_LAYERS else head)


def other_places(expected: Entry, actual: Entry) -> Iterator[Difference]:
    """Texts of which other layers or heads were measured. Where one says nothing of it, it is older or has all."""
    for text in expected.numbers.keys() & actual.numbers.keys():
        for name in ("layers", "heads"):
            before, after = (getattr(entry, name).get(text) for entry in (expected, actual))
            if before and after and before != after:
                said = (f"{name} {', '.join(map(str, numbers))}" for numbers in (before, after))
                yield Difference("heads", actual.name, "", text, "", None, None, *said)


def count_numbers(expected: Numbers, actual: Numbers) -> int:
    """How many numbers both have in the same place, so that they can be compared."""
    common = ((one, other) for _, one, other in paired(expected, actual) if one and other)
    values = ((one, other) for texts in common for _, one, other in paired(*texts) if one and other)
    return sum(sum(map(len, one)) for one, other in values if heads_in_words(one) == heads_in_words(other))


def is_same_text(expected: bytes, actual: bytes, tolerance: float) -> bool:
    """Whether two text files say the same: the same words and whole numbers, and every other number within `tolerance`.

    One that is rounded may also differ by one in its last place, because what is nearly the same may be rounded up or
    down.
    """
    try:
        one, other = (WRITTEN.split(data.decode("utf-8")) for data in (expected, actual))
    except UnicodeDecodeError:
        return False
    if len(one) != len(other) or one[::2] != other[::2]:
        return False
    return all(_is_near(left, right, tolerance) for left, right in zip(one[1::2], other[1::2], strict=True))


def _is_near(left: str, right: str, tolerance: float) -> bool:
    if left == right:
        return True
    one, other = Decimal(left), Decimal(right)
    place = max(int(number.as_tuple().exponent) for number in (one, other))
    return abs(one - other) <= Decimal(repr(tolerance)) + Decimal(1).scaleb(place)


def heads_in_words(values: PerHead) -> str:
    """ "2 layers of 8 heads"."""
    widths = sorted({len(row) for row in values})
    if not widths:
        return "no layers"
    layers = "1 layer" if len(values) == 1 else f"{len(values)} layers"
    return f"{layers} of {' or '.join(map(str, widths))} head{'' if widths == [1] else 's'}"
