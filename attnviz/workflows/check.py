"""`attnviz check`: one batch against another within tolerances, and the pictures that show the differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import chain, count
from math import isfinite
from pathlib import Path, PurePosixPath

from attnviz import store
from attnviz.differences import Tolerances
from attnviz.errors import DifferencesFound, InvalidOption
from attnviz.inputs import is_folder, resolved
from attnviz.renderers.json import alone
from attnviz.specs.batch import CheckSpec
from attnviz.views.check import check_cases, check_report
from attnviz.workflows import Events, Result
from attnviz.workflows.batch_diff.batches import differences, load_batch

DIFFERENCES = "differences.json"
MAX_NAME_LENGTH = 64  # of a folder or a picture


def check(spec: CheckSpec) -> Events:
    """Compare numbers, then files.

    Raises InvalidSource for a folder without a manifest, InvalidOption for a bad tolerance.
    """
    tolerances = content_tolerances(spec.tolerance, spec.pixels, spec.max_memory)
    out = store.output_folder(spec.out)
    if resolved(out) in {resolved(Path(folder)) for folder in (spec.folder, spec.baseline)}:
        raise InvalidOption(f"--out {out} is one of the folders that are compared", hint="Choose another --out.")
    before, after = (load_batch(Path(folder)) for folder in (spec.baseline, spec.folder))
    with ExitStack() as stack:
        pictures = DifferencePictures(out, stack)
        diff = differences(before, after, tolerances, pictures.write)
        report = check_report(diff, spec)
        files = tuple(pictures.files)
        if diff.differences:
            pictures.lock()
            store.write(out / DIFFERENCES, b"".join(alone(report)))
            files = (out / DIFFERENCES, *files)
    failure = DifferencesFound(report.title, hint=f"{out} holds what differs.") if diff.differences else None
    found = Result(report, files, tuple(_stale(out, files)), cases=check_cases(diff), failure=failure)
    return iter((found,))


def content_tolerances(tolerance: float, pixels: float, max_memory: float = 4.0) -> Tolerances:
    """By how much numbers and pictures may differ, whatever their bytes. Raises InvalidOption below 0 and for NaN."""
    check_tolerance(tolerance, "--tolerance ")
    check_tolerance(pixels, "--pixels ")
    return Tolerances(tolerance, pixels, max_memory=max_memory)


def check_tolerance(value: float, name: str) -> None:
    """Raises InvalidOption below 0 and for NaN."""
    if not (isfinite(value) and value >= 0):
        raise InvalidOption(f"{name}{value} is no tolerance", hint="It is 0 or more.")


class DifferencePictures:
    """Writes what shows a difference, below one folder; every name is safe and none is used twice."""

    def __init__(self, out: Path, stack: ExitStack) -> None:
        self.out = out
        self.files: list[Path] = []
        self._stack = stack  # what is to be undone at the end of the check
        self._used = {DIFFERENCES}
        self._folders: dict[str, Path] = {}

    def lock(self) -> None:
        """Keep the folder from other runs. Not before there is something to write: else it may be anything."""
        if not self.files:
            self._stack.enter_context(store.locked(self.out))

    def write(self, job: str, path: str, pictures: Mapping[str, bytes]) -> None:
        """`JOB/NAME-expected.png` and so on. Raises OutputError when the disk refuses."""
        self.lock()
        if job not in self._folders:
            self._folders[job] = self.out / self._unused(job, "")
        folder = self._folders[job]
        store.make_folder(folder)
        within = PurePosixPath(path.removeprefix(f"{job}/")).with_suffix("")
        name = self._unused(_slug("-".join(within.parts)), f"{folder.name}/")
        for what, data in pictures.items():
            store.write(folder / f"{name}-{what}.png", data)
            self.files.append(folder / f"{name}-{what}.png")

    def _unused(self, name: str, within: str) -> str:
        """Also where upper and lower case are one, as on some disks."""
        names = chain((name,), (f"{name}-{number}" for number in count(2)))
        found = next(each for each in names if f"{within}{each}".lower() not in self._used)
        self._used.add(f"{within}{found}".lower())
        return found


def _slug(name: str) -> str:
    return re.sub("[^A-Za-z0-9._-]+", "-", name).strip("-.")[:MAX_NAME_LENGTH] or "unnamed"


def _stale(out: Path, files: tuple[Path, ...]) -> Iterator[str]:
    """What an earlier check left there, and what is not to be mistaken for new."""
    there = (*out.glob("*/*.png"), *out.glob(DIFFERENCES)) if is_folder(out) else ()
    old = sorted(path for path in there if path not in set(files))
    if old:
        found = "a file" if len(old) == 1 else f"{len(old)} files"
        yield f"{out} also holds {found} of an earlier check, such as {old[0].relative_to(out)}"
