"""Configs as jobs, and what a config may say.

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

A config may say the settings of each command, from the options of its spec, which are also written as a JSON Schema.
A value is checked by `attnviz.options.check`, as on a command line. What is wrong goes to the problems of the
file that says it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING
from functools import cache, partial
from itertools import chain
from math import prod
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attnviz import options
from attnviz.commands.batch import naming, reading
from attnviz.commands.batch.jobs import JOBS, NOT_IN_CONFIGS, BatchPlan, Job, from_folder
from attnviz.commands.batch.reading import SourceFile, Steps
from attnviz.errors import InvalidConfig
from attnviz.options import FlatOption, InvalidValue, build, check_option, find_nearest, list_options, shorten

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A whole number is a text, too: `query: 3`.
JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: ["string", "integer"]}
JSON_LIMITS = {"at least": "minimum", "above": "exclusiveMinimum", "at most": "maximum", "below": "exclusiveMaximum"}
# What a config says beside the settings of commands.
OUT = FlatOption("out", "", str | None, options.Option("Folder to write to.", options.OUTPUT), "figures")
NAME = FlatOption("name", "", str | None, options.Option("Name of the job and of its folder.", options.OUTPUT), None)
Part = dict[str, Any]  # of a JSON Schema


@cache
def settings(command: str) -> Mapping[str, FlatOption]:
    """Return the options of a command that a config may set, by their names."""
    return {each.name: each for each in list_options(JOBS[command]) if each.name not in NOT_IN_CONFIGS}


def read_members(source: SourceFile, data: Any, known: Collection[str], steps: Steps) -> dict[str, Any]:
    """Return the members of an object, none of nothing. Those that are not known are told and left out."""
    if not isinstance(data, dict):
        if data is not None:
            source.report(steps, str(InvalidValue("settings (name: value)", data)))
        return {}
    for name in data:
        if name not in known:
            source.report_name((*steps, name), partial(_describe_unknown, name, tuple(known)))
    return {name: value for name, value in data.items() if name in known}


def read_settings(source: SourceFile, data: Any, command: str, steps: Steps) -> dict[str, Any]:
    """Return the settings of a command as its spec has them; what cannot be is told, and None there."""
    written, known = read_members(source, data, settings(command), steps), settings(command)
    return {name: read_setting(source, value, known[name], (*steps, name)) for name, value in written.items()}


def read_setting(source: SourceFile, value: Any, option: FlatOption, steps: Steps) -> Any:
    """Return a value as its option has it, a list item by item. What cannot be is told, and None there."""
    if get_origin(option.type) is tuple and isinstance(value, list | tuple) and value:
        item = option._replace(type=get_args(option.type)[0])
        return tuple(read_setting(source, one, item, (*steps, place)) for place, one in enumerate(value))
    try:
        if option.name == "text_file" and value == "-":
            raise InvalidValue("the name of a file (a batch has no standard input)", value)
        return check_option(option, value)
    except InvalidValue as error:
        source.report(steps, error.__str__)  # which searches for what may have been meant
        return None


def report_missing(source: SourceFile, command: str, given: Collection[str], steps: Steps) -> None:
    """Tell which settings a command cannot do without, of those that are not given."""
    for name, option in settings(command).items():
        if option.default is MISSING and name not in given:
            source.report(steps, f"{name} is missing")


def read_list(source: SourceFile, value: Any, steps: Steps) -> list[Any]:
    """Return a list; [] where it is none or empty, which is told."""
    if isinstance(value, list) and value:
        return value
    source.report(steps, str(InvalidValue("at least one" if value == [] else "a list", value)))
    return []


def _describe_unknown(name: str, known: tuple[str, ...]) -> str:
    """Write the next move after a name that does not exist here."""
    if name in NOT_IN_CONFIGS:
        return f"{shorten(name)} is for the command line; a batch decides it"
    near = find_nearest(name, known)
    return f"no {shorten(name)} here. " + (f"Did you mean {near!r}?" if near else f"There are {', '.join(known)}.")


def json_schema() -> Part:
    """Return a whole config as a JSON Schema of draft 2020-12."""
    jobs: dict[str, Part] = {}
    defaults: dict[str, list[Part]] = {}
    for command in JOBS:
        own = {name: _describe(option) for name, option in settings(command).items()}
        matrix = {name: _list_of(part) for name, part in own.items()}
        name = _describe(NAME) | {"pattern": f"^{naming.NAME}$"}
        jobs[command] = _close({"name": name, command: _close(own, "null"), "matrix": _close(matrix, "null")})
        jobs[command]["required"] = [command]
        for setting in own:
            reference = {"$ref": f"#/$defs/{command}/properties/{command}/properties/{setting}"}
            defaults.setdefault(setting, []).append(reference)
    any_job = _list_of({"anyOf": [{"$ref": f"#/$defs/{command}"} for command in JOBS]})
    any_default = _close({setting: {"anyOf": parts} for setting, parts in defaults.items()}, "null")
    whole = _close({"out": _describe(OUT) | {"minLength": 1}, "defaults": any_default, "jobs": any_job})
    about = {"$schema": DIALECT, "description": "What `attnviz batch` makes.", "required": ["jobs"]}
    return {**about, **whole, "$defs": jobs}


def _close(properties: dict[str, Part], *others: str) -> Part:
    """Describe an object of these members and no others, or a value of the `others` types."""
    return {"type": ["object", *others], "properties": properties, "additionalProperties": False}


def _list_of(item: Part) -> Part:
    return {"type": "array", "items": item, "minItems": 1}


def _describe(option: FlatOption) -> Part:
    """Describe the value of a setting. Where it has no default the schema names none."""
    found = _describe_type(option.type) | {JSON_LIMITS[how]: limit for how, limit in option.option.limits}
    found["description"] = option.option.write_config_help()
    if option.default not in (MISSING, ()):
        found["default"] = list(option.default) if isinstance(option.default, tuple) else option.default
    return found


def _describe_type(kind: Any) -> Part:
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        item = _describe_type(get_args(kind)[0])
        return {"anyOf": [item, _list_of(item)]}
    if NoneType in get_args(kind):
        return {"anyOf": [_describe_type(get_args(kind)[0]), {"type": "null"}]}
    return {"type": JSON_TYPES[kind]}


MAX_JOBS = 10_000

Settings = dict[str, Any]


def load_all(paths: Sequence[str | Path], out: str | None = None) -> BatchPlan:
    """Read what several configs ask for together. `out` is what the command line says, over what they say.

    Raises InvalidConfig with all problems of all of them.
    """
    batch, sources = _Batch(out), dict[str, SourceFile]()
    for path in map(Path, paths):
        source = reading.read(path)
        if path.name in sources:  # a manifest tells configs by their names
            problem = f"{source.file}: is called as {sources[path.name].file} is; rename one, or give it once"
            raise InvalidConfig([problem])
        sources[path.name] = source
        if source.data is not None or not source.problems:
            batch.read(source)
    in_order = (sorted(of.problems.values(), key=lambda each: each.place) for of in sources.values())
    if problems := [*chain.from_iterable(in_order)]:
        raise InvalidConfig(problems)
    return BatchPlan(tuple(batch.jobs), batch.out, {name: source.sha256 for name, source in sources.items()})


class _Batch:
    """The configs of a batch on their way to becoming jobs. Goes on after a problem, so that all are found."""

    def __init__(self, out: str | None) -> None:
        self.jobs: list[Job] = []
        self.where: dict[str, str] = {}  # of the first job of a name, in small letters
        self.n_jobs = 0  # asked for
        self.out, self.out_is_of = out, ""  # the folder, and the first config that names it

    def read(self, source: SourceFile) -> None:
        """Make the jobs of one config."""
        self.source = source
        self.numbers: Counter[str] = Counter()
        data = read_members(source, source.data, ("out", "defaults", "jobs"), ())
        every = dict.fromkeys(setting for command in JOBS for setting in settings(command))
        self.defaults = read_members(source, data.get("defaults"), every, ("defaults",))
        out = read_setting(source, data.get("out"), OUT, ("out",))
        if out == "":
            source.report(("out",), "write a folder, not nothing")
        elif self.out is None:  # that of the first config that names one; another may only name the same
            self.out, self.out_is_of = out, source.file
        elif self.out_is_of and out not in (None, self.out):
            first = f"{shorten(self.out)} in {self.out_is_of}"
            source.report(("out",), f"is {first}; write the same in both, or say --out")
        if "jobs" not in data:
            source.report((), "jobs is missing")
        entries = read_list(source, data["jobs"], ("jobs",)) if "jobs" in data else []
        for number, entry in enumerate(entries):
            self.read_entry(entry, ("jobs", number))

    def read_entry(self, entry: Any, steps: Steps) -> None:
        """Make the jobs of one entry."""
        if not isinstance(entry, dict):
            self.source.report(steps, str(InvalidValue("a command (heatmap: …)", entry)))
            return
        command = next((key for key in entry if key in JOBS), "")
        if not command:
            if read_members(self.source, entry, ("name", *JOBS, "matrix"), steps) == entry:
                self.source.report(steps, f"no command here; write one of {', '.join(JOBS)}")
            return
        read_members(self.source, entry, ("name", command, "matrix"), steps)
        self.numbers[command] += 1
        name = read_setting(self.source, entry.get("name"), NAME, (*steps, "name"))
        own = read_settings(self.source, entry[command], command, (*steps, command))
        matrix = self.read_matrix(entry.get("matrix"), command, (*steps, "matrix"))
        report_missing(self.source, command, {**self.defaults, **own, **matrix}, (*steps, command))
        for setting in own.keys() & matrix:
            self.source.report_name((*steps, "matrix", setting), f"is in {command} too; write it once")
        self.n_jobs += prod(map(len, matrix.values()))
        if self.n_jobs > MAX_JOBS:
            self.source.report(steps, f"makes {self.n_jobs:,} jobs in all; a batch has at most {MAX_JOBS:,}")
        else:
            written = {setting: value for setting, value in self.defaults.items() if setting in settings(command)}
            found = read_settings(self.source, written, command, ("defaults",)) | own
            self.make(f"{command}-{self.numbers[command]}" if name is None else name, command, found, matrix, steps)

    def read_matrix(self, data: Any, command: str, steps: Steps) -> dict[str, list[Any]]:
        """Return the values of each setting of a matrix."""
        lists = read_members(self.source, data, settings(command), steps)
        return {
            name: [
                read_setting(self.source, value, settings(command)[name], (*steps, name, number))
                for number, value in enumerate(read_list(self.source, several, (*steps, name)))
            ]
            for name, several in lists.items()
        }

    def make(self, name: str, command: str, settings: Settings, matrix: dict[str, list[Any]], steps: Steps) -> None:
        """Check the names of an entry's jobs and, while nothing is wrong, make them."""
        where = ":".join(map(str, (self.source.file, *self.source.values[steps])))
        for called, chosen in naming.combinations(name, matrix):
            fault = naming.name_error(called)
            other = self.where.get(called.lower())
            if other is not None:
                fault = fault or f"the name {called!r} is taken by the job at {other}, whatever the case"
            if fault:  # the other names of a matrix would only repeat it
                self.source.report((*steps, "name"), fault)
                return
            self.where[called.lower()] = where
            if not self.source.problems:
                found, written = from_folder(Path(self.source.file).parent, {**settings, **chosen})
                self.jobs.append(Job(called, command, build(JOBS[command], **found), written))
