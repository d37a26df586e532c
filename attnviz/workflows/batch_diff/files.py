"""A job's files against its baseline's: pictures by pixels, records by weights, texts by words, others by bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import product
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

import numpy as np

from attnviz import store
from attnviz.differences import IN_BASELINE, Difference, Tolerances
from attnviz.errors import InputError, InvalidRecord, InvalidSource
from attnviz.inputs import resolved
from attnviz.manifest import Entry, File
from attnviz.measures.changes import check_tokens
from attnviz.models.sizes import BASE, GIB, check_room
from attnviz.records import AttentionMaps
from attnviz.records.walk import stretches
from attnviz.views.tokens import token

TEXTS = frozenset({".csv", ".json", ".md", ".tex"})  # in which numbers are written out
# A number with a fraction or an exponent, but no part of a word, an address or a version such as 2.13.0.
WRITTEN = re.compile(r"((?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\w|\.\d))", re.ASCII)
# What comparing takes, measured, for each byte of both files; and for each pixel that either picture has.
PER_BYTE = {".safetensors": 2, **dict.fromkeys(TEXTS, 16)}
PER_PIXEL = 25
IS_LINK = "is a link out of its folder"

Value = TypeVar("Value")
PerHead = list[list[float]]
Compared = Difference | Literal["same number", "same bytes", "same content"]
ShowPictures = Callable[[str, str, Mapping[str, bytes]], None]  # job, path, PNGs: "expected", "actual", "difference"


def paired(
    expected: Mapping[str, Value], actual: Mapping[str, Value]
) -> Iterator[tuple[str, Value | None, Value | None]]:
    """What both have under each name, in order; None where one has nothing."""
    return ((name, expected.get(name), actual.get(name)) for name in dict.fromkeys([*expected, *actual]))


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


def compare_records(before: AttentionMaps, after: AttentionMaps, tolerance: float) -> list[Difference]:
    """The largest change of weight in each head where one is beyond `tolerance`, absolute; the largest of all first.

    Of records that are not of the same tokens, layers, heads and attendable keys, one difference that says so.
    """
    unlike = _unlike(before, after)
    if unlike is not None:
        return [unlike]
    found: list[Difference] = []
    for layer, head in np.ndindex(before.n_layers, before.n_heads):
        apart, query, key = _most_moved(before, after, layer, head)
        if apart > tolerance:
            row = slice(query, query + 1)
            expected, actual = (float(maps.rows(layer, head, row)[0, key]) for maps in (before, after))
            said = f"query {token(after.queries, query)}, key {token(after.keys, key)}"
            place = before.layer_numbers[layer], after.head_numbers[head]
            found.append(Difference("record", "", "", "", "weight", *place, expected, actual, said))
    return sorted(found, key=lambda each: -abs(each.change))


def _most_moved(before: AttentionMaps, after: AttentionMaps, layer: int, head: int) -> tuple[float, int, int]:
    """The largest change of a weight, of which query and to which key; of equal ones the first."""
    places = np.arange(len(before.queries))
    found = []
    for queries in stretches(places, len(before.keys)):
        apart = np.abs(after.rows(layer, head, queries) - before.rows(layer, head, queries))
        row, key = np.unravel_index(int(apart.argmax()), apart.shape)
        found.append((float(apart[row, key]), int(places[queries][row]), int(key)))
    return max(found, key=itemgetter(0))


def _unlike(before: AttentionMaps, after: AttentionMaps) -> Difference | None:
    try:
        check_tokens(before, after)
    except InvalidRecord as error:
        return Difference("record", "", said=error.problem)
    for one, other in zip(_heads_of(before), _heads_of(after), strict=True):
        if one != other:
            return Difference("record", "", expected=one, actual=other)
    several = stretches(np.arange(len(before.queries)), len(before.keys))
    places = product(range(before.n_layers), several)
    if not all(np.array_equal(before.allowed(*place), after.allowed(*place)) for place in places):
        return Difference("record", "", said="other keys may be attended to")
    return None


def _heads_of(maps: AttentionMaps) -> tuple[str, ...]:
    """How many layers and heads there are, and which."""
    names = (("layers", maps.layer_numbers), ("heads", maps.head_numbers))
    listed = (f"{name} {', '.join(map(str, numbers))}" for name, numbers in names)
    return heads_in_words([[0.0] * maps.n_heads] * maps.n_layers), *listed


def heads_in_words(values: PerHead) -> str:
    """ "2 layers of 8 heads"."""
    widths = sorted({len(row) for row in values})
    if not widths:
        return "no layers"
    layers = "1 layer" if len(values) == 1 else f"{len(values)} layers"
    return f"{layers} of {' or '.join(map(str, widths))} head{'' if widths == [1] else 's'}"


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
