"""Entries of a manifest as the jobs that they came of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from attnviz.bounded import exists
from attnviz.commands.batch import schema
from attnviz.commands.batch.jobs import JOBS, Job
from attnviz.commands.batch.paths import NAMES_OR_PATHS, PATHS
from attnviz.commands.batch.problems import describe_error
from attnviz.commands.batch.source_file import format_path
from attnviz.errors import InvalidConfig
from attnviz.options import build
from attnviz.store.manifest import Entry


def job_from_manifest(entry: Entry, root: Path, where: str) -> Job:
    """The job that an entry tells of. A relative path in its settings that is there below `root` starts from there.

    Raises InvalidConfig for a command or a setting that this version does not know.
    """
    if entry.command not in JOBS:
        raise InvalidConfig([f"{where}: {entry.name}: no command {entry.command!r}"])
    model = schema.settings_model(entry.command)
    try:
        settings = model.model_validate(entry.settings)
    except ValidationError as problems:
        said = (f"{format_path(each['loc'])}: {describe_error(each, model.model_fields)}" for each in problems.errors())
        raise InvalidConfig([f"{where}: {entry.name}: {line}" for line in said]) from problems
    written = {name: getattr(settings, name) for name in entry.settings}
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
