"""One job of a batch, performed: its files, its numbers, and a fingerprint of all that they follow from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attnviz import store
from attnviz.jobs import NOT_IN_CONFIGS, Job
from attnviz.manifest import Entry, File, Numbers
from attnviz.options import flat_values, with_values
from attnviz.registry import load
from attnviz.report import Report
from attnviz.specs.compare import CompareSpec
from attnviz.specs.explain import ExplainSpec
from attnviz.workflows import COMMANDS, Command, Result
from attnviz.workflows.inputs import Inputs

PACKAGES = ("attnviz", "matplotlib", "numpy", "seaborn", "tokenizers", "torch")
REPORT = "report.md"
TABLES = {  # what their rows are called
    "compare": "measures.csv",
    "predict": "predictions.csv",
    "attribute": "attribution.csv",
    "survey": "heads.csv",
}


def versions() -> dict[str, str]:
    """Of all packages that the bytes of a figure follow from."""
    return {package: version(package) for package in PACKAGES}


def read_job(job: Job) -> Inputs:
    """What the job reads. Raises as its command does for what it refuses."""
    command = _command(job)
    assert command.inputs is not None  # of every command that a config may name
    inputs: Inputs = load(command.inputs)(job.spec)
    return inputs


def _command(job: Job) -> Command:
    return next(command for command in COMMANDS if command.name == job.command)


def fingerprint(job: Job, inputs: dict[str, str]) -> str:
    """Of everything that the job's files follow from: two jobs with the same one make the same files."""
    # Paths as they are written: where a config lies on this machine changes nothing.
    settings = {
        name: value for name, value in (flat_values(job.spec) | job.written).items() if name not in NOT_IN_CONFIGS
    }
    whole = {"command": job.command, "settings": settings, "versions": versions(), "inputs": inputs}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def run_job(job: Job, folder: Path) -> Entry:
    """Make the job's files in a folder of its own name within `folder`. Raises what its command raises."""
    inputs = read_job(job).sha256()
    made = _made(job, folder / job.name)
    return Entry(
        name=job.name,
        command=job.command,
        settings=job.settings
        | {name: value for name, value in flat_values(job.spec).items() if name == "seed"},  # also if 0
        fingerprint=fingerprint(job, inputs),
        inputs=inputs,
        numbers=made.numbers,
        warnings=made.notices,
        files=tuple(written(path, folder) for path in made.files),
        layers=made.layers,
        heads=made.heads,
    )


def written(path: Path, folder: Path) -> File:
    """A file as it lies on the disk."""
    data = path.read_bytes()
    return File(path.relative_to(folder).as_posix(), hashlib.sha256(data).hexdigest(), len(data))


def _made(job: Job, out: Path) -> Result:
    """Run the command; its rows, its report and what explains it lie as files beside those that it writes itself."""
    settings: dict[str, Any] = {} if isinstance(job.spec, ExplainSpec) else {"out": str(out)}
    if isinstance(job.spec, CompareSpec):
        settings["time"] = False  # it would be another number each time
    files: list[Path] = []
    found: Numbers = {}
    warnings: list[str] = []
    layers: dict[str, list[int]] = {}
    heads: dict[str, list[int]] = {}
    for event in load(_command(job))(with_values(job.spec, **settings)):
        warnings += event.notices
        if isinstance(event, Result):
            files += event.files
            found |= event.numbers
            layers |= event.layers
            heads |= event.heads
            if event.report is not None:
                folder = event.files[0].parent if event.files else out
                files += _documents(event.report, event, folder, job)
    return Result(None, tuple(files), tuple(warnings), numbers=found, layers=layers, heads=heads)


def _documents(report: Report, result: Result, folder: Path, job: Job) -> Iterator[Path]:
    """The rows if they have a name, the report as Markdown that shows the PNGs, and else as all that it can be."""
    from attnviz.renderers import csv, json, latex, markdown

    store.make_folder(folder)
    if table := TABLES.get(job.command):
        yield _write(folder / table, "".join(csv.lines(result.rows)))
    pictures = {file.stem: file.relative_to(folder).as_posix() for file in result.files if file.suffix == ".png"}
    yield _write(folder / REPORT, markdown.document(report, pictures))
    if isinstance(job.spec, ExplainSpec):
        yield _write(folder / "report.tex", latex.fragment(report))
        yield _write(folder / "numbers.json", b"".join(json.alone(report)).decode())


def _write(path: Path, text: str) -> Path:
    store.write(path, text.encode())
    return path
