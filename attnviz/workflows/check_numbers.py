"""The numbers of a job against its baseline's: what is beyond the tolerance. Pure; reads and writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TypeAlias

from attnviz.differences import Unlike
from attnviz.manifest import Numbers

PerHead: TypeAlias = list[list[float]]
# A number with a fraction or an exponent, but no part of a word, an address or a version such as 2.13.0.
WRITTEN = re.compile(r"((?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\w|\.\d))", re.ASCII)


def unlike_numbers(job: str, expected: Numbers, actual: Numbers, tolerance: float) -> Iterator[Unlike]:
    """Every number that differs by more than `tolerance`, and every text, measure and head that only one has."""
    for text in dict.fromkeys([*expected, *actual]):
        if text not in actual:
            yield Unlike("missing numbers", job, text=text)
        elif text not in expected:
            yield Unlike("new numbers", job, text=text)
        else:
            yield from _of_text(job, text, expected[text], actual[text], tolerance)


def count(expected: Numbers, actual: Numbers) -> int:
    """How many numbers both have in the same place, so that they can be compared."""
    common = [(expected[text], actual[text]) for text in expected if text in actual]
    values = ((one[name], other[name]) for one, other in common for name in one if name in other)
    return sum(sum(map(len, one)) for one, other in values if shape(one) == shape(other))


def alike_texts(expected: bytes, actual: bytes, tolerance: float) -> bool:
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
    return all(_alike(left, right, tolerance) for left, right in zip(one[1::2], other[1::2], strict=True))


def _alike(left: str, right: str, tolerance: float) -> bool:
    if left == right:
        return True
    one, other = Decimal(left), Decimal(right)
    place = max(int(number.as_tuple().exponent) for number in (one, other))
    return abs(one - other) <= Decimal(repr(tolerance)) + Decimal(1).scaleb(place)


def _of_text(
    job: str, text: str, expected: dict[str, PerHead], actual: dict[str, PerHead], tolerance: float
) -> Iterator[Unlike]:
    for measure in dict.fromkeys([*expected, *actual]):
        if measure not in actual:
            yield Unlike("missing numbers", job, text=text, measure=measure)
        elif measure not in expected:
            yield Unlike("new numbers", job, text=text, measure=measure)
        elif shape(expected[measure]) != shape(actual[measure]):
            shapes = (shape(expected[measure]), shape(actual[measure]))
            yield Unlike("heads", job, text=text, measure=measure, expected=shapes[0], actual=shapes[1])
        else:
            for layer, head, before, after in pairs(expected[measure], actual[measure]):
                if not abs(after - before) <= tolerance:  # written so that NaN is beyond too
                    yield Unlike("number", job, "", text, measure, layer, head, float(before), float(after))


def pairs(expected: PerHead, actual: PerHead) -> Iterator[tuple[int, int, float, float]]:
    """Layer, head and both numbers, of the heads that both have."""
    for layer, (before, after) in enumerate(zip(expected, actual, strict=False)):
        for head, (one, other) in enumerate(zip(before, after, strict=False)):
            yield layer, head, one, other


def shape(values: Sequence[Sequence[float]]) -> str:
    """ "2 layers of 8 heads"."""
    widths = sorted({len(row) for row in values})
    layers = "1 layer" if len(values) == 1 else f"{len(values)} layers"
    if not widths:
        return "no layers"
    return f"{layers} of {' or '.join(map(str, widths))} head{'' if widths == [1] else 's'}"
