"""What differs between two batches or two records, one thing at a time. Knows no files, no pictures, no manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from math import isfinite
from operator import attrgetter
from typing import Literal

from attnviz.errors import InvalidOption

Kind = Literal[
    "missing job",  # the baseline has it
    "new job",  # the baseline does not have it
    "failed job",  # there was an error, and the baseline has none or another one
    "number",  # one measure of one head of one text
    "heads",  # another number of layers or heads
    "missing numbers",  # a text, or a measure of a text
    "new numbers",
    "picture",  # other pixels
    "record",  # other weights, tokens or heads
    "file",  # other bytes
    "missing file",
    "new file",
    "changed file",  # not what its own manifest says, so that it is compared with nothing
]
Value = str | int | float | None
BASELINE = "the baseline"
IN_BASELINE = f"in {BASELINE} "  # how `Difference.said` of a changed file begins where it is one of the baseline's


@dataclass(frozen=True)
class Tolerances:
    """By how much two batches may differ, and what of them is compared. Raises InvalidOption below 0 and for NaN."""

    numbers: float | None = 0.0  # and weights, absolute; None: numbers are listed whether they differ or not
    pixels: float = 0.0  # of pictures, root mean square over channels of 0 to 255
    files: Literal["content", "bytes", "none"] = "content"
    skip_failed: bool = True  # compare nothing else of a job that failed in either batch
    max_memory: float = 4.0  # GiB that the process may take for two files

    def __post_init__(self) -> None:
        check_tolerance(self.numbers or 0.0, "--tolerance ")
        check_tolerance(self.pixels, "--pixels ")


def check_tolerance(value: float, name: str) -> None:
    """Raises InvalidOption below 0 and for NaN."""
    if not (isfinite(value) and value >= 0):
        raise InvalidOption(f"{name}{value} is no tolerance", hint="It is 0 or more.")


EXACT = Tolerances(files="bytes", skip_failed=False)
EVERY_NUMBER = Tolerances(numbers=None, files="none", skip_failed=False)


@dataclass(frozen=True)
class Difference:
    """One thing that is not as in the baseline. What does not apply is empty or None."""

    kind: Kind
    job: str
    file: str = ""  # its path in the folder of the batch
    text: str = ""
    measure: str = ""
    layer: int | None = None
    head: int | None = None
    expected: Value = None  # in the baseline
    actual: Value = None
    said: str = ""  # what else there is to say, such as how many pixels differ
    of: str = ""  # what a number is of that is not of a layer or head, such as a model

    @property
    def where(self) -> str:
        """ "layer 3, head 1", "layer 3" of a measure of a whole layer, or what else it is of; "" where it is whole."""
        places = (("layer", self.layer), ("head", self.head))
        return self.of or ", ".join(f"{name} {number}" for name, number in places if number is not None)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Expected, actual, and how much more that is; 0 of what is not a number."""
        if isinstance(self.expected, float) and isinstance(self.actual, float):
            return self.expected, self.actual, self.actual - self.expected
        return 0.0, 0.0, 0.0

    @property
    def change(self) -> float:
        """After minus before, of a number."""
        return self.numbers[2]


@dataclass(frozen=True)
class BatchDiff:
    """All that a comparison of one batch with another found."""

    jobs: tuple[str, ...]  # of either batch, in order
    differences: tuple[Difference, ...]  # one job after the other, in this order
    n_numbers: int = 0  # that were compared
    n_files: int = 0  # likewise
    n_other_bytes: int = 0  # of them the same within the tolerances, with other bytes
    failed_alike: tuple[str, ...] = ()  # jobs with the same error in both
    causes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # job: what it was made from that is another
    versions: tuple[tuple[str, str, str], ...] = ()  # package, before, after: those that are others, or "none"
    config: str = ""  # the one that the batch was made from, if it was one

    @cached_property
    def by_job(self) -> dict[str, tuple[Difference, ...]]:
        """The differences of each job that has any, in order."""
        return {job: tuple(alike) for job, alike in groupby(self.differences, attrgetter("job"))}

    @cached_property
    def numbers(self) -> tuple[Difference, ...]:
        """The differences that are of numbers."""
        return tuple(each for each in self.differences if each.kind == "number")


JSD, TOP_KEY = "jsd", "top_key"  # beside the measures, what a threshold may be of: nats, and a share of the queries
Thresholds = dict[str, float]


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
    def top_share(self) -> float:
        """The share of the queries whose strongest key is another."""
        return self.top_changed / self.n_queries


def is_beyond(number: Difference, thresholds: Thresholds) -> bool:
    """Whether a number went further than its threshold, either way."""
    limit = thresholds.get(number.measure)
    return limit is not None and not abs(number.change) <= limit  # written so that NaN is beyond too


def head_beyond(head: HeadChange, thresholds: Thresholds) -> tuple[str, ...]:
    """The names of the thresholds that a head is beyond."""
    values = {JSD: head.jsd, TOP_KEY: head.top_share} | {each.measure: abs(each.change) for each in head.measures}
    return tuple(name for name, value in values.items() if name in thresholds and not value <= thresholds[name])
