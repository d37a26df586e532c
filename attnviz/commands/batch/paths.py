"""Paths in settings. A relative one means a place in the config's folder.

`text_file`, `vocab`, `record`, `tokens_file` and `keys_file` are always paths. `dataset`, `model`, `models`, `base` and
`tuned` may be names too: there ./ or ../ in front makes a path; anything else with a slash is one, except a data set,
base or tuned model org/name that is not there; and a word with a dot, such as reviews.csv, is one if it is there. ~/ is
the home folder.
"""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from attnviz.bounded import exists, resolve_links
from attnviz.commands.batch.jobs import Job
from attnviz.options import list_values

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
