"""What differs between two batches: what they were made from, their jobs, the numbers of each job, its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from attnviz.commands.batch.diff_files import Compared, compare_files
from attnviz.commands.batch.manifests import from_file
from attnviz.measures import LAYER_MEASURES
from attnviz.records.differences import (
    Diff,
    Difference,
    Tolerances,
    compare_values,
    find_version_changes,
    name_side,
    pair_by_name,
)
from attnviz.store.manifest import Entry, Manifest

PerHead = list[list[float]]


@dataclass(frozen=True)
class LoadedBatch:
    """A manifest and the folder that its files are in."""

    folder: Path
    manifest: Manifest

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """What the manifest holds of each job, by name."""
        return {entry.name: entry for entry in self.manifest.jobs}


def load_batch(file: Path) -> LoadedBatch:
    """The batch of a manifest. Raises InvalidConfig for one that this version does not write."""
    return LoadedBatch(file.parent, from_file(file))


def compare_batches(before: LoadedBatch, after: LoadedBatch, tolerances: Tolerances) -> Diff:
    """Configs, then job by job, in the order of `after`; what only `before` has comes last.

    Raises InvalidSource where a link leads out of a folder, TooLarge for files that are.
    """
    configs = pair_by_name(before.manifest.configs, after.manifest.configs)
    found: list[Compared | str] = [_config(*each) for each in configs if each[1] != each[2]]
    versions = find_version_changes(before.manifest.versions, after.manifest.versions)
    jobs = tuple(dict.fromkeys([*after.entries, *before.entries]))
    common = [(before.entries[job], after.entries[job]) for job in jobs if job in before.entries.keys() & after.entries]
    for job in jobs:
        one, other = before.entries.get(job), after.entries.get(job)
        if one is None or other is None:
            found.append(Difference(name_side(one is not None), "job", job))
            continue
        made = list(compare_origins(one, other))
        if not (made or versions or one.fingerprint == other.fingerprint or one.error or other.error):
            made.append(Difference("differs", "fingerprint", job, said="other defaults, or another state of the code"))
        found += made
        if not (one.error or other.error):
            found += compare_numbers(one, other, tolerances)
            found += compare_files((before.folder, one), (after.folder, other), tolerances)
    counts = Counter("differs" if isinstance(each, Difference) else each for each in found)
    differences = tuple(each for each in found if isinstance(each, Difference))
    return Diff(
        differences=differences,
        jobs=jobs,
        n_numbers=counts["same number"] + sum(each.what == "number" for each in differences),
        n_files=counts["file"],
        n_other_bytes=counts["same content"],
        failed_alike=tuple(one.name for one, other in common if one.error and one.error == other.error),
        versions=versions,
    )


def _config(name: str, before: str | None, after: str | None) -> Difference:
    what = f"config {name}"
    if before is None or after is None:
        return Difference(name_side(before is not None), what)
    return Difference("differs", what, before=f"sha256 {before[:8]}…", after=f"sha256 {after[:8]}…")


def compare_origins(before: Entry, after: Entry) -> Iterator[Difference]:
    """What a job was made from: its command, settings, texts and weights; and whether it failed."""
    place = Difference("differs", "", after.name)
    entries = (before, after)
    yield from compare_values(place, [{"command": entry.command, "error": entry.error} for entry in entries])
    # Jobs that failed have no seed 0 among their settings, and others do.
    yield from compare_values(place, [{"seed": 0} | entry.settings for entry in entries], "setting ")
    for name, digest in before.inputs.items():  # what only one of them reads follows from the settings
        other = after.inputs.get(name, digest)
        if digest != other:
            yield replace(place, what=name, before=f"sha256 {digest[:8]}…", after=f"sha256 {other[:8]}…")


def compare_numbers(before: Entry, after: Entry, tolerances: Tolerances) -> Iterator[Compared]:
    """Every number that both have and how it compares, and every text, measure and head that only one has."""
    for text, one, other in pair_by_name(before.numbers, after.numbers):
        place = Difference("differs", "number", after.name, text=text)
        if one is None or other is None:
            yield replace(place, kind=name_side(one is not None), what="text")
            continue
        places = [(of.layers.get(text, []), of.heads.get(text, [])) for of in (before, after)]
        if any(
            left != right for left, right in zip(*places, strict=True) if left and right
        ):  # [] are all, or not known
            left, right = (f"layers {layers}, heads {heads}" for layers, heads in places)
            yield replace(place, what="heads", before=left, after=right)
            continue
        for measure, old, new in pair_by_name(one, other):
            of_measure = replace(place, measure=measure)
            if old is None or new is None:
                yield replace(of_measure, kind=name_side(old is not None), what="measure")
            else:
                yield from _compare_measure(of_measure, old, new, tolerances, after)


def _compare_measure(
    place: Difference, before: PerHead, after: PerHead, tolerances: Tolerances, entry: Entry
) -> Iterator[Compared]:
    if [*map(len, before)] != [*map(len, after)]:  # then heads of one number need not be of one kind
        yield replace(
            place,
            what="heads",
            measure="",
            of=place.measure,
            before=heads_in_words(before),
            after=heads_in_words(after),
        )
        return
    for layer, rows in enumerate(zip(before, after, strict=True)):
        for head, (left, right) in enumerate(zip(*rows, strict=True)):
            if tolerances.allow(place.measure, right - left):
                yield "same number"
            else:
                number = replace(place, layer=layer, head=head, before=float(left), after=float(right))
                yield _name_place(number, entry)


def _name_place(found: Difference, entry: Entry) -> Difference:
    """A number under the names of what it is of, instead of its place in the manifest."""
    assert found.layer is not None
    assert found.head is not None
    if entry.command == "heatmap":
        layers = dict(enumerate(entry.layers.get(found.text, ())))
        heads: dict[int | str, int | str] = dict(enumerate(entry.heads.get(found.text, ())))
        head = None if found.measure in LAYER_MEASURES else heads.get(found.head, found.head)
        return replace(found, layer=layers.get(found.layer, found.layer), head=head)
    models = entry.settings.get("models") if entry.command == "compare" else ()
    names: dict[int | str, object] = dict(enumerate(models if isinstance(models, tuple) else ()))
    what = "model" if entry.command == "compare" else "label"
    return replace(found, layer=None, head=None, of=str(names.get(found.head, f"{what} {found.head}")))


def heads_in_words(values: PerHead) -> str:
    """ "2 layers of 8 heads"."""
    widths = sorted({len(row) for row in values})
    if not widths:
        return "no layers"
    layers = "1 layer" if len(values) == 1 else f"{len(values)} layers"
    return f"{layers} of {' or '.join(map(str, widths))} head{'' if widths == [1] else 's'}"
