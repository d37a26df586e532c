"""A job's files on both sides: pictures by pixels, records by weights, texts by words, others by bytes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path, PurePosixPath

from attnviz import store
from attnviz.bounded import resolve_links
from attnviz.display import format_count
from attnviz.errors import InvalidRecord, InvalidSource, TooLarge
from attnviz.models.sizes import BASE, GIB, check_room
from attnviz.records.differences import FILES, OTHER_BYTES, Difference, Tolerances, name_side, pair_by_name
from attnviz.store.manifest import Entry, File
from attnviz.views.record_changes import compare_maps

TEXTS = frozenset({".csv", ".json", ".md", ".tex"})  # in which numbers are written out
# A number with a fraction or an exponent, but no part of a word, an address or a version such as 2.13.0.
WRITTEN = re.compile(r"((?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\w|\.\d))", re.ASCII)
# What comparing takes, measured, for each byte of both files; and for each pixel that either picture has.
PER_BYTE = {".safetensors": 2, **dict.fromkeys(TEXTS, 16)}
PER_PIXEL = 25


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
    from attnviz.renderers.figure.compare import MAX_PIXELS, compare  # only now: what draws takes a while to import

    room = int((tolerances.max_memory * GIB - BASE) / PER_PIXEL)
    try:
        found = compare(before, after, min(room, MAX_PIXELS))
    except TooLarge as error:
        raise InvalidSource(error.problem, hint=error.hint) from error
    if len(set(found.sizes)) == 2:
        one, other = ("{} × {} pixels".format(*size) for size in found.sizes)
        yield replace(place, before=one, after=other)
    elif not found.rms <= tolerances.pixels:
        said = f"{format_count(found.n_pixels, 'pixels')}, by {found.rms:.3g} of 255 (root mean square)"
        yield replace(place, said=said)


def _compare_records(place: Difference, before: bytes, after: bytes, tolerances: Tolerances) -> Iterator[Difference]:
    """By tokens, heads and weights: of how they were made the manifest says more."""
    check_room(f"{place.file} on both sides", BASE + 2 * (len(before) + len(after)), tolerances.max_memory)
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
