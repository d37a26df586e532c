"""What differs between two batches: what they were made from, their jobs, the numbers of each job, its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnviz.commands.batch.diff_files import compare_files
from attnviz.commands.batch.manifests import from_file
from attnviz.measures import LAYER_MEASURES
from attnviz.numbers.table import Numbers
from attnviz.records.differences import (
    NUMBER,
    NUMBERS,
    Diff,
    Difference,
    Tolerances,
    find_version_changes,
    join_facts,
    name_side,
    pair_by_name,
    state_words,
)
from attnviz.store.manifest import Entry, Manifest

DEFAULTS = "fingerprint (of the defaults and the code)"
MAX_NAME = 2**31  # of a layer or head that is called by its number


@dataclass(frozen=True)
class LoadedBatch:
    """A manifest and the folder that its files are in."""

    folder: Path
    manifest: Manifest


def load_batch(file: Path) -> LoadedBatch:
    """The batch of a manifest. Raises InvalidConfig for one that this version does not write."""
    return LoadedBatch(file.parent, from_file(file))


def compare_batches(before: LoadedBatch, after: LoadedBatch, tolerances: Tolerances) -> Diff:
    """Configs, then job by job, in the order of `before`; what only `after` has comes last.

    Raises InvalidSource where a link leads out of a folder, TooLarge for files that are.
    """
    sides = before.manifest, after.manifest
    configs = ({f"config {name}": digest for name, digest in of.configs.items()} for of in sides)
    found = [each for each in join_facts(*map(state_words, configs)) if not tolerances.allow(each)]
    versions = find_version_changes(*(of.versions for of in sides))
    entries = [{entry.name: entry for entry in of.jobs} for of in sides]
    counts: Counter[str] = Counter()
    failed_alike: list[str] = []
    for job, one, other in pair_by_name(*entries):
        if one is None or other is None:
            found.append(Difference(name_side(one is not None), "job", job))
            continue
        origins = compare_origins(one, other)
        if versions or one.error or other.error or len(origins) > 1:
            origins = [each for each in origins if each.what != DEFAULTS]  # it follows from the rest
        found += origins
        if one.error or other.error:
            failed_alike += [job] if one.error == other.error else []
            continue
        found += compare_numbers(one, other, tolerances, counts)
        found += compare_files((before.folder, one), (after.folder, other), tolerances, counts)
    changes = sorted((each for each in found if each.what == NUMBER), key=lambda each: -abs(each.change))
    texts = [numbers for of in sides for entry in of.jobs for numbers in entry.numbers.values()]
    measures = tuple(dict.fromkeys(name for numbers in texts for name in numbers))
    jobs = tuple(entries[0] | entries[1])
    return Diff(found, changes, measures, versions, jobs, counts, tuple(failed_alike))


def compare_origins(before: Entry, after: Entry) -> list[Difference]:
    """What a job was made from: its command, settings, texts and weights; and whether it failed."""

    def state(entry: Entry) -> Numbers:
        # Jobs that failed have no seed 0 among their settings, and others do.
        settings = {f"setting {name}": value for name, value in ({"seed": 0} | entry.settings).items()}
        rest = {"command": entry.command, "error": entry.error, DEFAULTS: entry.fingerprint}
        return state_words(rest | settings | entry.inputs)

    only = before.inputs.keys() ^ after.inputs.keys()  # what only one of them reads follows from the settings
    found = join_facts(state(before), state(after), job=after.name)
    return [each for each in found if each.what not in only and not Tolerances().allow(each)]


def compare_numbers(before: Entry, after: Entry, tolerances: Tolerances, counts: Counter[str]) -> Iterator[Difference]:
    """Every text and number that differs or that only one has. One text after the other: a batch may have many."""
    for text, one, other in pair_by_name(before.numbers, after.numbers):
        if one is None or other is None:
            yield Difference(name_side(one is not None), "text", after.name, text=text)
            continue
        if (one, before.layers, before.heads) == (other, after.layers, after.heads):
            counts[NUMBERS] += sum(len(row) for values in one.values() for row in values)
            continue
        keys = ("measure", "layer", "head", "of")
        sides = (Numbers.from_rows(_list_numbers(entry, text), keys) for entry in (before, after))
        for each in join_facts(*sides, job=after.name, text=text):
            counts[NUMBERS] += each.kind == "differs"
            if not tolerances.allow(each):
                yield each


def _list_numbers(entry: Entry, text: str) -> Iterator[dict[str, object]]:
    """State the numbers of one text under the names of what they are of, instead of their places in the manifest."""
    models = entry.settings.get("models")
    known = models if entry.command == "compare" and isinstance(models, tuple) else ()
    for measure, values in entry.numbers[text].items():
        for layer, row in zip(_name_places(entry.layers.get(text, ()), len(values)), values, strict=True):
            for place, head in enumerate(_name_places(entry.heads.get(text, ()), len(row))):
                where = {"layer": layer, "head": head}
                if entry.command != "heatmap":
                    what = "model" if entry.command == "compare" else "label"
                    where["of"] = str(known[place]) if place < len(known) else f"{what} {place}"
                elif measure in LAYER_MEASURES and len(row) == 1:
                    where = {"layer": layer}
                elif isinstance(head, str):
                    where = {"layer": layer, "of": f"layer {layer}, head {head}"}
                yield {"measure": measure, "value": float(row[place]), **where}


def _name_places(names: Sequence[int | str], n_places: int) -> Sequence[int | str]:
    """The names of layers or heads, where a manifest, which may be anybody's, has a fitting one for each place."""
    fits = len({*names}) == n_places and all(isinstance(name, str) or 0 <= name < MAX_NAME for name in names)
    return names if fits else range(n_places)
