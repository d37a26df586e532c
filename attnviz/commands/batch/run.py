"""`attnviz batch`: from configs to a folder of figures and a manifest of all that was made, from what."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from attnviz import store
from attnviz.commands.batch.configs import OUT, json_schema, load_all
from attnviz.commands.batch.jobs import BatchPlan
from attnviz.commands.batch.manifests import from_file, to_bytes
from attnviz.commands.batch.spec import BatchSpec
from attnviz.commands.batch.workers import Done, run_jobs
from attnviz.display import escape_for_display, list_first, pluralize
from attnviz.errors import ExecutionError, InputError, InvalidOption, OutputError
from attnviz.records.walk import count_cores
from attnviz.renderers.figure.image import shrink
from attnviz.renderers.page.html import html
from attnviz.report import Column, FigureStyle, Note, Report, Table
from attnviz.running import Events, Progress, Result
from attnviz.running.executors import open_executor
from attnviz.running.versions import read_versions
from attnviz.store.manifest import NAME, PAGE, Entry, Manifest
from attnviz.views.index_page import batch_page, batch_title, format_settings

PROGRESS = ".progress"  # entries of jobs that are done, until the manifest holds them all
MAX_MESSAGE_LENGTH = 500


def batch(spec: BatchSpec) -> Events:
    """Make what the configs ask for. A run that was broken off goes on where it was; what did not change stays.

    Raises InvalidConfig with every problem of every config, before anything is made.
    """
    if spec.schema:
        if spec.configs:
            raise InvalidOption(f"--schema makes no jobs, and there is {spec.configs[0]}", hint="Leave one out.")
        return iter((Result(lines=tuple(json.dumps(json_schema(), indent=1).splitlines())),))
    if not spec.configs:
        raise InvalidOption("no config", hint="Name a YAML file: attnviz batch figures.yaml.")
    plan = load_all(spec.configs, spec.out)
    folder = store.check_output_folder(spec.out or plan.out or OUT.default)
    n_workers = max(1, min(spec.workers or count_cores(), len(plan.jobs)))
    if spec.dry_run:
        return iter((_describe_plan(plan, folder, n_workers, in_lines=spec.printing.kind == "table"),))
    return _make(spec, plan, folder, n_workers)


def _make(spec: BatchSpec, plan: BatchPlan, folder: Path, n_workers: int) -> Events:
    """Make every job, then what tells of all of them."""
    with store.locked(folder):
        try:
            store.refuse_links(folder, PROGRESS)
            store.refuse_others(folder, NAME, PAGE)
            before = _read_entries(folder)
            # Also where all is made again it matters what was made: files that are not made any more go.
            earlier = {name: replace(entry, fingerprint="") if spec.force else entry for name, entry in before.items()}
            store.make_folder(folder / PROGRESS)
            done: dict[str, Done] = {}
            with open_executor(n_workers) as (executor, _):
                for each in run_jobs(plan.jobs, folder, earlier, executor, spec.fail_fast):
                    done[each.entry.name] = each
                    if each.how != "failed":
                        _keep(each.entry, folder)
                    yield _describe_progress(each, len(done), len(plan.jobs))
            entries = tuple(done[job.name].entry for job in plan.jobs if job.name in done)
            manifest = Manifest(configs=plan.configs, versions=read_versions(), jobs=entries)
            store.write(folder / NAME, to_bytes(manifest))
            # Of jobs that failed now, or were not begun, and were made once, the old files are still there, and the
            # next run has to know them.
            left = {job.name for job in plan.jobs} - {name for name, each in done.items() if each.how != "failed"}
            for name in {*before, *done}:
                if name in before and name in left and not before[name].error:
                    _keep(before[name], folder)
                else:
                    store.remove(folder / PROGRESS / f"{name}.json")
            store.write(folder / PAGE, _draw_page(folder, before, done))
            yield _describe_end(plan, manifest, folder, before, done)
        finally:
            store.remove_folder(folder / PROGRESS)  # where there is nothing to go on from


def _draw_page(folder: Path, before: Mapping[str, Entry], done: Mapping[str, Done]) -> bytes:
    """Draw the page that leads to all jobs, with a small picture of each."""
    changed = {name for name, each in done.items() if each.how == "made" and name in before}
    changed -= {name for name in changed if done[name].entry.files == before[name].files}
    thumbs = dict[str, str]()
    for name, each in done.items():
        if pictures := [file.path for file in each.entry.files if file.path.endswith(".png")]:
            thumbs[name] = shrink(folder / pictures[0])
    # As the manifest will be read another time: in this order.
    ((_, page),) = html(batch_page(from_file(folder / NAME), thumbs, changed), FigureStyle())
    return page


def _describe_end(
    plan: BatchPlan, manifest: Manifest, folder: Path, before: Mapping[str, Entry], done: Mapping[str, Done]
) -> Result:
    """Count the jobs by how they ended: "2 made, 1 failed, 3 not begun". Failed ones are a failure of the batch."""
    notices: tuple[str, ...] = ()
    if gone := sorted(set(before) - {job.name for job in plan.jobs}):
        notices = (f"{folder} also holds jobs of an earlier config: {list_first(gone, 3)}",)
    ended, total, failure = {name: each.how for name, each in done.items()}, len(plan.jobs), None
    counts = Counter[str](ended.values()) + Counter({"not begun": total - len(done)})
    said = ", ".join(f"{counts[how]} {how}" for how in ("made", "unchanged", "failed", "not begun") if counts[how])
    if n_failed := counts["failed"]:
        kind = OutputError if any(each.disk_failed for each in done.values()) else ExecutionError
        others = "The others are made; the" if n_failed < total else "The"
        failure = kind(f"{n_failed} of {total} {pluralize(total, 'jobs')} failed", hint=f"{others} manifest says why.")
    return Result(
        notices=notices,
        closing=(f"{said or 'no jobs'}; wrote {folder / NAME} and {folder / PAGE}",),
        document=batch_report(manifest, ended, str(folder)),
        failure=failure,
    )


def _describe_progress(done: Done, number: int, total: int) -> Progress:
    entry = done.entry
    if done.how == "failed":
        return Progress(number, total, "jobs", entry.name, error=f"{entry.name}: {entry.error}")
    n = len(entry.files)
    line = f"{done.how} {escape_for_display(entry.name)} ({n} {pluralize(n, 'files')})"
    notices = tuple(f"{entry.name}: {warning}" for warning in entry.warnings) if done.how == "made" else ()
    return Progress(number, total, "jobs", entry.name, line, notices)


def _read_entries(folder: Path) -> dict[str, Entry]:
    """Read the entries of earlier runs by name: of the manifest, and of a run that was broken off after it.

    What cannot be read is made again: it is no input of the user's.
    """
    found: dict[str, Entry] = {}
    for file in (folder / NAME, *sorted((folder / PROGRESS).glob("*.json"))):
        with suppress(InputError):
            if file.is_file():
                found |= {entry.name: entry for entry in from_file(file).jobs}
    return found


def _keep(entry: Entry, folder: Path) -> None:
    """Write what the next run goes on from: a manifest of one job."""
    store.write(folder / PROGRESS / f"{entry.name}.json", to_bytes(Manifest({}, {}, (entry,))))


def batch_report(manifest: Manifest, ended: Mapping[str, str], folder: str) -> Report:
    """Report how each job ended; `ended` says by its name whether it was made, unchanged or failed."""
    rows = []
    for entry in manifest.jobs:
        why = escape_for_display(entry.error, MAX_MESSAGE_LENGTH) if entry.error else ""
        rows.append((entry.name, entry.command, ended[entry.name], len(entry.files), why))
    columns = (Column("job"), Column("command"), Column("how it ended"), Column("files"), Column("why it failed"))
    warned = [(entry, warning) for entry in manifest.jobs for warning in entry.warnings]
    warnings = [Note(f"{entry.name}: {escape_for_display(warning, MAX_MESSAGE_LENGTH)}") for entry, warning in warned]
    configs = ", ".join(escape_for_display(name, MAX_MESSAGE_LENGTH) for name in manifest.configs)
    table = Table("jobs", "Jobs", "facts", columns, tuple(rows))
    data = {"jobs": [dict(zip(("job", "command", "ended", "files", "error"), row, strict=True)) for row in rows]}
    subtitle = f"{configs}, made in {escape_for_display(folder, MAX_MESSAGE_LENGTH)}"
    return Report(batch_title(manifest), subtitle, (table, *warnings), data=data)


def _describe_plan(plan: BatchPlan, folder: Path, n_workers: int, *, in_lines: bool) -> Result:
    """List the jobs that would be made, with the settings of each: in a line, or as a document."""
    shown = [escape_for_display(format_settings(job.settings), MAX_MESSAGE_LENGTH) for job in plan.jobs]
    rows = [(job.name, job.command, settings) for job, settings in zip(plan.jobs, shown, strict=True)]
    table = Table("jobs", "Jobs", "facts", (Column("job"), Column("command"), Column("settings")), rows)
    data = {"jobs": [{"job": job.name, "command": job.command, "settings": dict(job.settings)} for job in plan.jobs]}
    subtitle = f"would be made in {escape_for_display(str(folder), MAX_MESSAGE_LENGTH)}"
    n_jobs = f"{len(rows)} {pluralize(len(rows), 'jobs')}"
    return Result(
        lines=tuple(f"{name}: {command} {settings}".rstrip() for name, command, settings in rows if in_lines),
        closing=(f"would make {n_jobs} in {folder}/ with {n_workers} at a time",),
        document=Report("Jobs of a batch", subtitle, (table,), data=data),
    )
