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
KEYS = "text", "measure", "layer", "head", "of"
TEXTS_AT_ONCE = 256  # whose numbers are joined
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
    found = list(join_facts(*map(state_words, configs), within=Tolerances()))
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
    found = join_facts(state(before), state(after), within=Tolerances(), job=after.name)
    return [each for each in found if each.what not in only]


def compare_numbers(before: Entry, after: Entry, tolerances: Tolerances, counts: Counter[str]) -> Iterator[Difference]:
    """Every text and number that differs or that only one has. Some texts at a time: a batch may have many."""
    shared: list[str] = []
    for text, one, other in pair_by_name(before.numbers, after.numbers):
        if one is None or other is None:
            yield Difference(name_side(one is not None), "text", after.name, text=text)
        elif (one, before.layers, before.heads) == (other, after.layers, after.heads):
            counts[NUMBERS] += sum(len(row) for values in one.values() for row in values)
        else:
            shared.append(text)
    for start in range(0, len(shared), TEXTS_AT_ONCE):
        sides = [_list_numbers(entry, shared[start : start + TEXTS_AT_ONCE]) for entry in (before, after)]
        found = list(join_facts(*sides, within=tolerances, job=after.name))
        counts[NUMBERS] += len(sides[0]) - sum(each.kind == "only before" for each in found)
        yield from found


def _list_numbers(entry: Entry, texts: Sequence[str]) -> Numbers:
    """State the numbers of some texts under the names of what they are of, instead of their places in the manifest."""
    models = entry.settings.get("models")
    known = models if entry.command == "compare" and isinstance(models, tuple) else ()
    rows: list[tuple[object, ...]] = []
    for text in texts:
        layers, heads = (named.get(text, ()) for named in (entry.layers, entry.heads))
        for measure, values in entry.numbers[text].items():
            for layer, row in zip(_name_places(layers, len(values)), values, strict=True):
                for place, head in enumerate(_name_places(heads, len(row))):
                    number, of = head if isinstance(head, int) else None, None
                    if entry.command != "heatmap":
                        what = "model" if entry.command == "compare" else "label"
                        of = str(known[place]) if place < len(known) else f"{what} {place}"
                    elif measure in LAYER_MEASURES and len(row) == 1:
                        number = None
                    elif isinstance(head, str):
                        of = f"layer {layer}, head {head}"
                    rows.append((text, measure, layer, number, of, float(row[place])))
    columns = map(list, zip(*rows, strict=True)) if rows else [[] for _ in (*KEYS, "value")]
    return Numbers.from_columns(dict(zip((*KEYS, "value"), columns, strict=True)), KEYS)


def _name_places(names: Sequence[int | str], n_places: int) -> Sequence[int | str]:
    """The names of layers or heads, where a manifest, which may be anybody's, has a fitting one for each place."""
    fits = len({*names}) == n_places and all(isinstance(name, str) or 0 <= name < MAX_NAME for name in names)
    return names if fits else range(n_places)
