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

A relative path means a place in the config's folder. `text_file` and `vocab` are always paths. `dataset`, `model` and
`models` may be names too: there ./ or ../ in front makes a path; anything else with a slash is one, except a data set
org/name that is not there; and a word with a dot, such as reviews.csv, is one if it is there. ~/ is the home folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from attnviz.configs import naming, reading, schema
from attnviz.configs.source_file import START, SourceFile, Steps, shorten
from attnviz.configs.wording import error_message, instead, unknown
from attnviz.errors import InvalidConfig
from attnviz.inputs import exists
from attnviz.jobs import JOBS, BatchPlan, Job
from attnviz.options import build

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_JOBS = 10_000
PATHS = frozenset({"text_file", "vocab"})
NAMES_OR_PATHS = frozenset({"dataset", "model", "models"})

Settings = dict[str, Any]
Matrix = Mapping[str, Sequence[object]]
Model = TypeVar("Model", bound=BaseModel)


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


class _Config:
    """One config on its way to becoming jobs. Goes on after a problem, so that all are found."""

    def __init__(self, document: SourceFile, jobs: _Jobs) -> None:
        self.document = document
        self.jobs = jobs
        self.folder = Path(document.file).parent
        self.defaults: dict[str, Any] = {}
        self.defaults_of: dict[str, dict[str, Any]] = {}  # by command, once checked
        self.wrong_defaults: set[str] = set()  # `layer` may be wrong for two commands, and is told once
        self.numbers: Counter[str] = Counter()

    def read(self) -> None:
        data = self.document.data
        self.checked(schema.Shell, data, (), partial(error_message, names=list(schema.Shell.model_fields)))
        if not isinstance(data, dict):
            return
        if data.get("out") == "":
            self.document.report(("out",), "write a folder, not nothing")
        self.defaults = data["defaults"] if isinstance(data.get("defaults"), dict) else {}
        jobs = data["jobs"] if isinstance(data.get("jobs"), list) else []
        self.check_defaults({self.job(raw, ("jobs", number)) for number, raw in enumerate(jobs)} - {""})

    def job(self, raw: Any, steps: Steps) -> str:
        """Make the jobs of one entry. Gives its command, "" where none can be told."""
        command = self.command(raw, steps)
        if not command:
            return ""
        self.numbers[command] += 1
        parts = {key: value for key, value in raw.items() if key not in JOBS or key == command}
        known = self.checked(schema.job_model(command), parts, steps, partial(_sentence_in_job, command))
        defaults = self.defaults_for(command)
        if known is None:
            name = raw.get("name")
            if isinstance(name, str) and (fault := naming.name_error(name)):
                self.document.report((*steps, "name"), fault)
            return command
        own, matrix = _given(getattr(known, command), raw[command]), _given(known.matrix, raw.get("matrix"))
        for setting in schema.required(command):
            if setting not in {**defaults, **own, **matrix}:
                self.document.report((*steps, command), f"{setting} is missing")
        for setting, values in matrix.items():
            self.check_values(values, (*steps, "matrix", setting))
            if setting in own:
                self.document.report((*steps, "matrix", setting), f"is in {command} too; write it once", at_key=True)
        if self.has_room(prod(map(len, matrix.values())), steps):
            name = f"{command}-{self.numbers[command]}" if known.name is None else known.name
            self.make(name, command, {**defaults, **own}, matrix, steps)
        return command

    def command(self, raw: Any, steps: Steps) -> str:
        """The one command of a job, "" where there is none, and then that is told."""
        if steps in self.document.spoilt:
            return ""
        if not isinstance(raw, dict):
            self.document.report(steps, instead("a command (heatmap: …)", raw))
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

    def checked(
        self, model: type[Model], data: Any, steps: Steps, words: Callable[[ErrorDetails], str]
    ) -> Model | None:
        """`data` as a model, None where it is not one, and then all that is wrong with it is told."""
        try:
            return model.model_validate(data)
        except ValidationError as problems:
            for error in problems.errors(include_url=False):
                where = self.written((*steps, *error["loc"]))
                around = {where[:length] for length in range(len(where) + 1)}
                if not around & self.document.spoilt:
                    at_key = error["type"] == "extra_forbidden"
                    self.document.report(where, partial(words, error), at_key=at_key)
            return None

    def written(self, steps: Steps) -> Steps:
        """Without what only pydantic saw, the [0] of a single value. What is missing belongs to what lacks it."""
        while steps not in self.document.values and steps:
            steps = steps[:-1]
        return steps

    def defaults_for(self, command: str) -> dict[str, Any]:
        if command not in self.defaults_of:
            known = schema.types(command)
            chosen = {name: value for name, value in self.defaults.items() if name in known}
            unsure = {name: value for name, value in chosen.items() if name not in self.wrong_defaults}
            n_problems = len(self.document.problems)
            model = self.checked(schema.settings_model(command), unsure, ("defaults",), error_message)
            self.wrong_defaults |= {str(each.steps[1]) for each in self.document.problems[n_problems:]}
            self.defaults_of[command] = chosen if model is None else _given(model, unsure)
        return self.defaults_of[command]

    def check_defaults(self, commands: Set[str]) -> None:
        possible = list(dict.fromkeys(setting for command in JOBS for setting in schema.types(command)))
        for setting in self.defaults:
            if setting not in possible:
                self.document.report(("defaults", setting), partial(unknown, setting, possible), at_key=True)
            elif commands and not any(setting in schema.types(command) for command in commands):
                self.document.report(("defaults", setting), "no job here has this setting; leave it out", at_key=True)

    def check_values(self, values: Sequence[object], steps: Steps) -> None:
        seen: set[object] = set()
        for number, value in enumerate(values):
            if value in seen:
                self.document.report((*steps, number), "is in the list twice")
            seen.add(value)

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
                found, written = self.from_folder({**settings, **chosen})
                self.jobs.made.append(Job(called, command, build(JOBS[command], **found), where, written))

    def from_folder(self, settings: Settings) -> tuple[Settings, Settings]:
        """Settings with their paths from the current folder; and as they were written, those that this changed."""
        found = dict(settings)
        for setting in settings.keys() & {*PATHS, *NAMES_OR_PATHS}:
            match settings[setting]:
                case str(written):
                    found[setting] = self.path(setting, written)
                case tuple(several):
                    found[setting] = tuple(self.path(setting, each) for each in several)
        return found, {setting: value for setting, value in settings.items() if found[setting] != value}

    def path(self, setting: str, written: str) -> str:
        """Raises nothing: what is no path stays a name."""
        if written == "~" or written.startswith("~/") or Path(written).is_absolute() or not written:
            return written
        path = self.folder / written
        if not _is_path(setting, written, path):
            return written
        return str(path) if path.is_absolute() else f"./{path}"  # never a bare word, which would be a name


def _is_path(setting: str, written: str, path: Path) -> bool:
    if setting in PATHS or written.startswith(("./", "../")):
        return True
    if setting != "dataset" or written.count("/") != 1:
        return "/" in written or ("." in written and exists(path))
    return exists(path)


def _sentence_in_job(command: str, error: ErrorDetails) -> str:
    names = list(schema.types(command))
    if len(error["loc"]) > 1:
        return error_message(error, names)
    if error["type"] == "extra_forbidden" and error["loc"][0] in names:
        return f"belongs under {command}; indent it"
    return error_message(error, ["name", command, "matrix"])


def _given(settings: BaseModel | None, raw: Mapping[str, Any] | None) -> Settings:
    """The settings that were written, in their order there, not those left at their defaults."""
    return {} if settings is None or raw is None else {name: getattr(settings, name) for name in raw}


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
