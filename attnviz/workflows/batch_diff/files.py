"""A job's files against its baseline's: pictures by pixels, records by weights, texts by words, others by bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path, PurePosixPath

from attnviz import store
from attnviz.differences import IN_BASELINE, Difference, Tolerances
from attnviz.errors import InputError, InvalidRecord, InvalidSource
from attnviz.inputs import resolved
from attnviz.manifest import Entry, File
from attnviz.models.sizes import BASE, GIB, check_room
from attnviz.workflows.batch_diff.numbers import Compared, paired
from attnviz.workflows.batch_diff.records import compare_records

TEXTS = frozenset({".csv", ".json", ".md", ".tex"})  # in which numbers are written out
# A number with a fraction or an exponent, but no part of a word, an address or a version such as 2.13.0.
WRITTEN = re.compile(r"((?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\w|\.\d))", re.ASCII)
# What comparing takes, measured, for each byte of both files; and for each pixel that either picture has.
PER_BYTE = {".safetensors": 2, **dict.fromkeys(TEXTS, 16)}
PER_PIXEL = 25
IS_LINK = "is a link out of its folder"

ShowPictures = Callable[[str, str, Mapping[str, bytes]], None]  # job, path, PNGs: "expected", "actual", "difference"


def compare_files(
    before: tuple[Path, Entry], after: tuple[Path, Entry], tolerances: Tolerances, show: ShowPictures
) -> Iterator[Compared]:
    """Every file of a job's two entries, each given with the folder of its batch, in order.

    Raises InvalidSource where contents are compared and a link leads out of a folder, TooLarge before a pair is read.
    """
    if tolerances.files == "none":
        return
    expected, actual = ({file.path: file for file in entry.files} for _, entry in (before, after))
    for path, one, other in paired(expected, actual):
        sides = [(side[0], file) for side, file in ((before, one), (after, other)) if file]
        needed = BASE + PER_BYTE.get(PurePosixPath(path).suffix.lower(), 1) * sum(file.size for _, file in sides)
        check_room(f"{path} and its baseline", needed, tolerances.max_memory)
        found = Difference("file", after[1].name, path)
        contents: list[bytes] = []
        for folder, file in sides:
            data = _read(folder, file)
            if data == IS_LINK and tolerances.files == "content":
                raise InvalidSource(f"{folder / path} {IS_LINK}")
            if isinstance(data, str):
                yield replace(found, kind="changed file", said=IN_BASELINE + data if file is one else data)
                break
            contents.append(data)
        else:
            if one and other:
                found = replace(found, expected=one.sha256, actual=other.sha256)
                yield _compare(found, contents[0], contents[1], tolerances, show)
            else:
                yield replace(found, kind="missing file" if one else "new file")


def _read(folder: Path, file: File) -> bytes | str:
    """The bytes of a file, or why they are not what the manifest says."""
    place = folder / file.path
    try:
        if not resolved(place).is_relative_to(resolved(folder)):
            return IS_LINK
        if not place.is_file():
            return "is gone"
        if place.stat().st_size != file.size:
            return "has another size than when it was made"
        data = place.read_bytes()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return data if hashlib.sha256(data).hexdigest() == file.sha256 else "has other bytes than when it was made"


def _compare(other: Difference, expected: bytes, actual: bytes, tolerances: Tolerances, show: ShowPictures) -> Compared:
    """`other` is the difference where nothing is known but that the bytes are others."""
    if expected == actual:
        return "same bytes"
    ending = PurePosixPath(other.file).suffix.lower()
    if tolerances.files == "bytes":
        sides = ((expected, other.expected), (actual, other.actual))
        before, after = (f"{len(data):,} with sha256 {str(sha256)[:8]}…" for data, sha256 in sides)
        return replace(other, said=f"{before} became {after}")
    if ending == ".png":
        return _compare_pictures(other, expected, actual, tolerances, show)
    if ending == ".safetensors":
        return _compare_records(other, expected, actual, tolerances)
    return "same content" if ending in TEXTS and is_same_text(expected, actual, tolerances.numbers or 0.0) else other


def _compare_pictures(
    other: Difference, expected: bytes, actual: bytes, tolerances: Tolerances, show: ShowPictures
) -> Compared:
    from attnviz.renderers.figure.compare import MAX_PIXELS, compare  # only now: what draws takes a while to import

    room = int((tolerances.max_memory * GIB - BASE) / PER_PIXEL)
    try:
        found = compare(expected, actual, min(room, MAX_PIXELS))
    except InputError as error:
        return replace(other, said=error.problem)
    if found.same_size and found.rms <= tolerances.pixels:
        return "same content"
    show(other.job, other.file, {"expected": expected, "actual": actual, "difference": found.picture()})
    if found.same_size:
        return replace(other, kind="picture", expected=0.0, actual=found.rms, said=f"{found.n_pixels:,} pixels")
    before, after = ("{} × {} pixels".format(*size) for size in (found.expected_size, found.actual_size))
    return replace(other, kind="picture", expected=before, actual=after, said="another size")


def _compare_records(other: Difference, expected: bytes, actual: bytes, tolerances: Tolerances) -> Compared:
    """By tokens, heads and weights, whatever else a record says of how it was made. Raises TooLarge."""
    try:
        held = sum(len(data) + store.held_bytes(data) for data in (expected, actual))
        check_room(f"{other.file} and its baseline", BASE + held, tolerances.max_memory)
        one, two = (store.read_record(data, other.file) for data in (expected, actual))
    except InvalidRecord:
        return other
    found = compare_records(one, two, tolerances.numbers or 0.0)
    return replace(found[0], job=other.job, file=other.file) if found else "same content"


def is_same_text(expected: bytes, actual: bytes, tolerance: float) -> bool:
    """Whether two text files say the same: the same words and whole numbers, and every other number within `tolerance`.

    One that is rounded may also differ by one in its last place, because what is nearly the same may be rounded up or
    down.
    """
    try:
        one, other = (WRITTEN.split(data.decode("utf-8")) for data in (expected, actual))
    except UnicodeDecodeError:
        return False
    if len(one) != len(other) or one[::2] != other[::2]:
        return False
    return all(_is_near(left, right, tolerance) for left, right in zip(one[1::2], other[1::2], strict=True))


def _is_near(left: str, right: str, tolerance: float) -> bool:
    if left == right:
        return True
    one, other = Decimal(left), Decimal(right)
    place = max(int(number.as_tuple().exponent) for number in (one, other))
    return abs(one - other) <= Decimal(repr(tolerance)) + Decimal(1).scaleb(place)
