"""What differs between two batches, one thing at a time. Knows no files, no pictures and no manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Kind = Literal[
    "missing job",  # the baseline has it
    "new job",  # the baseline does not have it
    "failed job",  # there was an error, and the baseline has none or another one
    "number",  # one measure of one head of one text
    "heads",  # another number of layers or heads, so that numbers cannot be compared
    "missing numbers",  # a text, or a measure of a text
    "new numbers",
    "picture",  # other pixels
    "record",  # other weights, tokens or heads
    "file",  # other bytes
    "missing file",
    "new file",
    "changed file",  # not what its own manifest says, so that it is compared with nothing
]
Found = str | int | float | None


@dataclass(frozen=True)
class Unlike:
    """One thing that is not as in the baseline. What does not apply is empty or None."""

    kind: Kind
    job: str
    file: str = ""  # its path in the folder of the batch
    text: str = ""
    measure: str = ""
    layer: int | None = None
    head: int | None = None
    expected: Found = None  # in the baseline
    actual: Found = None
    said: str = ""  # what else there is to say, such as how many pixels differ


@dataclass(frozen=True)
class Checked:
    """All that a check of one batch against another found."""

    folder: str
    baseline: str
    tolerance: float  # of numbers and weights, absolute
    pixels: float  # of pictures, root mean square over channels of 0 to 255
    jobs: tuple[str, ...]  # of either batch, in order
    differences: tuple[Unlike, ...]
    n_numbers: int = 0  # that were compared
    n_files: int = 0  # likewise
    n_other_bytes: int = 0  # of them the same within the tolerances, with other bytes
    failed_alike: tuple[str, ...] = ()  # jobs with the same error in both
    causes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # job: what it was made from that is another
    versions: tuple[str, ...] = ()  # likewise of both batches: "torch 2.12 → 2.13"
    config: str = ""  # the one that the batch was made from, if it was one

    @cached_property
    def _by_job(self) -> dict[str, list[Unlike]]:
        found: dict[str, list[Unlike]] = {}
        for each in self.differences:
            found.setdefault(each.job, []).append(each)
        return found

    def of(self, job: str) -> tuple[Unlike, ...]:
        return tuple(self._by_job.get(job, ()))

    @property
    def unlike_jobs(self) -> tuple[str, ...]:
        return tuple(job for job in self.jobs if job in self._by_job)


@dataclass(frozen=True)
class Change:
    """One measure of one head of one text, before and after."""

    measure: str
    layer: int
    head: int
    before: float
    after: float
    job: str = ""  # of a batch; none of two records
    text: str = ""

    @property
    def value(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class HeadChange:
    """One head of one record against the same head of another."""

    layer: int
    head: int
    jsd: float  # mean over queries, nats
    top_changed: int  # queries with another favourite key
    n_queries: int
    measures: tuple[Change, ...]

    @property
    def top_share(self) -> float:
        return self.top_changed / self.n_queries


@dataclass(frozen=True)
class BatchChanges:
    """Every number that two batches have both, and what only one of them has: jobs, texts and measures in words."""

    changes: tuple[Change, ...]
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()


JSD, TOP_KEY = "jsd", "top_key"  # beside the measures, what a threshold may be of: nats, and a share of the queries
Thresholds = dict[str, float]


def beyond(change: Change, thresholds: Thresholds) -> bool:
    """Whether a number went further than its threshold, either way."""
    limit = thresholds.get(change.measure)
    return limit is not None and not abs(change.value) <= limit  # written so that NaN is beyond too


def head_beyond(change: HeadChange, thresholds: Thresholds) -> tuple[str, ...]:
    """The names of the thresholds that a head is beyond."""
    values = {JSD: change.jsd, TOP_KEY: change.top_share}
    found = [name for name, value in values.items() if name in thresholds and not value <= thresholds[name]]
    return (*found, *(each.measure for each in change.measures if beyond(each, thresholds)))
