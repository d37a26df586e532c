"""What differs between two batches: what they were made from, their jobs, the numbers of each job, its files.

Pictures are compared by pixels, records by weights, texts by words, others by bytes.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import groupby, zip_longest
from operator import attrgetter
from pathlib import Path, PurePosixPath

from attnviz import store
from attnviz.bounded import GIB, check_room, read_bytes, resolve_links
from attnviz.display import format_count
from attnviz.errors import InvalidRecord, InvalidSource
from attnviz.models.sizes import BASE
from attnviz.records import differences
from attnviz.records.differences import Diff, Difference, Fact, Facts, Tolerances, find_differences, pair, state_words
from attnviz.store.manifest import Entry, File, Manifest, TextNumbers
from attnviz.views.record_changes import compare_maps

DEFAULTS = "fingerprint (of the defaults and the code)"
TEXTS = frozenset({".csv", ".json", ".md", ".tex"})  # in which numbers are written out
# A number with a fraction or an exponent, but no part of a word, an address or a version such as 2.13.0.
WRITTEN = re.compile(r"((?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\w|\.\d))", re.ASCII)
# What comparing takes, measured, for each byte of both files; and for each pixel that either picture has.
PER_BYTE = {".safetensors": 2, **dict.fromkeys(TEXTS, 16)}
PER_PIXEL = 25


def compare_batches(folders: Sequence[Path], sides: Sequence[Manifest], tolerances: Tolerances) -> Diff:
    """Compare configs, then the jobs that only one side has, then those of both, in the order of the first batch.

    Raises TooLarge for files that are.
    """
    stated = []
    for of in sides:
        configs = state_words({f"config {name}": digest for name, digest in of.configs.items()})
        stated.append(configs | {Fact("job", entry.name): "" for entry in of.jobs})
    found = find_differences(*stated, within=tolerances)
    entries = [{entry.name: entry for entry in of.jobs} for of in sides]
    versions = differences.find_version_changes(*(of.versions for of in sides))
    counts: Counter[str] = Counter()
    both = [(one, other) for _, one, other in pair(*entries) if one and other]
    for one, other in both:
        found += compare_origins(one, other, versions)
        if not (one.error or other.error):
            found += compare_numbers(one, other, tolerances, counts)
            found += compare_files(folders, (one, other), tolerances, counts)
    changes = sorted((each for each in found if each.what == differences.NUMBER), key=lambda each: -abs(each.change))
    tables = (table for of in sides for job in of.jobs for table in job.numbers)
    measures = tuple(dict.fromkeys(name for table in tables for name in table.values))
    failed_alike = tuple(one.name for one, other in both if one.error and one.error == other.error)
    return Diff(found, changes, measures, versions, tuple(entries[0] | entries[1]), counts, failed_alike)


def compare_origins(before: Entry, after: Entry, versions: Sequence[object]) -> list[Difference]:
    """Compare what a job was made from: its command, settings, texts and weights; and whether it failed.

    Where all of that and the versions are the same, the fingerprint says whether defaults or the code are others.
    """
    shared = before.inputs.keys() & after.inputs.keys()  # what only one of them reads follows from the settings
    sides = []
    for entry in (before, after):
        # Jobs that failed have no seed 0 among their settings, and others do.
        settings = {f"setting {name}": value for name, value in ({"seed": 0} | entry.settings).items()}
        inputs = {name: digest for name, digest in entry.inputs.items() if name in shared}
        sides.append(state_words({"command": entry.command, "error": entry.error} | settings | inputs, entry.name))
    found = find_differences(*sides, within=Tolerances())
    if found or versions or before.error or after.error:
        return found
    made_from = (state_words({DEFAULTS: entry.fingerprint}, entry.name) for entry in (before, after))
    return find_differences(*made_from, within=Tolerances())


def compare_numbers(before: Entry, after: Entry, tolerances: Tolerances, counts: Counter[str]) -> Iterator[Difference]:
    """Yield the texts and numbers of a job that differ or that only one side has.

    One text at a time: a batch may have many.
    """
    by_text = [{text: [*of] for text, of in groupby(job.numbers, attrgetter("text"))} for job in (before, after)]
    texts: list[Facts] = [{Fact("text", after.name, text=text): "" for text in of} for of in by_text]
    yield from find_differences(*texts, within=tolerances)
    for one, other in ((one, other) for _, one, other in pair(*by_text) if one and other):
        sides = [state_numbers(after.name, of) for of in (one, other)]
        counts[differences.NUMBERS] += len(sides[0].keys() & sides[1].keys())
        yield from find_differences(*sides, within=tolerances)


def state_numbers(job: str, tables: Iterable[TextNumbers]) -> Facts:
    """State the numbers of a text under what each of them is of."""
    facts: Facts = {}
    for table in tables:
        places = [*zip_longest(table.layer, table.head, table.of, fillvalue=None)]
        for measure, values in table.values.items():
            for (layer, head, of), value in zip(places, values, strict=True):
                place = (None, f"layer {layer}, head {head}") if isinstance(head, str) else (head, of or "")
                facts[Fact(differences.NUMBER, job, "", table.text, measure, layer, *place)] = value
    return facts


def compare_files(
    folders: Sequence[Path], entries: Sequence[Entry], tolerances: Tolerances, counts: Counter[str]
) -> Iterator[Difference]:
    """Yield the differences of every file of a job's two entries, and of what was put beside them in the two folders.

    Raises TooLarge before a pair is read.
    """
    for path, *files in pair(*map(list_files, folders, entries)):
        place = Difference("file", entries[1].name, path)
        check_sizes(path, [file.size for file in files if file], tolerances)
        try:
            one, other = (
                read_file(folder, file) if file else None for folder, file in zip(folders, files, strict=True)
            )
        except InvalidSource as error:
            yield replace(place, what="changed file", said=error.problem)
            continue
        if one is None or other is None:
            yield replace(place, after=None) if other is None else replace(place, before=None)
            continue
        counts[differences.FILES] += 1
        found = [*compare_contents(place, one, other, tolerances)] if one != other else []
        counts[differences.OTHER_BYTES] += one != other and not found
        yield from found


def list_files(folder: Path, entry: Entry) -> dict[str, File]:
    """List the files of the manifest; and with an empty sha256 what was put beside them, but for hidden files."""
    listed = {file.path: file for file in entry.files}
    found = (path for path in sorted((folder / entry.name).rglob("[!.]*")) if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in found}
    strays = {name: File(name, "", path.stat().st_size) for name, path in names.items() if name not in listed}
    return listed | strays


def check_sizes(name: str, sizes: Sequence[int], tolerances: Tolerances) -> None:
    """Raise TooLarge where comparing a file of these bytes on either side needs more memory than there may be."""
    needed = BASE + PER_BYTE.get(PurePosixPath(name).suffix.lower(), 1) * sum(sizes)
    check_room(f"{name} on both sides", needed, tolerances.max_memory)


def read_file(folder: Path, file: File) -> bytes:
    """Read a file of a batch. Raises InvalidSource where it is not as its manifest says, or leads out of the folder."""
    place = folder / file.path
    if not resolve_links(place).is_relative_to(resolve_links(folder)):
        raise InvalidSource(f"{place} is a link out of its folder")
    data = read_bytes(place, file.size, InvalidSource)
    if file.sha256 not in ("", hashlib.sha256(data).hexdigest()):
        raise InvalidSource(f"{place} has other bytes than when it was made")
    return data


def compare_contents(place: Difference, before: bytes, after: bytes, tolerances: Tolerances) -> Iterator[Difference]:
    """Yield what two files of different bytes say that differs; nothing where that is the same. Raises TooLarge."""
    compare = COMPARED.get(PurePosixPath(place.file).suffix.lower())
    if tolerances.exact or not compare:
        yield compare_bytes(place, before, after)
        return
    try:
        yield from compare(place, before, after, tolerances)
    except (InvalidRecord, InvalidSource) as error:
        yield replace(place, said=error.problem)


def compare_bytes(place: Difference, before: bytes, after: bytes) -> Difference:
    """Say how long both files are, and the first digits of their sha256."""
    one, other = (f"{len(data):,} bytes ({hashlib.sha256(data).hexdigest()[:8]}…)" for data in (before, after))
    return replace(place, before=one, after=other)


def _compare_pictures(place: Difference, before: bytes, after: bytes, tolerances: Tolerances) -> Iterator[Difference]:
    from attnviz.renderers.figure.image import MAX_PIXELS, compare  # only now: what draws takes a while to import

    room = int((tolerances.max_memory * GIB - BASE) / PER_PIXEL)
    found = compare(before, after, min(room, MAX_PIXELS))
    if len(set(found.sizes)) == 2:
        one, other = ("{} × {} pixels".format(*size) for size in found.sizes)
        yield replace(place, before=one, after=other)
    elif not found.rms <= tolerances.pixels:
        said = f"{format_count(found.n_pixels, 'pixels')}, by {found.rms:.3g} of 255 (root mean square)"
        yield replace(place, before=0.0, after=found.rms, said=said)


def _compare_records(place: Difference, before: bytes, after: bytes, tolerances: Tolerances) -> Iterator[Difference]:
    """Yield the differences of two records by tokens, heads and weights; how they were made is in the manifest."""
    one, other = (store.read_record(data, place.file) for data in (before, after))
    for each in compare_maps(one, other, tolerances):
        yield replace(each, job=place.job, file=place.file)


def _compare_texts(place: Difference, before: bytes, after: bytes, tolerances: Tolerances) -> Iterator[Difference]:
    if not is_same_text(before, after, tolerances.numbers):
        yield compare_bytes(place, before, after)


COMPARED = {".png": _compare_pictures, ".safetensors": _compare_records, **dict.fromkeys(TEXTS, _compare_texts)}


def is_same_text(before: bytes, after: bytes, tolerance: float) -> bool:
    """Check that two text files have the same words and whole numbers, and every other number within `tolerance`.

    One that is rounded may also differ by one in its last place, because what is nearly the same may be rounded up or
    down; not so without a tolerance.
    """
    try:
        one, other = (WRITTEN.split(data.decode("utf-8")) for data in (before, after))
    except UnicodeDecodeError:
        return False
    if not tolerance or len(one) != len(other) or one[::2] != other[::2]:
        return before == after
    numbers = zip(one[1::2], other[1::2], strict=True)
    return all(left == right or _is_near(Decimal(left), Decimal(right), tolerance) for left, right in numbers)


def _is_near(one: Decimal, other: Decimal, tolerance: float) -> bool:
    place = max(int(number.as_tuple().exponent) for number in (one, other))
    return abs(one - other) <= Decimal(repr(tolerance)) + Decimal(1).scaleb(place)
