"""Configs as jobs.

    out: figures              # optional: the folder, from the current one
    defaults:                 # optional: for every job whose command has the setting
      dataset: sample
    jobs:
      - name: heads           # optional: else the command and its number, "heatmap-1"
        heatmap:              # one command with its settings, by the names of the flags with underscores
          scale: shared
        matrix:               # optional: a job for every combination, such as "heads-8-index-0"
          heads: [1, 2, 4, 8]
          index: [0, 1]

Nearest wins: the matrix and the job's settings over the defaults, these over what a command does by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from attnviz.commands.batch import naming, reading, schema
from attnviz.commands.batch.jobs import JOBS, BatchPlan, Job
from attnviz.commands.batch.paths import from_folder
from attnviz.commands.batch.problems import describe_error
from attnviz.commands.batch.source_file import SourceFile, Steps
from attnviz.errors import InvalidConfig
from attnviz.option_values import InvalidValue, shorten
from attnviz.options import build

MAX_JOBS = 10_000

Settings = dict[str, Any]


def load_all(paths: Sequence[str | Path], out: str | None = None) -> BatchPlan:
    """What several configs ask for together. `out` is what the command line says, over what they say.

    Raises InvalidConfig with all problems of all of them.
    """
    sources = [reading.read(Path(path)) for path in paths]
    _check_files(sources)
    batch = _Batch()
    for source in sources:
        if source.data is not None or not source.problems:
            _Config(source, batch).read()
    out = _find_out(sources) if out is None else out
    problems = [each for source in sources for each in sorted(source.problems.values(), key=lambda each: each.place)]
    if problems:
        raise InvalidConfig(problems)
    return BatchPlan(tuple(batch.jobs), out, {Path(source.file).name: source.sha256 for source in sources})


@dataclass
class _Batch:
    """The jobs of all configs: names are unique among them, and there are not too many."""

    jobs: list[Job] = field(default_factory=list)
    where: dict[str, str] = field(default_factory=dict)  # of the first job of a name, in small letters
    n_jobs: int = 0  # asked for


class _Config:
    """One config on its way to becoming jobs. Goes on after a problem, so that all are found."""

    def __init__(self, source: SourceFile, batch: _Batch) -> None:
        self.source = source
        self.batch = batch
        self.folder = Path(source.file).parent
        self.defaults: Settings = {}
        self.defaults_of: dict[str, Settings] = {}  # by command, once checked
        self.numbers: Counter[str] = Counter()

    def read(self) -> None:
        data = self.source.data
        self.validate(schema.config_model(), data, ())
        if not isinstance(data, dict):
            return
        if isinstance(data.get("defaults"), dict):
            self.defaults = data["defaults"]
        entries = data["jobs"] if isinstance(data.get("jobs"), list) else []
        commands = {self.read_entry(entry, ("jobs", number)) for number, entry in enumerate(entries)} - {""}
        used = {setting for command in commands for setting in schema.settings(command)}
        for setting in self.defaults if commands else ():
            if setting not in used:
                self.source.report_name(("defaults", setting), "no job here has this setting; leave it out")

    def validate(self, model: type[BaseModel], data: Any, steps: Steps) -> Any:
        """Return the data as a model; None where something is wrong, and then all of it is told."""
        try:
            return model.model_validate(data)
        except ValidationError as problems:
            for error in problems.errors(include_url=False):
                way = (*steps, *error["loc"])
                if error["type"] == "extra_forbidden":
                    known = model
                    for step in error["loc"][:-1]:  # each is a model or nothing
                        known = get_args(known.model_fields[str(step)].annotation)[0]
                    self.source.report_name(way, partial(describe_error, error, known.model_fields))
                else:
                    self.source.report(self.source.find_written(way), partial(describe_error, error))
        return None

    def read_entry(self, entry: Any, steps: Steps) -> str:
        """Make the jobs of one entry. Gives its command, "" where none can be told."""
        if not isinstance(entry, dict):
            self.source.report(steps, str(InvalidValue("a command (heatmap: …)", entry)))
            return ""
        command = next((key for key in entry if key in JOBS), "")
        if not command:
            if self.validate(schema.job_model(command), entry, steps):
                self.source.report(steps, f"no command here; write one of {', '.join(JOBS)}")
            return ""
        self.numbers[command] += 1
        for key in entry.keys() - {"name", command, "matrix"}:
            if key in JOBS:
                self.source.report_name((*steps, key), "a job has one command; make this one a job of its own")
            elif key in schema.settings(command):
                self.source.report_name((*steps, key), f"belongs under {command}; indent it")
        defaults = self.defaults_for(command)
        if job := self.validate(schema.job_model(command), entry, steps):
            own = {name: getattr(getattr(job, command), name) for name in entry[command] or {}}
            matrix = {name: getattr(job.matrix, name) for name in entry.get("matrix") or {}}
            fits, before = self.check_together(command, own, matrix, steps), self.batch.n_jobs
            self.batch.n_jobs += prod(map(len, matrix.values())) if fits else 0
            if before <= MAX_JOBS < self.batch.n_jobs:  # told once, by the job that is too much
                self.source.report(steps, f"makes {self.batch.n_jobs:,} jobs in all; a batch has at most {MAX_JOBS:,}")
            if fits and self.batch.n_jobs <= MAX_JOBS:
                name = f"{command}-{self.numbers[command]}" if job.name is None else job.name
                self.make(name, command, {**defaults, **own}, matrix, steps)
        return command

    def defaults_for(self, command: str) -> Settings:
        """Those that the command has."""
        if command not in self.defaults_of:
            written = {name: value for name, value in self.defaults.items() if name in schema.settings(command)}
            found = self.validate(schema.settings_model(command), written, ("defaults",))
            self.defaults_of[command] = {name: getattr(found, name) for name in written} if found else {}
        return self.defaults_of[command]

    def check_together(self, command: str, own: Settings, matrix: dict[str, list[Any]], steps: Steps) -> bool:
        """Whether a job's settings and matrix fit each other; what does not is told."""
        before = len(self.source.problems)
        for setting, option in schema.settings(command).items():
            if option.default is MISSING and setting not in {**self.defaults, **own, **matrix}:
                self.source.report((*steps, command), f"{setting} is missing")
        for setting in own.keys() & matrix:
            self.source.report_name((*steps, "matrix", setting), f"is in {command} too; write it once")
        for setting, values in matrix.items():
            seen: set[Any] = set()
            for number, value in enumerate(values):
                if value in seen:
                    self.source.report((*steps, "matrix", setting, number), "is in the list twice")
                seen.add(value)
        return len(self.source.problems) == before

    def make(self, name: str, command: str, settings: Settings, matrix: dict[str, list[Any]], steps: Steps) -> None:
        """Check the names of an entry's jobs and, while nothing is wrong, make them."""
        where = ":".join(map(str, (self.source.file, *self.source.values[steps])))
        for called, chosen in naming.combinations(name, matrix):
            fault = naming.name_error(called)
            other = self.batch.where.get(called.lower())
            if other is not None:
                fault = fault or f"the name {called!r} is taken by the job at {other}, whatever the case"
            if fault:  # the other names of a matrix would only repeat it
                self.source.report((*steps, "name"), fault)
                return
            self.batch.where[called.lower()] = where
            if not self.source.problems:
                found, written = from_folder(self.folder, {**settings, **chosen})
                self.batch.jobs.append(Job(called, command, build(JOBS[command], **found), written))


def _find_out(sources: Sequence[SourceFile]) -> str | None:
    """The folder that the configs agree on, None where none names one."""
    data = [(source, source.data) for source in sources if isinstance(source.data, dict)]
    given = [(source, str(each["out"])) for source, each in data if each.get("out") is not None]
    for source, out in given:
        if out != given[0][1]:
            first = f"{shorten(given[0][1])} in {given[0][0].file}"
            source.report(("out",), f"is {first}; write the same in both, or say --out")
    return given[0][1] if given else None


def _check_files(sources: Sequence[SourceFile]) -> None:
    """A manifest tells configs by their names."""
    others: dict[str, SourceFile] = {}
    for source in sources:
        other = others.setdefault(Path(source.file).name, source)
        if other is not source:
            same = Path(other.file).absolute() == Path(source.file).absolute()
            said = "is given twice" if same else f"is called as {other.file} is; rename one of them"
            source.report_at((), (), said)
            source.data = None  # else all of its names would be there twice, too
