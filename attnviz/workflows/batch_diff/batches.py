"""What differs between two batches: their jobs, the numbers of each job, its files. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from attnviz.differences import BatchDiff, Difference, Tolerances
from attnviz.errors import InvalidSource
from attnviz.inputs import is_file
from attnviz.manifest import NAME, Entry, Manifest, Numbers
from attnviz.measures import FORMER_NAMES
from attnviz.workflows.batch_diff.files import ShowPictures, compare_files
from attnviz.workflows.batch_diff.numbers import compare_numbers, count_numbers, other_places, paired, placed

COMPARED = ("picture", "record", "file")  # differences of files that both have


@dataclass(frozen=True)
class LoadedBatch:
    """A manifest and the folder that its files are in."""

    folder: Path
    manifest: Manifest

    @property
    def entries(self) -> dict[str, Entry]:
        """What the manifest holds of each job, by name."""
        return {entry.name: entry for entry in self.manifest.jobs}


def load_batch(folder: Path) -> LoadedBatch:
    """Raises InvalidSource where there is no manifest, InvalidConfig for one that this version does not write."""
    if not is_file(folder / NAME):
        raise InvalidSource(f"{folder} holds no {NAME}", hint="attnviz batch writes it.")
    return read_batch(folder / NAME)


def read_batch(file: Path) -> LoadedBatch:
    """Numbers are under what their measures are called now, so that an older baseline still compares."""
    from attnviz.configs.manifests import from_file

    manifest = from_file(file)
    jobs = (replace(entry, numbers=_with_present_names(entry.numbers)) for entry in manifest.jobs)
    return LoadedBatch(file.parent, replace(manifest, jobs=tuple(jobs)))


def _with_present_names(numbers: Numbers) -> Numbers:
    return {
        text: {FORMER_NAMES.get(name, name): values for name, values in of_text.items()}
        for text, of_text in numbers.items()
    }


def differences(
    before: LoadedBatch, after: LoadedBatch, tolerances: Tolerances, show: ShowPictures = lambda *_: None
) -> BatchDiff:
    """Job by job, in the order of `after`; what only `before` has comes last.

    `show` is given the pictures that show a difference, as each is found. Raises InvalidSource where contents are
    compared and a link leads out of a folder.
    """
    expected, actual = before.entries, after.entries
    found: list[Difference] = []
    n_numbers = n_files = n_other_bytes = 0
    for job, entry in actual.items():
        found += _state(expected.get(job), entry)
        if job not in expected or (tolerances.skip_failed and (expected[job].error or entry.error)):
            continue
        numbers = compare_numbers(job, expected[job].numbers, entry.numbers, tolerances.numbers)
        found += [*other_places(expected[job], entry), *(placed(each, entry) for each in numbers)]
        n_numbers += count_numbers(expected[job].numbers, entry.numbers)
        for file in compare_files((before.folder, expected[job]), (after.folder, entry), tolerances, show):
            found += [file] if isinstance(file, Difference) else []
            n_files += not isinstance(file, Difference) or file.kind in COMPARED
            n_other_bytes += file == "same content"
    found += [Difference("missing job", job) for job in expected if job not in actual]
    common = [job for job in actual if job in expected]
    causes = {job: tuple(_causes(expected[job], actual[job])) for job in common}
    configs = after.manifest.configs
    return BatchDiff(
        jobs=tuple(dict.fromkeys([*actual, *expected])),
        differences=tuple(found),
        n_numbers=n_numbers,
        n_files=n_files,
        n_other_bytes=n_other_bytes,
        failed_alike=tuple(job for job in common if actual[job].error and actual[job].error == expected[job].error),
        causes={job: why for job, why in causes.items() if why},
        versions=tuple(
            (name, old or "none", new or "none")
            for name, old, new in paired(before.manifest.versions, after.manifest.versions)
            if old != new
        ),
        config=next(iter(configs)) if len(configs) == 1 else "",
    )


def _state(expected: Entry | None, actual: Entry) -> Iterator[Difference]:
    """A job that is new, or that failed in one of the batches or in another way."""
    if expected is None:
        yield Difference("new job", actual.name)
    error = expected.error if expected else ""
    if actual.error != error:
        yield Difference("failed job", actual.name, expected=error, actual=actual.error)


def _causes(expected: Entry, actual: Entry) -> Iterator[str]:
    """What a job was made from that is another: its command, settings by name, texts and weights."""
    if expected.command != actual.command:
        yield f"the command is {actual.command}, not {expected.command}"
    settings = paired(expected.settings, actual.settings)
    if others := [name for name, one, other in settings if one != other]:
        yield f"other settings ({', '.join(others)})"
    for name, digest in expected.inputs.items():  # what only one of them reads follows from the settings
        if actual.inputs.get(name, digest) != digest:
            yield f"other {name}"
