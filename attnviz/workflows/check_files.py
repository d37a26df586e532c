"""A job's files against its baseline's: pictures by pixels, records by weights, texts by words, others by bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import numpy as np

from attnviz import store
from attnviz.differences import Unlike
from attnviz.errors import BadRecord, BadSource, InputError
from attnviz.inputs import resolved
from attnviz.manifest import Entry, File
from attnviz.measures.changes import check_tokens
from attnviz.workflows.check_numbers import alike_texts, shape

TEXTS = frozenset({".csv", ".json", ".md", ".tex"})  # in which numbers are written out


@dataclass(frozen=True)
class Looked:
    """One file of either batch. `pictures` are what shows a difference: "expected", "actual", "difference"."""

    path: str
    unlike: Unlike | None = None
    other_bytes: bool = False
    pictures: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Tolerances:
    """By how much numbers and weights may differ, absolute; and pictures, root mean square of channels 0 to 255."""

    numbers: float
    pixels: float


def look(expected: tuple[Path, Entry], actual: tuple[Path, Entry], tolerances: Tolerances) -> Iterator[Looked]:
    """Every file of a job's two entries, each given with the folder of its batch, in order.

    Raises BadSource where a link leads out of a folder.
    """
    job = actual[1].name
    before, after = ({file.path: file for file in entry.files} for _, entry in (expected, actual))
    for path in dict.fromkeys([*before, *after]):
        found: list[bytes] = []
        for (folder, _), files, where in ((expected, before, "in the baseline"), (actual, after, "")):
            if path in files:
                data = _read(folder, files[path])
                if isinstance(data, str):
                    yield Looked(path, Unlike("changed file", job, path, said=f"{where} {data}".lstrip()))
                    break
                found.append(data)
        else:
            if path not in after:
                yield Looked(path, Unlike("missing file", job, path))
            elif path not in before:
                yield Looked(path, Unlike("new file", job, path))
            else:
                yield _compare(job, path, found[0], found[1], tolerances)


def _read(folder: Path, file: File) -> bytes | str:
    """The bytes of a file, or why they are not what the manifest says."""
    place = folder / file.path
    try:
        if not resolved(place).is_relative_to(resolved(folder)):
            raise BadSource(f"{place} is a link out of its folder")
        if not place.is_file():
            return "is gone"
        if place.stat().st_size != file.size:
            return "has another size than when it was made"
        data = place.read_bytes()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return data if hashlib.sha256(data).hexdigest() == file.sha256 else "has other bytes than when it was made"


def _compare(job: str, path: str, expected: bytes, actual: bytes, tolerances: Tolerances) -> Looked:
    if expected == actual:
        return Looked(path)
    ending = PurePosixPath(path).suffix.lower()
    if ending == ".png":
        return _pictures(job, path, expected, actual, tolerances.pixels)
    if ending == ".safetensors":
        return _records(job, path, expected, actual, tolerances.numbers)
    if ending in TEXTS and alike_texts(expected, actual, tolerances.numbers):
        return Looked(path, other_bytes=True)
    return Looked(path, _other_bytes(job, path, expected, actual))


def _pictures(job: str, path: str, expected: bytes, actual: bytes, most: float) -> Looked:
    from attnviz.renderers.figure.compare import compare  # only now: what draws takes a while to import

    try:
        found = compare(expected, actual)
    except InputError as error:
        return Looked(path, replace(_other_bytes(job, path, expected, actual), said=error.problem))
    if found.same_size and found.rms <= most:
        return Looked(path, other_bytes=True)
    unlike = Unlike("picture", job, path, expected=0.0, actual=found.rms, said=f"{found.n_pixels:,} pixels")
    if not found.same_size:
        before, after = ("{} × {} pixels".format(*size) for size in (found.expected_size, found.actual_size))
        unlike = Unlike("picture", job, path, expected=before, actual=after, said="another size")
    return Looked(path, unlike, pictures={"expected": expected, "actual": actual, "difference": found.picture()})


def _records(job: str, path: str, expected: bytes, actual: bytes, tolerance: float) -> Looked:
    """By tokens, heads and weights, whatever else a record says of how it was made."""
    try:
        one, other = (store.read_record(data, path) for data in (expected, actual))
    except BadRecord:
        return Looked(path, _other_bytes(job, path, expected, actual))
    try:
        check_tokens(one, other)
    except BadRecord as error:
        return Looked(path, Unlike("record", job, path, said=error.problem))
    if one.weights.shape != other.weights.shape:
        before, after = (shape(maps.weights[:, :, 0, 0].tolist()) for maps in (one, other))
        return Looked(path, Unlike("record", job, path, expected=before, actual=after))
    if not np.array_equal(one.attendable, other.attendable):
        return Looked(path, Unlike("record", job, path, said="other keys may be attended to"))
    apart = np.abs(other.weights - one.weights)
    place = tuple(int(n) for n in np.unravel_index(int(apart.argmax()), apart.shape))
    if apart[place] <= tolerance:
        return Looked(path, other_bytes=True)
    layer, head, query, key = one.layer_numbers[place[0]], *place[1:]
    weights = (float(one.weights[place]), float(other.weights[place]))
    said = f"query {query}, key {key}"
    return Looked(path, Unlike("record", job, path, "", "weight", layer, head, *weights, said))


def _other_bytes(job: str, path: str, expected: bytes, actual: bytes) -> Unlike:
    before, after = (hashlib.sha256(data).hexdigest() for data in (expected, actual))
    return Unlike("file", job, path, expected=before, actual=after)
