"""The grammar of --split, the same for every source: `train`, `train[:1000]`, `train[-10%:]`, `train+test`.

Knows numbers and names; must not know where texts come from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from attnviz.errors import InvalidOption

GRAMMAR = "Write train, train[:1000], train[10:20], train[-5:], train[:10%] or train+test."

_BOUND = r"\s*(-?[0-9]{1,18}%?)?\s*"  # 18 digits: no number that int() refuses
_PART = re.compile(rf"\s*(?P<name>\w+(?:[.-]\w+)*)\s*(?P<slice>\[{_BOUND}:{_BOUND}\])?\s*")
_ONE_TEXT = re.compile(r"\s*(?P<name>[^\[\]+]*)\[\s*(?P<number>-?[0-9]+)\s*\]\s*")


@dataclass(frozen=True)
class Bound:
    """One end of a slice: a number of texts, or a share of all of them in percent."""

    value: int
    percent: bool = False

    def resolve(self, count: int) -> int:
        """Return the bound in texts, rounded as `datasets` does, so that neighbouring shares meet without overlap."""
        return round(self.value * count / 100) if self.percent else self.value

    def __str__(self) -> str:
        return f"{self.value}%" if self.percent else str(self.value)


@dataclass(frozen=True)
class Part:
    """One split, or a slice of it."""

    name: str
    sliced: bool = False
    start: Bound | None = None
    stop: Bound | None = None

    def positions(self, count: int) -> range:
        """Return the positions in a split of `count` texts, by Python's rules for slices."""
        start, stop = (bound and bound.resolve(count) for bound in (self.start, self.stop))
        return range(*slice(start, stop).indices(count))

    @property
    def needed(self) -> int | None:
        """How many of the first texts suffice to find the positions; None where all have to be counted."""
        ends = (self.start or Bound(0), self.stop)
        if self.stop is None or any(end is None or end.percent or end.value < 0 for end in ends):
            return None
        return self.stop.value

    def __str__(self) -> str:
        bounds = (str(bound) if bound else "" for bound in (self.start, self.stop))
        return f"{self.name}[{':'.join(bounds)}]" if self.sliced else self.name


def parse(written: str) -> tuple[Part, ...]:
    """Parse the parts between plus signs. Raises InvalidOption for anything outside the grammar."""
    parts = []
    for part in written.split("+"):
        match = _PART.fullmatch(part)
        if match is None:
            # A single number in brackets is the commonest mistake, and --index selects one text.
            one = _ONE_TEXT.fullmatch(part)
            said = f"One text is --split {one['name']} --index {one['number']}. " if one and one["name"] else ""
            raise InvalidOption(f"--split {written!r} is not a split", hint=f"{said}{GRAMMAR}")
        ends = [Bound(int(end.removesuffix("%")), end.endswith("%")) if end else None for end in match.groups()[2:]]
        if any(end and end.percent and abs(end.value) > 100 for end in ends):
            raise InvalidOption(f"--split {written!r} asks for more than 100%", hint=GRAMMAR)
        parts.append(Part(match["name"], match["slice"] is not None, *ends))
    return tuple(parts)
