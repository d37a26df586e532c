"""What differs between two batches: what they were made from, their jobs, the numbers of each job, its files.

Pictures are compared by pixels, records by weights, texts by words, others by bytes.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain, groupby, zip_longest
from operator import attrgetter
from pathlib import Path, PurePosixPath

from attnviz import store
from attnviz.bounded import GIB, check_room, resolve_links
from attnviz.display import format_count
from attnviz.errors import InvalidRecord, InvalidSource
from attnviz.models.sizes import BASE
from attnviz.records.differences import (
    FILES,
    NUMBER,
    NUMBERS,
    OTHER_BYTES,
    Diff,
    Difference,
    Tolerances,
    find_version_changes,
    join_facts,
    name_side,
    pair_by_name,
    state_words,
)
from attnviz.store.manifest import Entry, File, Manifest, TextNumbers
from attnviz.table.numbers import Numbers
from attnviz.views.record_changes import compare_maps

DEFAULTS = "fingerprint (of the defaults and the code)"
KEYS = "text", "measure", "layer", "head", "of"
TEXTS_AT_ONCE = 256  # whose numbers are joined
TEXTS = frozenset({".csv", ".json", ".md", ".tex"})  # in which numbers are written out
# A number with a fraction or an exponent, but no part of a word, an address or a version such as 2.13.0.
WRITTEN = re.compile(r"((?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\w|\.\d))", re.ASCII)
# What comparing takes, measured, for each byte of both files; and for each pixel that either picture has.
PER_BYTE = {".safetensors": 2, **dict.fromkeys(TEXTS, 16)}
PER_PIXEL = 25


def compare_batches(folders: Sequence[Path], sides: Sequence[Manifest], tolerances: Tolerances) -> Diff:
    """Compare configs, then job by job, in the order of the first batch; what only the second has comes last.

    Raises InvalidSource where a link leads out of a folder, TooLarge for files that are.
    """
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
        found += compare_files((folders[0], one), (folders[1], other), tolerances, counts)
    changes = sorted((each for each in found if each.what == NUMBER), key=lambda each: -abs(each.change))
    tables = (table for of in sides for job in of.jobs for table in job.numbers)
    measures = tuple(dict.fromkeys(name for table in tables for name in table.values))
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
    shared: list[tuple[list[TextNumbers], list[TextNumbers]]] = []
    by_text = [{text: [*of] for text, of in groupby(job.numbers, attrgetter("text"))} for job in (before, after)]
    for text, one, other in pair_by_name(*by_text):
        if one is None or other is None:
            yield Difference(name_side(one is not None), "text", after.name, text=text)
        elif one == other:
            counts[NUMBERS] += sum(len(values) for of in one for values in of.values.values())
        else:
            shared.append((one, other))
    for start in range(0, len(shared), TEXTS_AT_ONCE):
        several = zip(*shared[start : start + TEXTS_AT_ONCE], strict=True)
        sides = [_list_numbers(chain.from_iterable(of)) for of in several]
        found = list(join_facts(*sides, within=tolerances, job=after.name))
        counts[NUMBERS] += len(sides[0]) - sum(each.kind == "only before" for each in found)
        yield from found


def _list_numbers(tables: Iterable[TextNumbers]) -> Numbers:
    """State the numbers of some texts under what each of them is of."""
    rows: list[tuple[object, ...]] = []
    for table in tables:
        places = [*zip_longest(table.layer, table.head, table.of)]
        for measure, values in table.values.items():
            for (layer, head, of), value in zip(places, values, strict=True):
                place = (None, f"layer {layer}, head {head}") if isinstance(head, str) else (head, of)
                rows.append((table.text, measure, layer, *place, value))
    return Numbers.from_rows((dict(zip((*KEYS, "value"), row, strict=True)) for row in rows), KEYS)


def compare_files(
    before: tuple[Path, Entry], after: tuple[Path, Entry], tolerances: Tolerances, counts: Counter[str]
) -> Iterator[Difference]:
    """Every file of a job's two entries, each given with the folder of its batch, and what was put beside them.

    Raises TooLarge before a pair is read.
    """
    for path, one, other in pair_by_name(*(_list_files(*side) for side in (before, after))):
        sides = [side for side in ((before[0], one, "BEFORE"), (after[0], other, "AFTER")) if side[1]]
        place = Difference("differs", "file", after[1].name, path)
        sizes = sum(file.size for _, file, _ in sides if file)
        needed = BASE + PER_BYTE.get(PurePosixPath(path).suffix.lower(), 1) * sizes
        check_room(f"{path} on both sides", needed, tolerances.max_memory)
        contents = [_read(folder, file, side) for folder, file, side in sides if file]
        if wrong := [each for each in contents if isinstance(each, str)]:
            yield replace(place, kind="unreadable", said=wrong[0])
            continue
        if len(contents) == 1:
            yield replace(place, kind=name_side(one is not None))
            continue
        counts[FILES] += 1
        one_data, other_data = (data for data in contents if isinstance(data, bytes))
        if one_data != other_data:
            found = list(compare_contents(place, one_data, other_data, tolerances))
            counts[OTHER_BYTES] += not found
            yield from found


def _list_files(folder: Path, entry: Entry) -> dict[str, File]:
    """Those of the manifest; and with an empty sha256 what was put beside them, but for hidden files."""
    listed = {file.path: file for file in entry.files}
    found = (path for path in sorted((folder / entry.name).rglob("[!.]*")) if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in found}
    strays = {name: File(name, "", path.stat().st_size) for name, path in names.items() if name not in listed}
    return listed | strays


def _read(folder: Path, file: File, side: str) -> bytes | str:
    """The bytes of a file, or why they are not what the manifest says. A link out of the folder is not followed."""
    place = folder / file.path
    try:
        if not resolve_links(place).is_relative_to(resolve_links(folder)):
            return f"in {side} is a link out of its folder"
        if not place.is_file():
            return f"in {side} is gone"
        if place.stat().st_size != file.size:
            return f"in {side} has another size than when it was made"
        data = place.read_bytes()
    except OSError as error:
        return f"in {side} cannot be read ({error.strerror})"
    if file.sha256 in ("", hashlib.sha256(data).hexdigest()):
        return data
    return f"in {side} has other bytes than when it was made"


def compare_contents(place: Difference, before: bytes, after: bytes, tolerances: Tolerances) -> Iterator[Difference]:
    """What two files of other bytes say that differs; none where that is the same. Raises TooLarge."""
    ending = PurePosixPath(place.file).suffix.lower()
    compare = {".png": _compare_pictures, ".safetensors": _compare_records}.get(ending)
    if compare and not tolerances.exact:
        try:
            yield from compare(place, before, after, tolerances)
        except (InvalidRecord, InvalidSource) as error:
            yield replace(place, said=error.problem)
        return
    if tolerances.exact or ending not in TEXTS or not is_same_text(before, after, tolerances.numbers):
        one, other = (f"{len(data):,} bytes ({hashlib.sha256(data).hexdigest()[:8]}…)" for data in (before, after))
        yield replace(place, before=one, after=other)


def _compare_pictures(place: Difference, before: bytes, after: bytes, tolerances: Tolerances) -> Iterator[Difference]:
    from attnviz.renderers.figure.image import MAX_PIXELS, compare  # only now: what draws takes a while to import

    room = int((tolerances.max_memory * GIB - BASE) / PER_PIXEL)
    found = compare(before, after, min(room, MAX_PIXELS))
    if len(set(found.sizes)) == 2:
        one, other = ("{} × {} pixels".format(*size) for size in found.sizes)
        yield replace(place, before=one, after=other)
    elif not found.rms <= tolerances.pixels:
        said = f"{format_count(found.n_pixels, 'pixels')}, by {found.rms:.3g} of 255 (root mean square)"
        yield replace(place, said=said)


def _compare_records(place: Difference, before: bytes, after: bytes, tolerances: Tolerances) -> Iterator[Difference]:
    """By tokens, heads and weights: of how they were made the manifest says more."""
    one, other = (store.read_record(data, place.file) for data in (before, after))
    for each in compare_maps(one, other, tolerances):
        yield replace(each, job=place.job, file=place.file)


def is_same_text(before: bytes, after: bytes, tolerance: float) -> bool:
    """Whether two text files say the same: the same words and whole numbers, and every other number within `tolerance`.

    One that is rounded may also differ by one in its last place, because what is nearly the same may be rounded up or
    down; not so without a tolerance.
    """
    try:
        one, other = (WRITTEN.split(data.decode("utf-8")) for data in (before, after))
    except UnicodeDecodeError:
        return False
    if not tolerance or len(one) != len(other) or one[::2] != other[::2]:
        return before == after
    return all(_is_near(left, right, tolerance) for left, right in zip(one[1::2], other[1::2], strict=True))


def _is_near(left: str, right: str, tolerance: float) -> bool:
    if left == right:
        return True
    one, other = Decimal(left), Decimal(right)
    place = max(int(number.as_tuple().exponent) for number in (one, other))
    return abs(one - other) <= Decimal(repr(tolerance)) + Decimal(1).scaleb(place)
