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
from collections.abc import Mapping, Sequence, Set
from dataclasses import MISSING, dataclass, field
from functools import partial
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

from attnviz.commands.batch import naming, reading, schema
from attnviz.commands.batch.jobs import JOBS, BatchPlan, Job
from attnviz.commands.batch.paths import from_folder
from attnviz.commands.batch.settings import WRONG, Settings, SettingsReader, unknown
from attnviz.commands.batch.source_file import START, SourceFile, Steps
from attnviz.errors import InvalidConfig
from attnviz.option_values import InvalidValue, shorten
from attnviz.options import build

MAX_JOBS = 10_000

Matrix = Mapping[str, Sequence[object]]


def load(path: str | Path) -> BatchPlan:
    """What one config asks for. Raises InvalidConfig with all its problems."""
    return load_all([path])


def load_all(paths: Sequence[str | Path], out: str | None = None) -> BatchPlan:
    """What several configs ask for together. `out` is what the command line says, over what they say.

    Raises InvalidConfig with all problems of all of them.
    """
    documents = [reading.read(Path(path)) for path in paths]
    _check_files(documents)
    jobs = _Jobs()
    for document in documents:
        if document.complete:
            _Config(document, jobs).read()
    out = _out(documents) if out is None else out
    problems = [
        each for document in documents for each in sorted(document.problems, key=lambda problem: problem.place or START)
    ]
    if problems:
        raise InvalidConfig(problems)
    return BatchPlan(tuple(jobs.made), out, {Path(document.file).name: document.sha256 for document in documents})


@dataclass
class _Jobs:
    """Those of all configs: names are unique among them, and there are not too many."""

    made: list[Job] = field(default_factory=list)
    where: dict[str, str] = field(default_factory=dict)  # of the first job of a name, in small letters
    n_jobs: int = 0  # asked for


class _Config(SettingsReader):
    """One config on its way to becoming jobs. Goes on after a problem, so that all are found."""

    def __init__(self, document: SourceFile, jobs: _Jobs) -> None:
        super().__init__(document)
        self.jobs = jobs
        self.folder = Path(document.file).parent
        self.defaults: dict[str, Any] = {}
        self.defaults_of: dict[str, dict[str, Any]] = {}  # by command, once checked
        self.wrong_defaults: set[str] = set()  # `layer` may be wrong for two commands, and is told once
        self.numbers: Counter[str] = Counter()

    def read(self) -> None:
        data = self.document.data
        if not isinstance(data, dict):
            self.report((), str(InvalidValue("settings (name: value)", data)))
            return
        known = ("out", "defaults", "jobs")
        for key in data.keys() - known:
            self.report((key,), partial(unknown, key, known), at_key=True)
        self.value(str | None, data.get("out"), ("out",))
        if data.get("out") == "":
            self.report(("out",), "write a folder, not nothing")
        self.defaults = self.members(data.get("defaults"), ("defaults",))
        if "jobs" not in data:
            self.report((), "jobs is missing")
        jobs = self.items(data["jobs"], ("jobs",)) if "jobs" in data else []
        self.check_defaults({self.job(raw, ("jobs", number)) for number, raw in enumerate(jobs)} - {""})

    def job(self, raw: Any, steps: Steps) -> str:
        """Make the jobs of one entry. Gives its command, "" where none can be told."""
        command = self.command(raw, steps)
        if not command:
            return ""
        self.numbers[command] += 1
        options = schema.settings(command)
        defaults = self.defaults_for(command)
        n_problems = len(self.document.problems)
        for key in raw.keys() - {"name", "matrix", *JOBS}:
            known = partial(unknown, key, ("name", command, "matrix"))
            self.report((*steps, key), f"belongs under {command}; indent it" if key in options else known, at_key=True)
        name = self.value(str | None, raw.get("name"), (*steps, "name"))
        own = self.settings(command, raw[command], (*steps, command))
        matrix = self.matrix(command, raw.get("matrix"), (*steps, "matrix"))
        if len(self.document.problems) > n_problems or WRONG in (name, *own.values(), *chain(*matrix.values())):
            if isinstance(name, str) and (fault := naming.name_error(name)):
                self.report((*steps, "name"), fault)
            return command
        settings = {**defaults, **own}
        for setting, option in options.items():
            if option.default is MISSING and setting not in {**settings, **matrix}:
                self.report((*steps, command), f"{setting} is missing")
        for setting in own.keys() & matrix:
            self.report((*steps, "matrix", setting), f"is in {command} too; write it once", at_key=True)
        if self.has_room(prod(map(len, matrix.values())), steps):
            self.make(f"{command}-{self.numbers[command]}" if name is None else name, command, settings, matrix, steps)
        return command

    def command(self, raw: Any, steps: Steps) -> str:
        """The one command of a job, "" where there is none, and then that is told."""
        if steps in self.document.spoilt:
            return ""
        if not isinstance(raw, dict):
            self.document.report(steps, str(InvalidValue("a command (heatmap: …)", raw)))
            return ""
        members: dict[str, Any] = raw
        first, *more = [key for key in members if key in JOBS] or [""]
        for key in more:
            self.document.report((*steps, key), "a job has one command; make this one a job of its own", at_key=True)
        others = [key for key in members if key not in ("name", "matrix")]
        if not others:
            self.document.report(steps, f"no command here; write one of {', '.join(JOBS)}")
        for key in others if not first else ():
            self.document.report((*steps, key), partial(unknown, key, ["name", *JOBS, "matrix"]), at_key=True)
        return first

    def defaults_for(self, command: str) -> Settings:
        """Those that the command has; one that is wrong is told by the first command that has it."""
        if command not in self.defaults_of:
            found = self.defaults_of[command] = {}
            for name, option in schema.settings(command).items():
                if name in self.defaults:
                    wrong = name in self.wrong_defaults
                    found[name] = WRONG if wrong else self.setting(option, self.defaults[name], ("defaults", name))
                    self.wrong_defaults |= {name} if found[name] is WRONG else set()
        return self.defaults_of[command]

    def check_defaults(self, commands: Set[str]) -> None:
        possible = list(dict.fromkeys(setting for command in JOBS for setting in schema.settings(command)))
        for setting in self.defaults:
            if setting not in possible:
                self.document.report(("defaults", setting), partial(unknown, setting, possible), at_key=True)
            elif commands and not any(setting in schema.settings(command) for command in commands):
                self.document.report(("defaults", setting), "no job here has this setting; leave it out", at_key=True)

    def has_room(self, n_jobs: int, steps: Steps) -> bool:
        """Told once, by the job that is too much."""
        before = self.jobs.n_jobs
        self.jobs.n_jobs += n_jobs
        if before <= MAX_JOBS < self.jobs.n_jobs:
            self.document.report(steps, f"makes {self.jobs.n_jobs:,} jobs in all; a batch has at most {MAX_JOBS:,}")
        return self.jobs.n_jobs <= MAX_JOBS

    def make(self, name: str, command: str, settings: Settings, matrix: Matrix, steps: Steps) -> None:
        """Check the names of an entry's jobs and, while nothing is wrong, make them."""
        place = self.document.place(steps)
        where = f"{self.document.file}:{place.line}:{place.column}"
        for called, chosen in naming.combinations(name, matrix):
            fault = naming.name_error(name) or naming.name_error(called)
            other = self.jobs.where.get(called.lower())
            if other is not None:
                fault = fault or f"the name {called!r} is taken by the job at {other}, whatever the case"
            if fault:  # the other names of a matrix would only repeat it
                self.document.report((*steps, "name"), fault)
                return
            self.jobs.where[called.lower()] = where
            if not self.document.problems:
                found, written = from_folder(self.folder, {**settings, **chosen})
                self.jobs.made.append(Job(called, command, build(JOBS[command], **found), written))


def _out(documents: Sequence[SourceFile]) -> str | None:
    """The folder that the configs agree on, None where none names one."""
    first: tuple[str, str] | None = None
    for document in documents:
        given = document.data.get("out") if isinstance(document.data, dict) else None
        if given is None:
            continue
        if first is None:
            first = str(given), document.file
        elif str(given) != first[0]:
            document.report(("out",), f"is {shorten(first[0])} in {first[1]}; write the same in both, or say --out")
    return first[0] if first else None


def _check_files(documents: Sequence[SourceFile]) -> None:
    """A manifest tells configs by their names."""
    others: dict[str, SourceFile] = {}
    for document in documents:
        other = others.setdefault(Path(document.file).name, document)
        if other is not document:
            same = Path(other.file).absolute() == Path(document.file).absolute()
            document.tell_of_file("is given twice" if same else f"is called as {other.file} is; rename one of them")
            document.complete = False  # else all of its names would be there twice, too
