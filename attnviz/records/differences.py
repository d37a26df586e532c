"""What differs between two records, batches, surveys or pictures: a join of the facts that each side states.

A fact says where it stands and has a number or a text as its value; a side is a table of facts by their places. So
whatever is compared there is one join, one tolerance, one kind of finding and one report. What is too large to be
listed number by number, such as weights and pixels, is compared as arrays, and the findings take the same form.
Knows no files and no manifests.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import PurePosixPath
from typing import TypeVar

from attnviz.errors import InvalidOption

Value = str | float
Key = TypeVar("Key")
Member = TypeVar("Member")
NUMBER, WEIGHT, JSD, TOP_KEY = "number", "weight", "jsd", "top_key"
NUMBERS, FILES = "numbers", "files"  # that both sides have
OTHER_BYTES = "other_bytes"  # files that say the same within the tolerances, in other bytes


@dataclass(frozen=True)
class Fact:
    """Where a fact stands. What does not apply is empty or None."""

    what: str = NUMBER  # "job", "setting dpi", "number", "weight", "file" …
    job: str = ""
    file: str = ""  # its path in the folder of the batch
    text: str = ""
    measure: str = ""
    layer: int | None = None
    head: int | None = None
    of: str = ""  # what the number belongs to if not to a layer or head, such as a model, or the mean over heads

    @property
    def where(self) -> str:
        """Name what it is of: "layer 3, head 1", "layer 3" of a measure of a whole layer, or else; "" for the whole."""
        places = (("layer", self.layer), ("head", self.head))
        return self.of or ", ".join(f"{name} {number}" for name, number in places if number is not None)

    @property
    def ending(self) -> str:
        """Return what the name of a whole file ends with; "" of all else."""
        return PurePosixPath(self.file).suffix.lower() if self.what == "file" else ""


Facts = dict[Fact, Value]


@dataclass(frozen=True)
class Difference(Fact):
    """A fact and its value on both sides. The value of what is only there or not, such as a job, is ""."""

    before: Value | None = ""  # None: only the other side has the fact
    after: Value | None = ""
    said: str = ""  # further words, such as how many pixels differ
    interval: float | None = None  # half of the 95 % interval of the change, of means over enough texts

    @property
    def kind(self) -> str:
        """Tell whether one side alone has the fact, and which."""
        return "only after" if self.before is None else "only before" if self.after is None else "differs"

    @property
    def is_picture(self) -> bool:
        """Check whether both sides have a picture, and not the same."""
        return self.what == "file" and self.ending == ".png" and self.kind == "differs"

    @property
    def change(self) -> float:
        """Return after minus before, of a number; 0 of all else."""
        if isinstance(self.before, float) and isinstance(self.after, float):
            return self.after - self.before
        return 0.0


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
        """Return whether both sides have the same text, or numbers that are as near as they have to be."""
        if isinstance(found.before, float) and isinstance(found.after, float):
            return abs(found.change) <= self.named.get(found.measure or found.what, self.numbers)  # False of NaN
        return found.before == found.after


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


def pair(
    before: Mapping[Key, Member], after: Mapping[Key, Member]
) -> Iterator[tuple[Key, Member | None, Member | None]]:
    """Pair what both sides have under each key, in order; None where a side has nothing."""
    return ((key, before.get(key), after.get(key)) for key in dict.fromkeys([*before, *after]))


def join(before: Facts, after: Facts) -> list[Difference]:
    """Put the values of both sides beside each other, fact by fact, whether they differ or not."""
    return [Difference(**vars(fact), before=one, after=other) for fact, one, other in pair(before, after)]


def find_differences(before: Facts, after: Facts, *, within: Tolerances) -> list[Difference]:
    """Join the facts of two sides and return those that differ by more than they may, or that one side lacks."""
    return [each for each in join(before, after) if not within.allow(each)]


def state_words(words: Mapping[str, object], job: str = "") -> Facts:
    """Make facts of settings and the like, each under its name."""

    def write(value: object) -> str:
        if isinstance(value, list | tuple):
            return ", ".join(str(each) or "–" for each in value) or "none"
        return "none" if value in (None, "") else str(value)

    return {Fact(name, job): write(value) for name, value in words.items()}


def find_version_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return package, before and after of those that changed; "none" where there was none."""
    return [(name, old or "none", new or "none") for name, old, new in pair(before, after) if old != new]
