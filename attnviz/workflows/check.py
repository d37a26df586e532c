"""`attnviz check`: one batch against another within tolerances, and the pictures that show the differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import chain, count
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
MAX_NAME_LENGTH = 64  # of a picture


def check(spec: CheckSpec) -> Events:
    """Compare numbers, then files.

    Raises InvalidSource for a folder without a manifest, InvalidOption for a bad tolerance.
    """
    tolerances = Tolerances(spec.tolerance, spec.pixels, max_memory=spec.max_memory)
    out = store.output_folder(spec.out)
    if resolved(out) in {resolved(Path(folder)) for folder in (spec.folder, spec.baseline)}:
        raise InvalidOption(f"--out {out} is one of the folders that are compared", hint="Choose another --out.")
    before, after = (load_batch(Path(folder)) for folder in (spec.baseline, spec.folder))
    with ExitStack() as stack:
        written = DifferenceFiles(out, stack)
        diff = differences(before, after, tolerances, written.write_pictures)
        report = check_report(diff, spec)
        if diff.differences:
            written.write(out / DIFFERENCES, b"".join(alone(report)))
    files = (*written.files[-1:], *written.files[:-1])  # first what tells of all
    failure = DifferencesFound(report.title, hint=f"{out} holds what differs.") if diff.differences else None
    return iter((Result(report, files, tuple(_stale(out, files)), cases=check_cases(diff), failure=failure),))


class DifferenceFiles:
    """Writes what shows a difference, below one folder; every name is safe and none is used twice."""

    def __init__(self, out: Path, stack: ExitStack) -> None:
        self.files: list[Path] = []
        self._out, self._stack = out, stack  # what is to be undone at the end of the check
        self._used: set[str] = set()

    def write(self, file: Path, data: bytes) -> None:
        """Keeps the folder from other runs, but not before there is something to write: until then it may be anything.

        Raises OutputError when the disk refuses.
        """
        if not self.files:
            self._stack.enter_context(store.locked(self._out))
        store.make_folder(file.parent)
        store.write(file, data)
        self.files.append(file)

    def write_pictures(self, job: str, path: str, pictures: Mapping[str, bytes]) -> None:
        """`JOB/NAME-expected.png` and so on. Raises OutputError when the disk refuses."""
        folder = self._out / (f"{job}-2" if job.lower() == DIFFERENCES else job)
        stem = "-".join(PurePosixPath(path.removeprefix(f"{job}/")).with_suffix("").parts)
        stem = re.sub("[^A-Za-z0-9._-]+", "-", stem).strip("-.")[:MAX_NAME_LENGTH] or "unnamed"
        names = (str(folder / name) for name in chain((stem,), (f"{stem}-{number}" for number in count(2))))
        name = next(each for each in names if each.lower() not in self._used)  # upper and lower case may be one
        self._used.add(name.lower())
        for what, data in pictures.items():
            self.write(Path(f"{name}-{what}.png"), data)


def _stale(out: Path, files: tuple[Path, ...]) -> Iterator[str]:
    """What an earlier check left there, and what is not to be mistaken for new."""
    there = (*out.glob("*/*.png"), *out.glob(DIFFERENCES)) if is_folder(out) else ()
    old = sorted(path for path in there if path not in set(files))
    if old:
        found = "a file" if len(old) == 1 else f"{len(old)} files"
        yield f"{out} also holds {found} of an earlier check, such as {old[0].relative_to(out)}"
