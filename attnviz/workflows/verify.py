"""`attnviz verify`: a batch made once more from its manifest, elsewhere, and held against what lies there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from attnviz.configs.again import again
from attnviz.errors import BadSource
from attnviz.jobs import Job
from attnviz.manifest import NAME, Entry, File, Manifest
from attnviz.specs.batch import VerifySpec
from attnviz.workflows.batch import cores
from attnviz.workflows.check import manifest_in
from attnviz.workflows.check_numbers import pairs, shape
from attnviz.workflows.perform import versions, written
from attnviz.workflows.workers import Done, share_out


@dataclass(frozen=True)
class Verifying:
    """What is to be made again."""

    n_jobs: int


@dataclass(frozen=True)
class Verified:
    """The end. `number` and `bytes` are the first differences of either kind in words, empty where there is none."""

    n_jobs: int
    n_files: int
    number: str
    bytes: str
    notices: tuple[str, ...]


Event: TypeAlias = Verifying | Done | Verified


def verify(spec: VerifySpec) -> Iterator[Event]:
    """Make all jobs of a manifest again, in a folder that goes away, and compare.

    Raises BadSource without a manifest, BadConfig for one that this version cannot follow.
    """
    folder = Path(spec.folder)
    manifest = manifest_in(folder)
    jobs = [again(entry, Path(spec.root), str(folder / NAME)) for entry in manifest.jobs]
    if not jobs:
        raise BadSource(f"{folder / NAME} holds no jobs", hint="attnviz batch fills it.")
    return _verified(folder, manifest, jobs)


def _verified(folder: Path, manifest: Manifest, jobs: list[Job]) -> Iterator[Event]:
    yield Verifying(len(jobs))
    made: dict[str, Entry] = {}
    with (
        tempfile.TemporaryDirectory(prefix="attnviz-verify-") as place,
        closing(share_out(jobs, Path(place), {}, min(cores(), len(jobs)), fail_fast=False)) as events,
    ):
        for done in events:
            made[done.entry.name] = done.entry
            yield done
    both = [(entry, made[entry.name]) for entry in manifest.jobs]
    yield Verified(
        n_jobs=len(jobs),
        n_files=sum(len(entry.files) for entry in manifest.jobs),
        number=next((words for old, new in both for words in _numbers(old, new)), ""),
        bytes=next((words for old, new in both for words in _bytes(old, new, folder)), ""),
        notices=tuple(_notices(manifest)),
    )


def _numbers(old: Entry, new: Entry) -> Iterator[str]:
    """Every number that is not the same to the last bit, in words."""
    if old.error != new.error:
        yield f"{old.name}: {new.error or 'is made'}, and {'failed' if old.error else 'was made'} before"
    for text in dict.fromkeys([*old.numbers, *new.numbers]):
        before, after = old.numbers.get(text, {}), new.numbers.get(text, {})
        for measure in dict.fromkeys([*before, *after]):
            where = f"{old.name}, {text}, {measure}"
            one, other = before.get(measure, []), after.get(measure, [])
            if shape(one) != shape(other):
                yield f"{where}: {shape(other)}, in the manifest {shape(one)}"
            for layer, head, expected, actual in pairs(one, other):
                if expected != actual:
                    yield f"{where}, layer {layer}, head {head}: {actual!r}, in the manifest {expected!r}"


def _bytes(old: Entry, new: Entry, folder: Path) -> Iterator[str]:
    """Every file with other bytes: in the folder than its manifest says, or made again than in the manifest."""
    made = {file.path: file for file in new.files}
    for file in old.files:
        path = folder / file.path
        if not path.is_file():
            yield f"{file.path} is gone from {folder}"
        elif not path.resolve().is_relative_to(folder.resolve()):
            yield f"{file.path} is a link out of {folder}"
        elif written(path, folder) != file:
            yield f"{file.path} was changed after it was made"
        elif file.path not in made:
            yield f"{file.path} is not made any more"
        elif made[file.path] != file:
            yield f"{file.path}: {_shown(made[file.path])}, in the manifest {_shown(file)}"
    for path_ in made.keys() - {file.path for file in old.files}:
        yield f"{path_} is made and is not in the manifest"


def _shown(file: File) -> str:
    return f"{file.size:,} bytes with sha256 {file.sha256[:8]}…"


def _notices(manifest: Manifest) -> Iterator[str]:
    """Other versions are the usual reason for other bytes."""
    here = versions()
    for package, before in manifest.versions.items():
        if here.get(package) != before:
            yield f"made with {package} {before}, and here is {here.get(package, 'none')}"
