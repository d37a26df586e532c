"""Jobs of a batch shared out and performed: their files, numbers, and fingerprints of all that these follow from.

What dies at a job takes it along, and no other.
"""

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from attnviz import store
from attnviz.bounded import is_file
from attnviz.commands import COMMANDS, start_command
from attnviz.commands.batch.jobs import NOT_IN_CONFIGS, Job, find_needed_jobs
from attnviz.errors import AttnvizError, InvalidOption, OutputError
from attnviz.inputs import Inputs
from attnviz.options import list_values, replace_values
from attnviz.registry import load
from attnviz.renderers.documents import csv, markdown
from attnviz.report import Report
from attnviz.running import Result
from attnviz.running.local_executor import WorkerDied
from attnviz.running.versions import read_versions
from attnviz.store.manifest import Entry, File, TextNumbers

REPORT = "report.md"
BY_NAME = {command.name: command for command in COMMANDS}


def read_job(job: Job, out: Path) -> Inputs:
    """Read what the job reads, to be written to `out`. Raises as its command does for what it refuses."""
    command = BY_NAME[job.command]
    assert command.inputs is not None  # of every command that a config may name
    inputs: Inputs = load(command.inputs)(_write_to(job.spec, out))
    return inputs


def fingerprint(job: Job, inputs: dict[str, str]) -> str:
    """Hash everything that the job's files follow from: two jobs of the same fingerprint make the same files."""
    # Paths as they are written: where a config lies on this machine changes nothing.
    values = list_values(job.spec) | job.written
    settings = {name: value for name, value in values.items() if name not in NOT_IN_CONFIGS}
    whole = {"command": job.command, "settings": settings, "versions": read_versions(), "inputs": inputs}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def run_job(job: Job, folder: Path) -> Entry:
    """Make the job's files in a folder of its own name within `folder`. Raises what its command raises."""
    out = folder / job.name
    inputs, files, warnings, said = read_job(job, out).sha256(), list[Path](), list[str](), list[str]()
    numbers: list[TextNumbers] = []
    for event in start_command(BY_NAME[job.command], _write_to(job.spec, out)):
        warnings += event.notices
        if isinstance(event, Result):
            files += event.files
            numbers += event.numbers
            if event.report is not None:  # it lies beside the files that the command writes itself, and so do its rows
                said.append(next((note.text for note in event.report.notes if note.leads), event.report.title))
                files += _write_documents(event.report, event, event.files[0].parent if event.files else out, job)
    return Entry(
        name=job.name,
        command=job.command,
        settings=job.settings
        | {name: value for name, value in list_values(job.spec).items() if name == "seed"},  # also if 0
        fingerprint=fingerprint(job, inputs),
        inputs=inputs,
        numbers=tuple(numbers),
        warnings=tuple(warnings),
        files=tuple(describe_file(path, folder) for path in files),
        said=said[0] if len(said) == 1 else "",
    )


def describe_file(path: Path, folder: Path) -> File:
    """Describe a file on the disk by its path from `folder`, sha256 and size."""
    data = path.read_bytes()
    return File(path.relative_to(folder).as_posix(), hashlib.sha256(data).hexdigest(), len(data))


def _write_to(spec: Any, out: Path) -> Any:
    """Return the spec with its folder, where it writes one."""
    return replace_values(spec, out=str(out)) if "out" in list_values(spec) else spec


def _write_documents(report: Report, result: Result, folder: Path, job: Job) -> Iterator[Path]:
    """Write the rows if they have a name, the report as Markdown with the PNGs; yield the files."""
    store.make_folder(folder)
    rows = BY_NAME[job.command].rows
    pictures = {file.stem: file.relative_to(folder).as_posix() for file in result.files if file.suffix == ".png"}
    documents = {rows: "".join(csv.lines(result.rows))} if rows else {}
    for name, text in (documents | {REPORT: markdown.document(report, pictures)}).items():
        store.write(folder / name, text.encode())
        yield folder / name


How = Literal["made", "unchanged", "failed"]


@dataclass(frozen=True, eq=False)
class Done:
    """One job, and how it ended."""

    entry: Entry
    how: How
    disk_failed: bool = False  # that is why it failed


def run_jobs(
    jobs: Sequence[Job], folder: Path, earlier: Mapping[str, Entry], executor: Executor, fail_fast: bool
) -> Generator[Done]:
    """Yield each job as it is done; those that read what others make come after these.

    `earlier` are entries of a run before: what did not change since is not made again. Raises InvalidOption for jobs
    that read each other's files.
    """
    needed = find_needed_jobs(jobs, folder)
    failed: set[str] = set()
    order = TopologicalSorter(needed)
    try:
        order.prepare()
    except CycleError as error:
        names = ", ".join(sorted({*error.args[1]}))
        raise InvalidOption(f"the jobs {names} read each other's files", hint="Let one of them read others.") from error
    while order.is_active():
        ready = {*order.get_ready()}
        submitted, lost = dict[Future[Done], Job](), list[Done]()
        for job in (each for each in jobs if each.name in ready):
            if lacking := needed[job.name] & failed:
                lost.append(_describe_failure(job, f"the job {min(lacking)!r}, whose files it reads, failed"))
            else:
                submitted[executor.submit(run_one, job, folder, earlier.get(job.name))] = job
        made = (_outcome(submitted.pop(future), future) for future in as_completed(submitted))
        for done in chain(lost, made):
            yield done
            if done.how == "failed":
                failed.add(done.entry.name)
                if fail_fast:
                    return
        order.done(*ready)


def _outcome(job: Job, future: Future[Done]) -> Done:
    try:
        return future.result()
    except WorkerDied as error:
        return _describe_failure(job, f"the process that made it ended {error.how}")


def run_one(job: Job, folder: Path, earlier: Entry | None) -> Done:
    """Make one job, unless it would come out as it is. Whatever goes wrong is told in what it gives."""
    try:
        store.refuse_links(folder, job.name)
        if earlier is not None and not earlier.error:  # it may come out as it is there
            inputs = read_job(job, folder / job.name / "new")  # within its own folder it may find a model it wrote
            is_same = earlier.fingerprint == fingerprint(job, inputs.sha256())
            if is_same and all(_is_as_made(file, folder) for file in earlier.files):
                return Done(earlier, "unchanged")
        with store.replacing(folder) as new:
            entry = run_job(job, new.path)
            new.names.update(file.path for file in entry.files)
            if earlier is not None:  # of other settings: its files are not to be taken for this job's
                new.discard(file.path for file in earlier.files if _is_as_made(file, folder))
        return Done(entry, "made")
    except AttnvizError as error:
        return _describe_failure(job, str(error), isinstance(error, OutputError))
    except MemoryError:
        return _describe_failure(job, "not enough memory. Fewer --max-tokens, --layers or --heads take less")
    except Exception as error:
        return _describe_failure(job, f"this is a bug of attnviz ({type(error).__name__}: {error}); please report it")


def _is_as_made(file: File, folder: Path) -> bool:
    """Return whether a file is there as it was made: one that somebody put in its place is theirs."""
    return is_file(folder / file.path) and describe_file(folder / file.path, folder) == file


def _describe_failure(job: Job, error: str, disk_failed: bool = False) -> Done:
    """Describe a failed job, with its settings: `diff --again` tries the same."""
    entry = Entry(job.name, job.command, job.settings, "", {}, (), (), (), error=error)
    return Done(entry, "failed", disk_failed)
