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
from attnviz.manifest import NAME, Entry, Manifest
from attnviz.measures import OF_LAYERS
from attnviz.workflows.batch_diff.files import Compared, PerHead, ShowPictures, compare_files, heads_in_words, paired


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
    """Raises InvalidConfig for what is no manifest that this version writes."""
    from attnviz.configs.manifests import from_file

    return LoadedBatch(file.parent, from_file(file))


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


def compare_numbers(expected: Entry, actual: Entry, tolerance: float | None) -> Iterator[Compared]:
    """Every number that both have and how it compares, and every text, measure and head that only one has.

    Without a tolerance no number is the same, whether it differs or not.
    """
    yield from _other_places(expected, actual)
    for text, one, other in paired(expected.numbers, actual.numbers):
        if one is None or other is None:
            yield Difference("new numbers" if one is None else "missing numbers", actual.name, text=text)
            continue
        for measure, before, after in paired(one, other):
            place = Difference("number", actual.name, "", text, measure)
            for each in _compare_measure(place, before, after, tolerance):
                yield _placed(each, actual) if isinstance(each, Difference) else each


def _compare_measure(
    number: Difference, before: PerHead | None, after: PerHead | None, tolerance: float | None
) -> Iterator[Compared]:
    if before is None or after is None:
        yield replace(number, kind="new numbers" if before is None else "missing numbers")
        return
    shapes = heads_in_words(before), heads_in_words(after)
    if shapes[0] != shapes[1]:
        yield replace(number, kind="heads", expected=shapes[0], actual=shapes[1])
        if tolerance is not None:
            return  # heads of one number need not be of one kind
    for layer, rows in enumerate(zip(before, after, strict=False)):
        for head, (left, right) in enumerate(zip(*rows, strict=False)):
            if tolerance is None or not abs(right - left) <= tolerance:  # written so that NaN is beyond too
                yield replace(number, layer=layer, head=head, expected=float(left), actual=float(right))
            else:
                yield "same number"


def _placed(found: Difference, entry: Entry) -> Difference:
    """A number under the names of what it is of, instead of its place in the manifest."""
    if found.layer is None or found.head is None:
        return found
    if entry.command == "heatmap":
        layers, heads = (dict(enumerate(of_text.get(found.text, ()))) for of_text in (entry.layers, entry.heads))
        head = None if found.measure in OF_LAYERS else heads.get(found.head, found.head)
        return replace(found, layer=layers.get(found.layer, found.layer), head=head)
    models = entry.settings.get("models") if entry.command == "compare" else ()
    names = dict(enumerate(models if isinstance(models, tuple) else ()))
    what = "model" if entry.command == "compare" else "label"
    return replace(found, layer=None, head=None, of=str(names.get(found.head, f"{what} {found.head}")))


def _other_places(expected: Entry, actual: Entry) -> Iterator[Difference]:
    """Texts of which other layers or heads were measured. Where one says nothing of it, it is older or has all."""
    for text in filter(actual.numbers.__contains__, expected.numbers):
        for name in ("layers", "heads"):
            before, after = (getattr(entry, name).get(text) for entry in (expected, actual))
            if before and after and before != after:
                said = (f"{name} {', '.join(map(str, numbers))}" for numbers in (before, after))
                yield Difference("heads", actual.name, "", text, "", None, None, *said)


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
