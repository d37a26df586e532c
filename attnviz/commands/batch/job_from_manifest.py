"""Entries of a manifest as the jobs that they came of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnviz.bounded import exists
from attnviz.commands.batch import schema
from attnviz.commands.batch.jobs import JOBS, Job
from attnviz.commands.batch.paths import NAMES_OR_PATHS, PATHS
from attnviz.commands.batch.settings import NO_STDIN, error_message, reads_stdin, unknown
from attnviz.errors import InvalidConfig
from attnviz.option_values import InvalidValue, check
from attnviz.options import build
from attnviz.store.manifest import Entry


def job_from_manifest(entry: Entry, root: Path, where: str) -> Job:
    """The job that an entry tells of. A relative path in its settings that is there below `root` starts from there.

    Raises InvalidConfig for a command or a setting that this version does not know.
    """
    if entry.command not in JOBS:
        raise InvalidConfig([f"{where}: {entry.name}: no command {entry.command!r}"])
    options = schema.settings(entry.command)
    written: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in entry.settings.items():
        try:
            if name not in options:
                problems.append(unknown(name, options))
                continue
            written[name] = check(options[name].type, value)
            problems += [f"{name}: {NO_STDIN}"] * reads_stdin(options[name], written[name])
        except InvalidValue as error:
            problems.append(f"{name}: {error_message(error)}")
    if problems:
        raise InvalidConfig([f"{where}: {entry.name}: {problem}" for problem in problems])
    found: dict[str, Any] = {
        name: _there(value, root) if name in PATHS | NAMES_OR_PATHS else value for name, value in written.items()
    }
    changed = {name: value for name, value in written.items() if found[name] != value}
    return Job(entry.name, entry.command, build(JOBS[entry.command], **found), changed)


def _there(value: object, root: Path) -> object:
    if isinstance(value, tuple):
        return tuple(_there(each, root) for each in value)
    if isinstance(value, str) and value and not Path(value).is_absolute() and exists(root / value):
        return str((root / value).absolute())
    return value
