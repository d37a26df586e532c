"""Arrays of attention that other programs have written: .npy, .npz, .safetensors, .csv. Never a pickle.

Headers come first: what an array takes is known before it is read. Knows not what axes mean, and of a .pt or .json only
that it is one: see `models.attentions.weights_file`.
"""

import csv
import io
import math
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Literal

import numpy as np

from attnviz.bounded import check_file_size, describe_os_error, find_mark, open_zip
from attnviz.display import escape_for_display
from attnviz.errors import InvalidRecord, raising
from attnviz.store import shorten_path
from attnviz.store.matrix import Names, measure_matrix, read_matrix, split_rows
from attnviz.store.tensors import read_header

FileKind = Literal["record", "npy", "npz", "torch", "safetensors", "text", "json"]
READ = "Weights are read from .npy, .npz, .pt, .safetensors, .json and .csv; numpy.save writes a .npy."
PICKLED = "Save numbers alone: numpy.save(path, array), or torch.save(tensor, path)."
PIVOT = "Give a row for each query: pandas.DataFrame.pivot makes one; of a graph give (edge_index, alpha)."
OF_WEIGHTS = {"weight", "weights", "attention", "attn", "alpha", "score", "probability", "value"}  # in names of columns
OF_TEXTS = "attnviz predict reads texts and labels; a column of weights is called weight."
MAX_WORDS = 3  # of a token's name: a text has more
LINKS = re.compile(r"\d{1,5}-\d{1,5}(?:\s+\d{1,5}-\d{1,5})*\s*")
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".align", ".gdfa")
TORCH_ENDINGS = (".pt", ".pth", ".bin", ".ckpt")
MAX_NPY_HEADER = 2**14  # bytes; numpy itself takes no more than 10,000
MAX_NAMES = 2**24  # bytes of a list of names
MAX_DIRECTORY = 2**22  # bytes of a zip file's list of members: some 50,000
NEAR = 0.1  # by which rows of a table that is a matrix may miss 1
NOT_READ = {  # by numpy's kinds of types
    "O": "Python objects, which only a pickle can hold, and a pickle can run code",
    "c": "complex numbers, which are not weights",
    "V": "fields, or numbers that numpy does not know, such as bfloat16",
    **dict.fromkeys("Mm", "dates or times, which are not weights"),
    **dict.fromkeys("US", "texts, which are not weights"),
}
DAMAGED = (ValueError, OverflowError, MemoryError, TypeError, SyntaxError, RecursionError, EOFError, LookupError)
# RuntimeError: a zip file is encrypted
DAMAGED_FORMAT = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, csv.Error, TokenError)


@dataclass(frozen=True, eq=False)
class FileWeights:
    """What a file or an object holds: an array, or one for each layer, and names where it has some."""

    weights: Any
    queries: Names | None = None
    keys: Names | None = None  # where they are not the queries
    guess: str = ""  # what is not certain of them, as a sentence
    name: str = ""  # of the file
    array: str = ""  # which of its arrays
    revision: str = "as given"
    unread: str = ""  # what is beside it, and why it is not read
    known: Names = ()  # what its first axes are
    layers: tuple[int, ...] = ()  # their numbers, where these are known
    given: Any = None  # of a graph: where an edge is, [query, key]
    n_layers: int | None = None  # also those that have no attention


@dataclass(frozen=True, eq=False)
class FileArray:
    """What a header says of one array; `problem` says why it cannot be drawn."""

    name: str
    shape: tuple[int, ...] = ()
    item_size: int = 0  # bytes
    read: Callable[[], FileWeights] = lambda: FileWeights(None)
    problem: str = ""
    is_names: bool = False  # a list of texts

    @property
    def n_bytes(self) -> int:
        """Count the bytes of its numbers, or of these as float32 where they take more."""
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
        if start.startswith(b"PK\3\4"):
            with open_zip(path, MAX_DIRECTORY) as archive:
                endings = {each.rpartition(".")[2] for each in archive.namelist()}
            if endings & {"pkl", "npy"}:
                return "torch" if "pkl" in endings else "npz"
    if start[4:9] == b"\0\0\0\0{":  # behind the length of the header
        return "record" if "attnviz" in read_header(path, InvalidRecord).metadata else "safetensors"
    if ending == ".safetensors":
        return "record"  # a damaged one
    if ending in (*TEXT_ENDINGS, ".json"):
        return "json" if ending == ".json" else "text"
    if start[:1] == b"\x80" or ending in TORCH_ENDINGS:
        raise InvalidRecord(f"{name} needs a pickle, which can run code and is never read", hint=PICKLED)
    raise InvalidRecord(f"{name} is neither a record nor a file of weights", hint=READ)


def list_arrays(path: Path, kind: FileKind) -> Iterator[FileArray]:
    """List the arrays of a .npy, a .npz or a text by their headers. Raises what `reading` makes an InvalidRecord of."""
    if kind == "text":
        yield FileArray("", measure_matrix(path), 4, partial(_read_text, path))
    elif kind == "npy":
        with path.open("rb") as file:
            yield _parse_npy(file, path.stat().st_size, path, "")
    else:
        with open_zip(path, MAX_DIRECTORY) as archive:
            for member in archive.infolist():
                if member.filename.endswith(".npy"):
                    with archive.open(member) as file:
                        yield _parse_npy(file, member.file_size, path, member.filename.removesuffix(".npy"))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Make one InvalidRecord of what goes wrong while a file is read."""
    name = shorten_path(path)
    with (
        raising(InvalidRecord, f"cannot read {name}:", told=(OSError,), say=describe_os_error),
        raising(InvalidRecord, f"{name} is damaged:", READ, (*DAMAGED, *DAMAGED_FORMAT)),
        warnings.catch_warnings(action="ignore"),  # numpy's, of files that Python 2 wrote
    ):
        yield


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
    is_names = dtype.kind == "U" and len(shape) == 1 and n_bytes <= MAX_NAMES
    return FileArray(name, shape, dtype.itemsize, partial(_read_npy, path, name), problem, is_names)


def _read_npy(path: Path, name: str) -> FileWeights:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return FileWeights(loaded)
    with loaded:
        return FileWeights(loaded[f"{name}.npy"])


def _read_text(path: Path) -> FileWeights:
    raw = path.read_bytes()
    return read_table(raw.decode(find_mark(raw)).removeprefix("\ufeff"), path.suffix.lower(), path.name)


def read_table(text: str, ending: str, name: str) -> FileWeights:
    """Read a matrix that is text, with its names.

    Where rows and columns have the same names, or only one of them has any, it is of one text. Raises InvalidRecord for
    alignments of sentences, a table with a row for each weight or edge, and as `read_matrix` does.
    """
    first = text.partition("\n")[0]
    if first.count("|||") > 2 or LINKS.fullmatch(first):
        problem = "holds alignments of sentences, as Nematus and Moses write them"
        raise InvalidRecord(f"{name} {problem}", hint="Save the weights of one: numpy.save(path, array).")
    rows, decimal = split_rows(text.splitlines(), ending, name)
    header, weights = rows[0][1] if rows else [], None
    if any(len(field.split()) > MAX_WORDS for _, fields in rows[1:] for field in fields):
        raise InvalidRecord(f"{name} holds texts, not weights", hint=OF_TEXTS)
    column = next((each for each in header if OF_WEIGHTS & {*re.findall("[a-z]+", each.lower())}), "")
    with suppress(InvalidRecord) if column else nullcontext():
        weights, queries, keys = read_matrix(rows, decimal, name)
    if weights is None or (column and (np.abs(weights.sum(axis=-1) - 1) > NEAR).any()):
        raise InvalidRecord(f"{name} has a row for each weight or edge, in its column {column!r:.40}", hint=PIVOT)
    if weights.ndim == 1 and len(header) == 2 and all(header) and not column:
        raise InvalidRecord(f"{name} has the columns {header[0]!r:.40} and {header[1]!r:.40}", hint=OF_TEXTS)
    return FileWeights(weights, queries or keys, None if queries is None or queries == keys else keys)
