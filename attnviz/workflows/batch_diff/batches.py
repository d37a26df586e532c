"""What differs between two batches: their jobs, the numbers of each job, its files. Writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from attnviz.differences import BatchDiff, Difference, Tolerances
from attnviz.errors import InvalidSource
from attnviz.inputs import is_file
from attnviz.manifest import NAME, Entry, Manifest, Numbers
from attnviz.measures import FORMER_NAMES
from attnviz.workflows.batch_diff.files import ShowPictures, compare_files
from attnviz.workflows.batch_diff.numbers import Compared, compare_numbers, paired


@dataclass(frozen=True)
class LoadedBatch:
    """A manifest and the folder that its files are in."""

    folder: Path
    manifest: Manifest

    @cached_property
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
    jobs = tuple(dict.fromkeys([*after.entries, *before.entries]))
    compared = [each for job in jobs for each in _compare_job(job, before, after, tolerances, show)]
    counts = Counter(each.kind if isinstance(each, Difference) else each for each in compared)
    common = [(job, before.entries[job], after.entries[job]) for job in after.entries if job in before.entries]
    causes = {job: tuple(_causes(one, other)) for job, one, other in common}
    configs = after.manifest.configs
    versions = paired(before.manifest.versions, after.manifest.versions)
    return BatchDiff(
        jobs=jobs,
        differences=tuple(each for each in compared if isinstance(each, Difference)),
        n_numbers=counts["number"] + counts["same number"],
        n_files=sum(counts[kind] for kind in ("picture", "record", "file", "same bytes", "same content")),
        n_other_bytes=counts["same content"],
        failed_alike=tuple(job for job, one, other in common if one.error and one.error == other.error),
        causes={job: why for job, why in causes.items() if why},
        versions=tuple((name, old or "none", new or "none") for name, old, new in versions if old != new),
        config=next(iter(configs)) if len(configs) == 1 else "",
    )


def _compare_job(
    job: str, before: LoadedBatch, after: LoadedBatch, tolerances: Tolerances, show: ShowPictures
) -> Iterator[Compared]:
    """That only one batch has it, that it failed in one of them or in another way; its numbers, its files."""
    expected, actual = (batch.entries.get(job) for batch in (before, after))
    if actual is None:
        yield Difference("missing job", job)
        return
    if expected is None:
        yield Difference("new job", job)
    error = expected.error if expected else ""
    if actual.error != error:
        yield Difference("failed job", job, expected=error, actual=actual.error)
    if expected and not (tolerances.skip_failed and (error or actual.error)):
        yield from compare_numbers(expected, actual, tolerances.numbers)
        yield from compare_files((before.folder, expected), (after.folder, actual), tolerances, show)


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
