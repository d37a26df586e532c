"""What a config asks for: jobs, each a command with its settings. Knows the registry of commands and no files.

A relative path in a setting means a place in the config's folder.
`text_file`, `vocab`, `record`, `tokens_file` and `keys_file` are always paths. `dataset`, `model`, `models`, `base` and
`tuned` may be names too: there ./ or ../ in front makes a path; anything else with a slash is one, except a data set,
base or tuned model org/name that is not there; and a word with a dot, such as reviews.csv, is one if it is there. ~/ is
the home folder.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from attnviz.bounded import exists, resolve_links
from attnviz.commands import COMMANDS
from attnviz.options import find_changed, list_values
from attnviz.registry import load

# What each command that a config may name is asked: of every command that says what it reads.
JOBS: dict[str, type[Any]] = {command.name: load(command.spec) for command in COMMANDS if command.inputs}
# What a flag can say and a config cannot: where things go, who makes them and what the terminal shows is the batch's.
NOT_IN_CONFIGS = frozenset({"out", "json", "open", "table", "quiet", "print", "inline_text", "resume", "fresh"})
NOT_IN_CONFIGS |= {"workers", "shard", "scheduler", "scheduler_file"}


@dataclass(frozen=True)
class Job:
    """One thing to make. `name` is its folder."""

    name: str
    command: str
    spec: Any
    # Paths as the config writes them. The spec has them from the current folder, which must not show in a manifest.
    written: dict[str, object] = field(default_factory=dict, hash=False)

    @property
    def settings(self) -> dict[str, object]:
        """Return the chosen settings: each that a config can say and that is not at its default."""
        return {
            name: self.written.get(name, value)
            for name, value in find_changed(self.spec).items()
            if name not in NOT_IN_CONFIGS
        }


@dataclass(frozen=True)
class BatchPlan:
    """All that configs ask for. `out` is None where none says it; `configs` are file names with sha256 of the bytes."""

    jobs: tuple[Job, ...]
    out: str | None
    configs: dict[str, str]


PATHS = frozenset({"text_file", "vocab", "record", "tokens_file", "keys_file"})
NAMES_OR_PATHS = frozenset({"dataset", "model", "models", "base", "tuned"})


def from_folder(folder: Path, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Resolve the paths in settings that start from `folder`; return all settings, and the changed ones as written."""
    found = dict(settings)
    for setting in settings.keys() & {*PATHS, *NAMES_OR_PATHS}:
        match settings[setting]:
            case str(written):
                found[setting] = _from_folder(folder, setting, written)
            case tuple(several):
                found[setting] = tuple(_from_folder(folder, setting, each) for each in several)
    return found, {setting: value for setting, value in settings.items() if found[setting] != value}


def find_needed_jobs(jobs: Sequence[Job], folder: Path) -> dict[str, set[str]]:
    """Return, by the name of each job, the names of the others whose files it reads: a model, a record, texts.

    `folder` is that of the batch, in which each job has a folder of its own.
    """
    names, top = {job.name for job in jobs}, resolve_links(folder)
    needed: dict[str, set[str]] = {job.name: set() for job in jobs}
    for job in jobs:
        values = list_values(job.spec)
        several = (values[name] for name in values.keys() & {*PATHS, *NAMES_OR_PATHS})
        for written in chain.from_iterable(each if isinstance(each, tuple) else (each,) for each in several):
            if written is not None and "/" in written:  # else it is a name
                path = resolve_links(Path(os.path.expanduser(written)))  # noqa: PTH111  # never raises
                if path != top and path.is_relative_to(top):
                    needed[job.name] |= {path.relative_to(top).parts[0]} & names - {job.name}
    return needed


def _from_folder(folder: Path, setting: str, written: str) -> str:
    """Resolve a path that may be a name; what is no path stays a name. Raises nothing."""
    if written == "~" or written.startswith("~/") or Path(written).is_absolute() or not written:
        return written
    path = folder / written
    if setting not in PATHS and not written.startswith(("./", "../")):
        may_be_there = not setting.startswith("model") and written.count("/") == 1  # else it is a name on the hub
        is_path = exists(path) if may_be_there else "/" in written or ("." in written and exists(path))
        if not is_path:
            return written
    return str(path) if path.is_absolute() else f"./{path}"  # never a bare word, which would be a name
