"""A job's files against its baseline's: pictures by pixels, records by weights, texts by words, others by bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal

from attnviz import store
from attnviz.differences import IN_BASELINE, IS_GONE, IS_LINK, Difference, Tolerances
from attnviz.errors import InputError, InvalidRecord, InvalidSource
from attnviz.inputs import resolved
from attnviz.manifest import Entry, File
from attnviz.models.sizes import BASE, GIB, check_room
from attnviz.workflows.batch_diff.numbers import is_same_text, paired
from attnviz.workflows.batch_diff.records import compare_records

TEXTS = frozenset({".csv", ".json", ".md", ".tex"})  # in which numbers are written out
# What comparing takes, measured, for each byte of both files; and for each pixel that either picture has.
PER_BYTE = {".safetensors": 2, **dict.fromkeys(TEXTS, 16)}
PER_PIXEL = 25

Compared = Difference | Literal["same bytes", "same content"]
ShowPictures = Callable[[str, str, Mapping[str, bytes]], None]  # job, path, PNGs: "expected", "actual", "difference"


def compare_files(
    before: tuple[Path, Entry], after: tuple[Path, Entry], tolerances: Tolerances, show: ShowPictures
) -> Iterator[Compared]:
    """Every file of a job's two entries, each given with the folder of its batch, in order.

    Raises InvalidSource where contents are compared and a link leads out of a folder, TooLarge before a pair is read.
    """
    if tolerances.files == "none":
        return
    job = after[1].name
    expected, actual = ({file.path: file for file in entry.files} for _, entry in (before, after))
    for path, one, other in paired(expected, actual):
        sides = [(*side, file) for side, file in (((before[0], IN_BASELINE), one), ((after[0], ""), other)) if file]
        needed = BASE + PER_BYTE.get(PurePosixPath(path).suffix.lower(), 1) * sum(file.size for *_, file in sides)
        check_room(f"{path} and its baseline", needed, tolerances.max_memory)
        found: list[bytes] = []
        for folder, where, file in sides:
            data = _read(folder, file)
            if data == IS_LINK and tolerances.files == "content":
                raise InvalidSource(f"{folder / path} {IS_LINK}")
            if isinstance(data, str):
                yield Difference("changed file", job, path, said=f"{where}{data}")
                break
            found.append(data)
        else:
            if one is None or other is None:
                yield Difference("new file" if one is None else "missing file", job, path)
            else:
                unlike = Difference("file", job, path, expected=one.sha256, actual=other.sha256)
                yield _compare(unlike, found[0], found[1], tolerances, show)


def _read(folder: Path, file: File) -> bytes | str:
    """The bytes of a file, or why they are not what the manifest says."""
    place = folder / file.path
    try:
        if not resolved(place).is_relative_to(resolved(folder)):
            return IS_LINK
        if not place.is_file():
            return IS_GONE
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
        before, after = (f"{len(data):,} bytes with sha256 {str(sha256)[:8]}…" for data, sha256 in sides)
        return replace(other, expected=before, actual=after)
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
