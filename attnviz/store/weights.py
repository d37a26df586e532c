"""Arrays of attention that other programs have written: .npy, .npz, .safetensors, .csv. Never a pickle.

Headers come first: what an array takes is known before it is read. Knows not what axes mean, and of a .pt only that it
is one: torch reads it, see `models.recording.weights_file`.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from attnviz.bounded import check_file_size, describe_os_error, read_header
from attnviz.display import escape_for_display, format_count, list_first
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.store import shorten_path
from attnviz.store.matrix import measure_matrix, read_matrix

FileKind = Literal["record", "npy", "npz", "torch", "safetensors", "text"]
Names = tuple[str, ...]
READ = "Weights are read from .npy, .npz, .pt, .safetensors and .csv; numpy.save writes a .npy."
PICKLED = "Save numbers alone: numpy.save(path, array), or torch.save(tensor, path)."
TEXT_ENDINGS = (".csv", ".tsv", ".txt")
TORCH_ENDINGS = (".pt", ".pth", ".bin", ".ckpt")
MAX_NPY_HEADER = 2**14  # bytes; numpy itself takes no more than 10,000
MAX_DIRECTORY = 2**22  # bytes of a zip file's list of members: some 50,000
MAX_LISTED = 8  # arrays in an error
ROUNDED = 1e-2  # by which a row of half precision may miss 1
MAX_ROUNDING = 0.1  # by which one of few decimals may
MAX_FEW_DECIMALS = 3
SAFETENSORS_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?", "I64": "<i8", "I32": "<i4"}
SAFETENSORS_TYPES |= {"I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1"}
NO_NAMES = "texts not called tokens or keys"
NOT_READ = {  # by numpy's kinds of types
    "O": "Python objects, which only a pickle can hold, and a pickle can run code",
    "c": "complex numbers, which are not weights",
    "V": "fields, or numbers that numpy does not know, such as bfloat16",
    "M": "dates, which are not weights",
    "m": "times, which are not weights",
    "U": "texts, which are not weights",
    "S": "texts, which are not weights",
}
DAMAGED = (ValueError, OverflowError, MemoryError, TypeError, SyntaxError, RecursionError, EOFError, KeyError)
DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)  # the last: it is encrypted


@dataclass(frozen=True, eq=False)
class FileWeights:
    """What a file holds: an array, or one for each layer, of any axes, and names where it has some."""

    weights: Any
    queries: Names | None = None
    keys: Names | None = None  # where they are not the queries
    rounding: float = 0.0  # by which sums of rows may miss 1, since numbers are rounded
    guess: str = ""  # what is not certain of them, as a sentence
    name: str = ""  # of the file
    array: str = ""  # which of its arrays
    revision: str = "as given"
    unread: str = ""  # what is beside it, and why it is not read


@dataclass(frozen=True, eq=False)
class FileArray:
    """What a header says of one array; `problem` says why it cannot be drawn."""

    name: str
    shape: tuple[int, ...]
    item_size: int  # bytes
    read: Callable[[], FileWeights]
    problem: str = ""
    is_names: bool = False  # a list of texts

    @property
    def n_bytes(self) -> int:
        """Bytes of its numbers, or of these as float32 where they take more."""
        return math.prod(self.shape) * max(4, self.item_size)

    def __str__(self) -> str:
        return f"{escape_for_display(self.name, 60)} {list(self.shape)}"


def find_kind(path: Path) -> FileKind:
    """Find out what a file is by its first bytes, a text by its ending. Raises InvalidRecord for what is never read."""
    check_file_size(path, math.inf, InvalidRecord)
    name, ending = shorten_path(path), path.suffix.lower()
    with reading(path), path.open("rb") as file:
        start = file.read(16)
        if start[:6] == b"\x93NUMPY":
            return "npy"
        if start[:2] == b"PK":
            with open_zip(path) as archive:
                return "torch" if any(each.endswith("data.pkl") for each in archive.namelist()) else "npz"
    if start[8:9] == b"{":
        metadata = read_header(path, InvalidRecord).metadata
        return "record" if isinstance(metadata, dict) and "attnviz" in metadata else "safetensors"
    if ending == ".safetensors":
        return "record"  # a damaged one
    if ending in TEXT_ENDINGS:
        return "text"
    if start[:1] == b"\x80" or ending in TORCH_ENDINGS:
        raise InvalidRecord(f"{name} needs a pickle, which can run code and is never read", hint=PICKLED)
    raise InvalidRecord(f"{name} is neither a record nor a file of weights", hint=READ)


def list_arrays(path: Path, kind: FileKind) -> tuple[FileArray, ...]:
    """List the arrays of a file by their headers. Raises InvalidRecord where it is damaged."""
    with reading(path):
        match kind:
            case "npy":
                with path.open("rb") as file:
                    return (_parse_npy(file, path.stat().st_size, path, ""),)
            case "npz":
                return tuple(_list_npz(path))
            case "safetensors":
                return tuple(_list_safetensors(path))
            case _:
                return (FileArray("", measure_matrix(path), 4, partial(_read_text, path)),)


def choose_arrays(arrays: Sequence[FileArray], wanted: str | None, path: Path) -> tuple[FileArray, ...]:
    """Return the only array that can be drawn, or those that `wanted` names, with commas: then they are layers.

    Raises InvalidOption for a name that there is not, InvalidRecord where there are several arrays, or none to draw.
    """
    name, known = shorten_path(path), {each.name: each for each in arrays}
    if wanted is not None:
        parts = [wanted] if wanted in known else [part.strip() for part in wanted.split(",")]
        if missing := [part for part in parts if part not in known]:
            there = list_first([each for each in arrays if each.name], MAX_LISTED) or "one without a name"
            raise InvalidOption(f"{name} has no array {escape_for_display(missing[0], 60)}", hint=f"There is {there}.")
        chosen = tuple(known[part] for part in parts)
    else:
        chosen = tuple(each for each in arrays if not each.problem) or tuple(arrays[:1])
        if len(chosen) > 1:
            raise InvalidRecord(
                f"{name} holds {len(chosen)} arrays: {list_first(chosen, MAX_LISTED)}",
                hint=f"Choose one, as by --array {escape_for_display(chosen[0].name)}; several with commas are layers.",
            )
    problem = next((each.problem for each in chosen if each.problem), "" if chosen else "no array")
    if problem:
        raise InvalidRecord(f"{name} holds {problem}", hint=READ)
    return chosen


def read_chosen(chosen: Sequence[FileArray], arrays: Sequence[FileArray], path: Path) -> FileWeights:
    """Read arrays, and the names beside them: texts called "keys", and those called "tokens" or the only others.

    Raises InvalidRecord where the file is damaged.
    """
    with reading(path):
        found = [each.read() for each in chosen]
        texts = {each.name: each.read().weights for each in arrays if each.is_names}
    named = {name: tuple(map(str, texts[name])) for name in texts}
    keys = named.pop("keys", found[0].keys)
    queries = named.pop(next(iter(named)) if len(named) == 1 else "tokens", found[0].queries)
    unread = {**{each.name: each.problem for each in arrays if not each.is_names}, **dict.fromkeys(named, NO_NAMES)}
    return FileWeights(
        found[0].weights if len(found) == 1 else [each.weights for each in found],
        queries,
        None if keys == queries else keys,
        rounding=max(each.rounding for each in found),
        guess=found[0].guess,
        name=path.name,
        array=",".join(each.name for each in chosen),
        unread=list_first(
            [f"{escape_for_display(name, 60)}, {problem}" for name, problem in unread.items() if problem],
            MAX_LISTED,
            between="; ",
        ),
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Make one InvalidRecord of what goes wrong while a file is read."""
    name = shorten_path(path)
    try:
        with warnings.catch_warnings(action="ignore"):  # numpy's, of files that Python 2 wrote
            yield
    except OSError as error:
        raise InvalidRecord(f"cannot read {name}: {describe_os_error(error)}") from error
    except (*DAMAGED, *DAMAGED_ZIP) as error:
        raise InvalidRecord(f"{name} is damaged: {' '.join(str(error).split())[:160]}", hint=READ) from error


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip file whose list of members is not too long. Raises what zipfile raises, and ValueError."""
    with _ZipBytes(path) as file, zipfile.ZipFile(file) as archive:
        yield archive


class _ZipBytes(io.FileIO):
    """A file of which no more is read at a time than a list of members may take."""

    def read(self, size: int | None = -1, /) -> Any:
        if size is not None and size > MAX_DIRECTORY:
            raise ValueError("it holds too many members")
        return super().read(size)


def _list_npz(path: Path) -> Iterator[FileArray]:
    with open_zip(path) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                with archive.open(member) as file:
                    yield _parse_npy(file, member.file_size, path, member.filename.removesuffix(".npy"))


def _parse_npy(file: IO[bytes], n_bytes: int, path: Path, name: str) -> FileArray:
    start = io.BytesIO(file.read(MAX_NPY_HEADER))  # a member may be packed, and its header of any length
    version = np.lib.format.read_magic(start)
    parsers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in parsers:
        raise ValueError(f"version {version} of .npy is not known")
    shape, _, dtype = parsers[version](start)
    problem = NOT_READ.get(dtype.kind, "")
    if dtype.kind != "O" and n_bytes - start.tell() < math.prod(shape) * dtype.itemsize:
        raise ValueError(f"it ends before its {math.prod(shape):,} numbers do")
    is_names = dtype.kind == "U" and len(shape) == 1
    return FileArray(name, shape, dtype.itemsize, partial(_read_npy, path, name), problem, is_names)


def _read_npy(path: Path, name: str) -> FileWeights:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return FileWeights(loaded)
    with loaded:
        return FileWeights(loaded[f"{name}.npy"])


def _list_safetensors(path: Path) -> Iterator[FileArray]:
    header = read_header(path, InvalidRecord)
    for name, each in header.tensors.items():
        problem = "" if each["dtype"] in SAFETENSORS_TYPES else f"numbers of type {each['dtype']}"
        (start, end), shape = each["data_offsets"], tuple(each["shape"])
        read = partial(_read_tensor, path, each["dtype"], shape, header.start + start)
        yield FileArray(name, shape, (end - start) // max(1, math.prod(shape)), read, problem)


def _read_tensor(path: Path, kind: str, shape: tuple[int, ...], start: int) -> FileWeights:
    found = np.fromfile(path, SAFETENSORS_TYPES[kind], math.prod(shape), offset=start).reshape(shape)
    if kind == "BF16":  # the upper half of a float32
        return FileWeights((found.astype(np.uint32) << 16).view(np.float32), rounding=ROUNDED)
    return FileWeights(found)


def _read_text(path: Path) -> FileWeights:
    weights, rows, columns, n_decimals = read_matrix(path)
    keys = None if rows is None or rows == columns else columns
    rounding = min(MAX_ROUNDING, 0.5 * 0.1**n_decimals * weights.shape[-1]) if n_decimals else 0.0
    rounded = f"Numbers have {format_count(n_decimals, 'decimals')} in the file: rows are scaled to sum to 1."
    guess = rounded if 0 < n_decimals <= MAX_FEW_DECIMALS else ""
    return FileWeights(weights, columns if rows is None else rows, keys, rounding, guess)
