"""One job of a batch, performed: its files, its numbers, and a fingerprint of all that they follow from."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnviz import store
from attnviz.commands import COMMANDS, start_command
from attnviz.commands.batch.jobs import NOT_IN_CONFIGS, Job
from attnviz.inputs import Inputs
from attnviz.options import list_values, replace_values
from attnviz.registry import load
from attnviz.renderers.documents import csv, latex, markdown
from attnviz.renderers.documents import json as json_documents
from attnviz.report import Report
from attnviz.running import Command, Result
from attnviz.running.versions import read_versions
from attnviz.store.manifest import Entry, File, TextNumbers

REPORT = "report.md"


def read_job(job: Job, out: Path) -> Inputs:
    """Read what the job reads, to be written to `out`. Raises as its command does for what it refuses."""
    command = _command(job)
    assert command.inputs is not None  # of every command that a config may name
    inputs: Inputs = load(command.inputs)(_write_to(job.spec, out))
    return inputs


def _command(job: Job) -> Command:
    return next(command for command in COMMANDS if command.name == job.command)


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
    inputs, files, warnings = read_job(job, out).sha256(), list[Path](), list[str]()
    numbers: list[TextNumbers] = []
    for event in start_command(_command(job), _write_to(job.spec, out)):
        warnings += event.notices
        if isinstance(event, Result):
            files += event.files
            numbers += event.numbers
            if event.report is not None:  # it lies beside the files that the command writes itself, and so do its rows
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
    )


def describe_file(path: Path, folder: Path) -> File:
    """Describe a file on the disk by its path from `folder`, sha256 and size."""
    data = path.read_bytes()
    return File(path.relative_to(folder).as_posix(), hashlib.sha256(data).hexdigest(), len(data))


def _write_to(spec: Any, out: Path) -> Any:
    """Return the spec with its folder, where it writes one."""
    return replace_values(spec, out=str(out)) if "out" in list_values(spec) else spec


def _write_documents(report: Report, result: Result, folder: Path, job: Job) -> Iterator[Path]:
    """Write the rows if they have a name, the report as Markdown with the PNGs and in all other forms; yield files."""
    store.make_folder(folder)
    command = _command(job)
    if command.rows:
        yield _write(folder / command.rows, "".join(csv.lines(result.rows)))
    pictures = {file.stem: file.relative_to(folder).as_posix() for file in result.files if file.suffix == ".png"}
    yield _write(folder / REPORT, markdown.document(report, pictures))
    if command.is_document:
        yield _write(folder / "report.tex", latex.fragment(report))
        yield _write(folder / "numbers.json", b"".join(json_documents.write_alone(report)).decode())


def _write(path: Path, text: str) -> Path:
    store.write(path, text.encode())
    return path
