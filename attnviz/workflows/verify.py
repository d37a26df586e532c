"""`attnviz verify`: a batch made once more from its manifest, elsewhere, and held against what lies there."""

from __future__ import annotations

import tempfile
from pathlib import Path

from attnviz.arithmetic import cores
from attnviz.configs.job_from_manifest import job_from_manifest
from attnviz.differences import EXACT, Tolerances
from attnviz.display import quantity
from attnviz.errors import DifferencesFound, InvalidSource
from attnviz.jobs import Job
from attnviz.manifest import NAME, Entry, Manifest
from attnviz.specs.batch import MAX_DIFFERENCE, VerifySpec
from attnviz.views.check import first_differences
from attnviz.workflows import Events, Progress, Result
from attnviz.workflows.batch_diff.batches import LoadedBatch, differences, load_batch
from attnviz.workflows.executors import open_executor
from attnviz.workflows.run_job import versions
from attnviz.workflows.workers import run_jobs


def verify(spec: VerifySpec) -> Events:
    """Make all jobs of a manifest again, in a folder that goes away, and compare.

    Raises InvalidSource without a manifest, InvalidConfig for one that this version cannot follow, InvalidOption for a
    bad tolerance.
    """
    tolerances = EXACT
    if not (spec.tolerance is None and spec.pixels is None):  # then as `check` compares
        numbers = MAX_DIFFERENCE if spec.tolerance is None else spec.tolerance
        tolerances = Tolerances(numbers, spec.pixels or 0.0, skip_failed=False)
    batch = load_batch(Path(spec.folder))
    file = batch.folder / NAME
    jobs = [job_from_manifest(entry, Path(spec.root), str(file)) for entry in batch.manifest.jobs]
    if not jobs:
        raise InvalidSource(f"{file} holds no jobs", hint="attnviz batch fills it.")
    return _verified(batch, jobs, tolerances)


def _verified(batch: LoadedBatch, jobs: list[Job], tolerances: Tolerances) -> Events:
    made: dict[str, Entry] = {}
    with (
        tempfile.TemporaryDirectory(prefix="attnviz-verify-") as place,
        open_executor(min(cores(), len(jobs))) as (executor, _),
    ):
        for done in run_jobs(jobs, Path(place), {}, executor, fail_fast=False):
            made[done.entry.name] = done.entry
            yield Progress(len(made), len(jobs), "jobs", done.entry.name)
        remade = Manifest(batch.manifest.configs, versions(), tuple(made[entry.name] for entry in batch.manifest.jobs))
        diff = differences(batch, LoadedBatch(Path(place), remade), tolerances)
    n_files = sum(len(entry.files) for entry in batch.manifest.jobs)
    what = f"{quantity(len(jobs), 'jobs')}, {quantity(n_files, 'files')}"
    # Other versions are the usual reason for other bytes. Of a package that had no part then nothing is said.
    notices = tuple(f"made with {name} {old}, and here is {new}" for name, old, new in diff.versions if old != "none")
    lines = first_differences(diff, what)
    differ = f"what is made again differs from {what} of the manifest"
    failure = DifferencesFound(differ, hint="The first differences are above.") if diff.differences else None
    yield Result(notices=notices, lines=lines, failure=failure)
