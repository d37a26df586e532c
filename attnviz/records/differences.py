"""What differs between two records, batches or surveys: a join of the facts that each side states.

A fact is a row: key columns say where it stands, and its value is a number or a text. Everything that is
compared states its facts in this form, so there is one join, one tolerance, one kind of finding and one report. What is
too large to be listed number by number, such as weights and pixels, is compared as arrays, and the findings take the
same form. Knows no files and no manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, TypeVar

import numpy as np
from jaxtyping import Int

from attnviz.errors import InvalidOption
from attnviz.table.intervals import MAX_DEGREES, MIN_TEXTS, t_quantile
from attnviz.table.numbers import Numbers, join

Kind = Literal["differs", "only before", "only after", "unreadable"]  # unreadable: not as its own manifest says
Value = str | int | float | None
Member = TypeVar("Member")
SIDES = "before", "after"
NUMBER, WEIGHT, JSD, TOP_KEY = "number", "weight", "jsd", "top_key"
NUMBERS, FILES = "numbers", "files"  # that both sides have
OTHER_BYTES = "other_bytes"  # files that say the same within the tolerances, in other bytes


@dataclass(frozen=True)
class Tolerances:
    """By how much two sides may differ. Raises InvalidOption below 0 and for NaN."""

    numbers: float = 0.0  # and weights, absolute
    named: Mapping[str, float] = field(default_factory=dict)  # the same of single measures
    pixels: float = 0.0  # of pictures, root mean square over channels of 0 to 255
    exact: bool = False  # compare the bytes of files, not what they say
    max_memory: float = 4.0  # GiB that the process may take for two files

    def __post_init__(self) -> None:
        flags = {f"--tolerance {name}=": value for name, value in self.named.items()}
        for flag, value in {**flags, "--tolerance ": self.numbers, "--pixels ": self.pixels}.items():
            if not (isfinite(value) and value >= 0):
                raise InvalidOption(f"{flag}{value} is not a tolerance", hint="Give a finite number of at least 0.")

    def allow(self, found: Difference) -> bool:
        """Return whether both sides have the number, as near as it has to be."""
        limit = self.named.get(found.measure or found.what, self.numbers)
        return found.kind == "differs" and abs(found.change) <= limit  # False of NaN

    def find_beyond(self, facts: Numbers) -> Int[np.ndarray, " place"]:
        """Return the places of joined facts that only one side has, or whose values differ by more than they may."""
        there = [facts.array(f"in {side}").astype(bool) for side in SIDES]
        shared = np.flatnonzero(there[0] & there[1])
        if not len(shared):
            return np.arange(len(facts))
        one, other = (facts.array(f"value {side}") for side in SIDES)
        alike = one == other
        if one.dtype == other.dtype == np.float64:
            limits = np.full(len(facts), self.numbers)
            for name, limit in self.named.items():
                limits[facts.array("measure") == name] = limit
            alike |= np.abs(other - one) <= limits  # False of NaN
        return np.flatnonzero(~(there[0] & there[1] & alike))


@dataclass(frozen=True)
class Difference:
    """A fact and its value on both sides. What does not apply is empty or None."""

    kind: Kind
    what: str = NUMBER  # "job", "setting dpi", "number", "weight", "file" …
    job: str = ""
    file: str = ""  # its path in the folder of the batch
    text: str = ""
    measure: str = ""
    layer: int | None = None
    head: int | None = None
    before: Value = None
    after: Value = None
    said: str = ""  # further words, such as how many pixels differ
    of: str = ""  # what the number belongs to if not to a layer or head, such as a model, or the mean over heads
    interval: float | None = None  # half of the 95 % interval of the change, of means over enough texts

    @property
    def where(self) -> str:
        """ "layer 3, head 1", "layer 3" of a measure of a whole layer, or what else it is of; "" where it is whole."""
        places = (("layer", self.layer), ("head", self.head))
        return self.of or ", ".join(f"{name} {number}" for name, number in places if number is not None)

    @property
    def change(self) -> float:
        """After minus before, of a number; 0 of all else."""
        if isinstance(self.before, float) and isinstance(self.after, float):
            return self.after - self.before
        return 0.0


@dataclass(frozen=True)
class Diff:
    """All that a comparison found, and how much it compared."""

    differences: Sequence[Difference]
    changes: Sequence[Difference] = ()  # numbers of both sides to be listed, also such as differ by a tolerated amount
    measures: tuple[str, ...] = ()  # that both sides have
    versions: Sequence[tuple[str, str, str]] = ()  # package, before, after; no differences by themselves
    jobs: tuple[str, ...] = ()  # of either batch, in order
    counts: Mapping[str, int] = field(default_factory=dict)  # of NUMBERS, FILES and OTHER_BYTES
    failed_alike: tuple[str, ...] = ()  # jobs with the same error on both sides


def state_words(words: Mapping[str, object]) -> Numbers:
    """Make facts of settings and the like, each under its name."""

    def write(value: object) -> str:
        if isinstance(value, list | tuple):
            return ", ".join(map(str, value)) or "none"
        return "none" if value in (None, "") else str(value)

    return Numbers.from_rows(({"what": name, "value": write(value)} for name, value in words.items()), ("what",))


def join_facts(
    before: Numbers, after: Numbers, *, within: Tolerances | None = None, **place: Any
) -> Iterator[Difference]:
    """Yield the facts of either side that differ by more than they may, or all where no tolerance is given.

    Keys say where a fact stands, and `place` where all of them do; its `value` is a number or a text. A mean over `n`
    texts may have a standard `error`: then the change has an interval.
    """
    joined = join(before, after)
    for row in (joined if within is None else joined.take(within.find_beyond(joined))).rows():
        there = row["in before"], row["in after"]
        interval = None
        if all(there) and min(row.get("n before") or 0, row.get("n after") or 0) >= MIN_TEXTS:
            degrees = min(row["n before"], row["n after"], MAX_DEGREES + 1) - 1
            interval = float(t_quantile(degrees) * np.hypot(row["error before"], row["error after"]))
        kind = "differs" if all(there) else name_side(there[0])
        where: dict[str, Any] = {name: row[name] for name in before.keys if row[name] is not None}
        ends = row.get("value before"), row.get("value after")
        yield Difference(kind, before=ends[0], after=ends[1], interval=interval, **place, **where)


def find_version_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return package, before and after of those that changed; "none" where there was none."""
    return [(name, old or "none", new or "none") for name, old, new in pair_by_name(before, after) if old != new]


def pair_by_name(
    before: Mapping[str, Member], after: Mapping[str, Member]
) -> Iterator[tuple[str, Member | None, Member | None]]:
    """Pair what both have under each name, in order; None where one has nothing."""
    return ((name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after]))


def name_side(is_before: bool) -> Kind:
    """Return the kind of difference for something that is on one side only."""
    return "only before" if is_before else "only after"
