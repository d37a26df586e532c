"""`attnviz check`: one batch against another, job by job, and what shows the differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import isfinite
from pathlib import Path, PurePosixPath

from attnviz import store
from attnviz.differences import Checked, Unlike
from attnviz.errors import BadOption, BadSource
from attnviz.inputs import resolved
from attnviz.manifest import NAME, Entry, Manifest
from attnviz.renderers.json import alone
from attnviz.report import Case, Report
from attnviz.specs.batch import CheckSpec
from attnviz.views.check import check_cases, check_report
from attnviz.workflows.check_files import Looked, Tolerances, look
from attnviz.workflows.check_numbers import count, unlike_numbers

DIFFERENCES = "differences.json"
LONGEST_NAME = 64  # of a folder or a picture


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a check found and what it wrote: nothing where nothing differs."""

    checked: Checked
    report: Report
    cases: tuple[Case, ...]
    files: tuple[Path, ...]
    notices: tuple[str, ...]


def check(spec: CheckSpec) -> Outcome:
    """Compare numbers, then files. Raises BadSource for a folder without a manifest, BadOption for a bad tolerance."""
    tolerances = Tolerances(_allowed(spec.tolerance, "--tolerance"), _allowed(spec.pixels, "--pixels"))
    out = store.output_folder(spec.out)
    if resolved(out) in {resolved(Path(folder)) for folder in (spec.folder, spec.baseline)}:
        raise BadOption(f"--out {out} is one of the folders that are compared", hint="Choose another --out.")
    before, after = (manifest_in(Path(folder)) for folder in (spec.baseline, spec.folder))
    with ExitStack() as stack:
        pictures = Pictures(out, stack)
        checked = _checked(spec, before, after, tolerances, pictures)
        report = check_report(checked)
        files = tuple(pictures.files)
        if checked.differences:
            pictures.lock()
            store.write(out / DIFFERENCES, b"".join(alone(report)))
            files = (out / DIFFERENCES, *files)
    return Outcome(checked, report, check_cases(checked), files, tuple(_stale(out, files)))


def manifest_in(folder: Path) -> Manifest:
    """Raises BadSource where there is none, and what `from_file` raises."""
    if not (folder / NAME).is_file():
        raise BadSource(f"{folder} holds no {NAME}", hint="attnviz batch writes it.")
    from attnviz.configs.manifests import from_file

    return from_file(folder / NAME)


class Pictures:
    """Writes what shows a difference, below one folder; every name is safe and none is used twice."""

    def __init__(self, out: Path, stack: ExitStack) -> None:
        self.out = out
        self.files: list[Path] = []
        self._stack = stack  # what is to be undone at the end of the check
        self._locked = False
        self._used = {DIFFERENCES}
        self._folders: dict[str, Path] = {}

    def lock(self) -> None:
        """Keep the folder from other runs. Not before there is something to write: else it may be anything."""
        if not self._locked:
            self._stack.enter_context(store.locked(self.out))
            self._locked = True

    def write(self, job: str, path: str, pictures: Mapping[str, bytes]) -> None:
        """`JOB/NAME-expected.png` and so on. Raises OutputFailed when the disk refuses."""
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
        names = (name, *(f"{name}-{number}" for number in range(2, 1_000_000)))
        found = next(each for each in names if f"{within}{each}".lower() not in self._used)
        self._used.add(f"{within}{found}".lower())
        return found


def _slug(name: str) -> str:
    return re.sub("[^A-Za-z0-9._-]+", "-", name).strip("-.")[:LONGEST_NAME] or "unnamed"


def _checked(spec: CheckSpec, before: Manifest, after: Manifest, tolerances: Tolerances, pictures: Pictures) -> Checked:
    """Job by job, in the order of the batch; what only the baseline has comes last."""
    expected, actual = ({entry.name: entry for entry in manifest.jobs} for manifest in (before, after))
    differences: list[Unlike] = []
    looked: list[Looked] = []
    n_numbers = 0
    for job in actual:
        differences += _other_state(job, expected.get(job), actual[job])
        if job not in expected or expected[job].error or actual[job].error:
            continue
        n_numbers += count(expected[job].numbers, actual[job].numbers)
        differences += unlike_numbers(job, expected[job].numbers, actual[job].numbers, tolerances.numbers)
        for each in look((Path(spec.baseline), expected[job]), (Path(spec.folder), actual[job]), tolerances):
            looked.append(Looked(each.path, each.unlike, each.other_bytes))  # without the pictures, which are large
            differences += [each.unlike] if each.unlike else []
            if each.pictures:
                pictures.write(job, each.path, each.pictures)
    differences += [Unlike("missing job", job) for job in expected if job not in actual]
    common = [job for job in actual if job in expected]
    causes = {job: tuple(_causes(expected[job], actual[job])) for job in common}
    return Checked(
        folder=spec.folder,
        baseline=spec.baseline,
        tolerance=tolerances.numbers,
        pixels=tolerances.pixels,
        jobs=tuple(dict.fromkeys([*actual, *expected])),
        differences=tuple(differences),
        n_numbers=n_numbers,
        n_files=sum(each.unlike is None or each.unlike.kind in ("picture", "record", "file") for each in looked),
        n_other_bytes=sum(each.other_bytes for each in looked),
        failed_alike=tuple(job for job in common if actual[job].error and actual[job].error == expected[job].error),
        causes={job: found for job, found in causes.items() if found},
        versions=tuple(_changed(before.versions, after.versions)),
        config=next(iter(after.configs)) if len(after.configs) == 1 else "",
    )


def _other_state(job: str, expected: Entry | None, actual: Entry) -> Iterator[Unlike]:
    """A job that is new, or that failed in one of the batches or in another way."""
    if expected is None:
        yield Unlike("new job", job)
    if actual.error != (expected.error if expected else ""):
        yield Unlike("failed job", job, expected=expected.error if expected else "", actual=actual.error)


def _causes(expected: Entry, actual: Entry) -> Iterator[str]:
    """What a job was made from that is another: its command, settings by name, texts and weights."""
    if expected.command != actual.command:
        yield f"the command is {actual.command}, not {expected.command}"
    names = dict.fromkeys([*expected.settings, *actual.settings])
    if others := [name for name in names if expected.settings.get(name) != actual.settings.get(name)]:
        yield f"other settings ({', '.join(others)})"
    for name, digest in expected.inputs.items():  # what only one of them reads follows from the settings
        if actual.inputs.get(name, digest) != digest:
            yield f"other {name}"


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"{name} {before.get(name, 'none')} → {after.get(name, 'none')}"


def _allowed(value: float, option: str) -> float:
    if not (isfinite(value) and value >= 0):
        raise BadOption(f"{option} {value} is no tolerance", hint="It is 0 or more.")
    return value


def _stale(out: Path, files: tuple[Path, ...]) -> Iterator[str]:
    """What an earlier check left there, and what is not to be mistaken for new."""
    old = sorted(path for path in (*out.glob("*/*.png"), *out.glob(DIFFERENCES)) if path not in set(files))
    if old:
        found = "a file" if len(old) == 1 else f"{len(old)} files"
        yield f"{out} also holds {found} of an earlier check, such as {old[0].relative_to(out)}"
