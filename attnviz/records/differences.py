"""What differs between two records, batches or surveys, one thing at a time. Knows no files and no manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Literal, TypeVar

from attnviz.errors import InvalidOption

Kind = Literal["differs", "only before", "only after", "unreadable"]  # unreadable: not as its own manifest says
Value = str | int | float | None
Member = TypeVar("Member")
WEIGHT, JSD, TOP_KEY = "weight", "jsd", "top_key"  # what a tolerance may be for, beside measures


@dataclass(frozen=True, eq=False)
class ComparedMeans:
    """What is found between two files of means over texts. `changes`: of what both have, the surest change first, each
    with half of its 95 % interval, NaN of too few texts.
    """

    differences: tuple[Difference, ...]
    changes: Sequence[tuple[Difference, float]]
    measures: tuple[str, ...]  # that both have
    versions: tuple[tuple[str, str, str], ...]  # see `find_version_changes`


@dataclass(frozen=True)
class Tolerances:
    """By how much two sides may differ. Raises InvalidOption below 0 and for NaN."""

    numbers: float = 0.0  # and weights, absolute
    named: Mapping[str, float] = field(default_factory=dict)  # the same of single measures
    pixels: float = 0.0  # of pictures, root mean square over channels of 0 to 255
    exact: bool = False  # compare the bytes of files, not what they say
    max_memory: float = 4.0  # GiB that the process may take for two files

    def __post_init__(self) -> None:
        for name in self.named:
            check_tolerance(self.named[name], f"--tolerance {name}=")
        check_tolerance(self.numbers, "--tolerance ")
        check_tolerance(self.pixels, "--pixels ")

    def allow(self, name: str, change: float) -> bool:
        """Return whether a number of this name may change by so much, up or down."""
        return abs(change) <= self.named.get(name, self.numbers)  # False of NaN


def check_tolerance(value: float, name: str) -> None:
    """Raise InvalidOption below 0, for infinity and for NaN."""
    if not (isfinite(value) and value >= 0):
        raise InvalidOption(f"{name}{value} is not a tolerance", hint="Give a finite number of at least 0.")


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same on both sides. What does not apply is empty or None."""

    kind: Kind
    what: str  # "job", "setting dpi", "number", "weight", "picture" …
    job: str = ""
    file: str = ""  # its path in the folder of the batch
    text: str = ""
    measure: str = ""
    layer: int | None = None
    head: int | str | None = None  # "mean": of the mean over heads
    before: Value = None
    after: Value = None
    said: str = ""  # further words, such as how many pixels differ
    of: str = ""  # what the number belongs to if not to a layer or head, such as a model

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
class HeadChange:
    """One head of one record against the same head of another."""

    layer: int
    head: int
    jsd: float  # mean over queries, nats
    top_changed: int  # queries without a favourite key in common
    n_queries: int
    measures: tuple[Difference, ...] = ()

    @property
    def values(self) -> dict[str, float]:
        """By name, how far the head went: what a tolerance may be of."""
        apart = {JSD: self.jsd, TOP_KEY: self.top_changed / self.n_queries}
        return apart | {each.measure: each.change for each in self.measures}


@dataclass(frozen=True)
class Diff:
    """All that a comparison found, and how much it compared."""

    differences: tuple[Difference, ...]
    jobs: tuple[str, ...] = ()  # of either batch, in order
    n_numbers: int = 0
    n_files: int = 0
    n_other_bytes: int = 0  # files that say the same within the tolerances, in other bytes
    failed_alike: tuple[str, ...] = ()  # jobs with the same error on both sides
    versions: tuple[tuple[str, str, str], ...] = ()  # see `find_version_changes`; no differences by themselves


def pair_by_name(
    before: Mapping[str, Member], after: Mapping[str, Member]
) -> Iterator[tuple[str, Member | None, Member | None]]:
    """Pair what both have under each name, in order; None where one has nothing."""
    return ((name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after]))


def find_version_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Return package, before and after of those that changed; "none" where there was none."""
    return tuple((name, old or "none", new or "none") for name, old, new in pair_by_name(before, after) if old != new)


def name_side(is_before: bool) -> Kind:
    """Return the kind of difference for something that is on one side only."""
    return "only before" if is_before else "only after"


def compare_values(place: Difference, sides: Sequence[Mapping[str, object]], what: str = "") -> Iterator[Difference]:
    """Yield a difference for every name under which the two sides have other values, such as "setting dpi"."""
    for name, one, other in pair_by_name(*sides):
        if one != other:
            left, right = (_format_value(side[name]) if name in side else "not set" for side in sides)
            yield replace(place, what=f"{what}{name}".replace("_", " "), before=left, after=right)


def _format_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)
