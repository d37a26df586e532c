"""`attnviz verify`: a batch made once more from its manifest, elsewhere, and held against what lies there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from attnviz.configs.job_from_manifest import job_from_manifest
from attnviz.differences import EXACT
from attnviz.errors import InvalidSource
from attnviz.jobs import Job
from attnviz.manifest import NAME, Entry, Manifest
from attnviz.specs.batch import VerifySpec
from attnviz.views.verify import first_differences
from attnviz.workflows.batch import cores
from attnviz.workflows.batch_diff.batches import LoadedBatch, differences, load_batch
from attnviz.workflows.run_job import versions
from attnviz.workflows.workers import Done, run_jobs


@dataclass(frozen=True)
class Verifying:
    """What is to be made again."""

    n_jobs: int


@dataclass(frozen=True)
class Verified:
    """The end. `number` and `bytes` are the first differences of either kind in words, empty where there is none."""

    n_jobs: int
    n_files: int
    number: str
    bytes: str
    notices: tuple[str, ...]


Event: TypeAlias = Verifying | Done | Verified


def verify(spec: VerifySpec) -> Iterator[Event]:
    """Make all jobs of a manifest again, in a folder that goes away, and compare.

    Raises InvalidSource without a manifest, InvalidConfig for one that this version cannot follow.
    """
    batch = load_batch(Path(spec.folder))
    file = batch.folder / NAME
    jobs = [job_from_manifest(entry, Path(spec.root), str(file)) for entry in batch.manifest.jobs]
    if not jobs:
        raise InvalidSource(f"{file} holds no jobs", hint="attnviz batch fills it.")
    return _verified(batch, jobs)


def _verified(batch: LoadedBatch, jobs: list[Job]) -> Iterator[Event]:
    yield Verifying(len(jobs))
    made: dict[str, Entry] = {}
    with (
        tempfile.TemporaryDirectory(prefix="attnviz-verify-") as place,
        closing(run_jobs(jobs, Path(place), {}, min(cores(), len(jobs)), fail_fast=False)) as events,
    ):
        for done in events:
            made[done.entry.name] = done.entry
            yield done
        remade = Manifest(batch.manifest.configs, versions(), tuple(made[entry.name] for entry in batch.manifest.jobs))
        diff = differences(batch, LoadedBatch(Path(place), remade), EXACT)
    yield Verified(
        len(jobs),
        sum(len(entry.files) for entry in batch.manifest.jobs),
        *first_differences(diff, str(batch.folder)),
        # Other versions are the usual reason for other bytes. Of a package that had no part then nothing is said.
        tuple(f"made with {name} {old}, and here is {new}" for name, old, new in diff.versions if old != "none"),
    )
