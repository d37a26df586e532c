"""`attnviz batch`: from configs to a folder of figures and a manifest of all that was made, from what."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from attnviz import store
from attnviz.configs.jobs import load_all
from attnviz.configs.manifests import entry_bytes, entry_from_file, from_file, to_bytes
from attnviz.errors import InputError, InvalidOption
from attnviz.jobs import BatchPlan
from attnviz.manifest import NAME, PAGE, Entry, Manifest
from attnviz.report import FigureStyle
from attnviz.specs.batch import BatchSpec
from attnviz.views.batch_page import batch_page
from attnviz.workflows.run_job import versions
from attnviz.workflows.workers import Done, run_jobs

PROGRESS = ".progress"  # entries of jobs that are done, until the manifest holds them all
DEFAULT_OUT = "figures"
MAX_WORKERS = 256


@dataclass(frozen=True, eq=False)
class Planned:
    """What is to be made, where, and by how many processes."""

    plan: BatchPlan
    folder: Path
    n_workers: int


@dataclass(frozen=True, eq=False)
class Finished:
    """All is done, and the manifest is written."""

    manifest: Manifest
    file: Path
    page: Path | None
    notices: tuple[str, ...]
    disk_failed: bool = False  # for one of the jobs at least

    @property
    def failed(self) -> tuple[Entry, ...]:
        """The jobs that failed."""
        return tuple(entry for entry in self.manifest.jobs if entry.error)


Event: TypeAlias = Planned | Done | Finished


def batch(spec: BatchSpec) -> Iterator[Event]:
    """Make what the configs ask for. A run that was broken off goes on where it was; what did not change stays.

    Raises InvalidConfig with every problem of every config, before anything is made.
    """
    if not spec.configs:
        raise InvalidOption("no config", hint="Name a YAML file: attnviz batch figures.yaml.")
    if spec.workers is not None and not 1 <= spec.workers <= MAX_WORKERS:
        raise InvalidOption(f"--workers {spec.workers} is out of range", hint=f"It is 1 to {MAX_WORKERS}.")
    plan = load_all(spec.configs, spec.out)
    folder = store.output_folder(spec.out or plan.out or DEFAULT_OUT)
    return _made(spec, plan, folder)


def _made(spec: BatchSpec, plan: BatchPlan, folder: Path) -> Iterator[Event]:
    n_workers = min(spec.workers or cores(), len(plan.jobs))
    yield Planned(plan, folder, n_workers)
    if not spec.dry_run:
        with store.locked(folder):
            try:
                yield from _all(spec, plan, folder, n_workers)
            finally:
                store.remove_folder(folder / PROGRESS)  # where there is nothing to go on from


def _all(spec: BatchSpec, plan: BatchPlan, folder: Path, n_workers: int) -> Iterator[Event]:
    """Make every job, then what tells of all of them."""
    store.refuse_links(folder, PROGRESS)
    before = _entries(folder)
    # Also where all is made again it matters what was made: files that are not made any more go.
    earlier = {name: replace(entry, fingerprint="") if spec.force else entry for name, entry in before.items()}
    store.make_folder(folder / PROGRESS)
    done: dict[str, Entry] = {}
    disk_failed = False
    with closing(run_jobs(plan.jobs, folder, earlier, n_workers, spec.fail_fast)) as events:
        for each in events:
            done[each.entry.name] = each.entry
            disk_failed |= each.disk_failed
            if each.how != "failed":
                store.write(folder / PROGRESS / f"{each.entry.name}.json", entry_bytes(each.entry))
            yield each
    entries = tuple(done[job.name] for job in plan.jobs if job.name in done)
    manifest = Manifest(configs=plan.configs, versions=versions(), jobs=entries)
    store.write(folder / NAME, to_bytes(manifest))
    _clear(folder, plan, before, done)
    page = _page(from_file(folder / NAME), folder)  # as it will be read another time: in this order
    gone = sorted(set(before) - {job.name for job in plan.jobs})
    yield Finished(manifest, folder / NAME, page, (*_gone(folder, gone), *_stale(folder, page)), disk_failed)


def _page(manifest: Manifest, folder: Path) -> Path | None:
    """Write the batch's own page, which leads to those of its jobs; none where they have none."""
    if not any(file.path.endswith(".html") for entry in manifest.jobs for file in entry.files):
        return None
    from attnviz.renderers.page.html import html  # what draws charts comes with matplotlib

    ((_, content),) = html(batch_page(manifest), FigureStyle())
    store.write(folder / PAGE, content)
    return folder / PAGE


def _stale(folder: Path, page: Path | None) -> Iterator[str]:
    if page is None and (folder / PAGE).is_file():
        yield f"{folder / PAGE} is of an earlier run: no job of this one has --format html"


def _entries(folder: Path) -> dict[str, Entry]:
    """What earlier runs made, by name: of the manifest, and of a run that was broken off after it.

    What cannot be read is made again: it is no input of the user's.
    """
    found: dict[str, Entry] = {}
    with suppress(InputError):
        if (folder / NAME).is_file():
            found |= {entry.name: entry for entry in from_file(folder / NAME).jobs}
    for file in sorted((folder / PROGRESS).glob("*.json")):
        with suppress(InputError):
            entry = entry_from_file(file)
            found[entry.name] = entry
    return found


def _clear(folder: Path, plan: BatchPlan, before: Mapping[str, Entry], done: Mapping[str, Entry]) -> None:
    """Of the progress only this stays: what lies there of jobs that failed now, or were not begun, and were made once.

    Their old files are still there, and the next run has to know them.
    """
    names = {job.name for job in plan.jobs}
    for name, entry in before.items():
        if name in names and not entry.error and (name not in done or done[name].error):
            store.write(folder / PROGRESS / f"{name}.json", entry_bytes(entry))
        else:
            store.remove(folder / PROGRESS / f"{name}.json")
    for name in done.keys() - before.keys():
        store.remove(folder / PROGRESS / f"{name}.json")


def _gone(folder: Path, names: list[str]) -> Iterator[str]:
    if names:
        jobs = "a job" if len(names) == 1 else f"{len(names)} jobs"
        yield f"{folder} also holds what {jobs} of an earlier config made, such as {names[0]}"


def cores() -> int:
    """What this process may use, which may be less than what the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
