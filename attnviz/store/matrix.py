"""A matrix of weights as text, with or without names: what pandas, R and numpy.savetxt write. A line is bounded."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from attnviz.errors import InvalidRecord
from attnviz.store import shorten_path

MAX_LINE = 2**22  # bytes
DELIMITERS = (",", ";", "\t", None)  # None: blanks
ALL_DECIMALS = 17  # of what is written with an exponent
DECIMALS: dict[str | None, str] = {";": ",", "\t": ","}  # some countries write 0,5: then commas do not separate
Names = tuple[str, ...]
Row = tuple[int, list[str]]  # the number of the line, and its fields


class Matrix(NamedTuple):
    """Weights, and names of its rows and columns where it has some that are not just their positions."""

    weights: Float32[np.ndarray, "*query key"]
    rows: Names | None
    columns: Names | None
    n_decimals: int  # of the number with the most


def measure_matrix(path: Path) -> tuple[int, int]:
    """Return how many rows and columns there are at most. Raises OSError, and ValueError for too long a line."""
    with path.open("rb") as file:
        first = b"#"
        while first.startswith(b"#"):
            first = _check_length(file.readline(MAX_LINE + 1))
        n_lines = 1 + sum(chunk.count(b"\n") for chunk in iter(partial(file.read, 2**20), b""))
    return n_lines + 1, 2 + max(map(first.count, (b",", b";", b"\t", b" ")))


def read_matrix(path: Path) -> Matrix:
    """Read a matrix; a single column is a vector.

    Raises InvalidRecord with the line for what is no number and for rows of several lengths; OSError; ValueError.
    """
    name, (n_lines, n_columns) = shorten_path(path), measure_matrix(path)
    delimiter = _find_delimiter(path)
    decimal = DECIMALS.get(delimiter, ".")
    is_number = partial(_is_number, decimal=decimal)
    rows = _split(path, delimiter)
    start = list(islice(rows, 2))
    if not start:
        raise InvalidRecord(f"{name} is empty")
    first, second = start[0][1], start[-1][1]
    # R's header has no name for the names of rows
    shifted = len(second) == len(first) + 1 and not all(map(is_number, first))
    has_names = len(second) > 1 and (shifted or not first[0].strip() or not is_number(second[0]))
    head = first if shifted or not has_names else first[1:]
    has_header = len(start) > 1 and (shifted or (has_names and not first[0].strip()) or not all(map(is_number, head)))
    n_decimals = 0
    values: list[Float32[np.ndarray, " key"]] = []
    names: list[str] = []
    for line, fields in chain(start[has_header:], rows):
        if len(fields) != len(second) or len(fields) > n_columns or len(values) > n_lines:
            raise InvalidRecord(f"{name}:{line}: {len(fields)} columns, where line {start[-1][0]} has {len(second)}")
        wrong = next((field for field in fields[has_names:] if not is_number(field)), None)
        if wrong is not None:
            raise InvalidRecord(f"{name}:{line}: {wrong.strip()!r:.40} is not a number")
        behind = [field.strip().lower().replace(",", ".").partition(".")[2] for field in fields[has_names:]]
        n_decimals = max(n_decimals, *(ALL_DECIMALS if "e" in digits else len(digits) for digits in behind))
        values.append(np.array([_parse(field, decimal) for field in fields[has_names:]], dtype=np.float32))
        names.append(fields[0])
    if not has_header and head == _positions(len(head)) and len(values) > 1 and (len(head) != 2 or len(values) == 3):
        del values[0], names[0]  # pandas without names of rows: columns are called 0, 1, 2
    weights = np.stack(values)
    of_rows = _unless_positions(names) if has_names else None
    of_columns = _unless_positions(head) if has_header else None
    if weights.shape[1] == 1 and len(weights) > 1:
        return Matrix(weights[:, 0], None, of_rows, n_decimals)
    return Matrix(weights, of_rows, of_columns, n_decimals)


def _split(path: Path, delimiter: str | None) -> Iterator[Row]:
    """Yield the rows that are not blank; where blanks separate, # begins a comment."""
    with path.open("rb") as file:
        lines = (_check_length(line).decode("utf-8-sig") for line in iter(partial(file.readline, MAX_LINE + 1), b""))
        reader = csv.reader(
            _strip_comments(lines, shorten_path(path)) if delimiter is None else lines, delimiter=delimiter or " "
        )
        try:
            for fields in reader:
                if fields:
                    yield reader.line_num, fields
        except csv.Error as error:
            raise InvalidRecord(f"{shorten_path(path)}:{reader.line_num}: {error}") from error


def _strip_comments(lines: Iterator[str], name: str) -> Iterator[str]:
    begun = parted = False
    for number, line in enumerate(lines, 1):
        fields = line.partition("#")[0].split()
        if fields and parted:
            raise InvalidRecord(
                f"{name}:{number}: a comment parts rows, as where a file holds several matrices",
                hint="Save them as one array of more axes: numpy.save.",
            )
        begun, parted = begun or bool(fields), begun and not fields and bool(line.strip())
        yield " ".join(fields)


def _check_length(line: bytes) -> bytes:
    if len(line) > MAX_LINE:
        raise ValueError(f"a line is longer than {MAX_LINE:,} bytes")
    return line


def _find_delimiter(path: Path) -> str | None:
    """Return the first under which a row is numbers behind its first field; of one column what the ending says."""
    for delimiter in DELIMITERS:
        with suppress(InvalidRecord):
            sample = list(islice(_split(path, delimiter), 2))
            fields = sample[-1][1][1:] if sample else []
            if fields and all(_is_number(field, DECIMALS.get(delimiter, ".")) for field in fields):
                return delimiter
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _is_number(field: str, decimal: str = ".") -> bool:
    with suppress(ValueError):
        _parse(field, decimal)
        return True
    return False


def _parse(field: str, decimal: str) -> float:
    """Return the number. Raises ValueError."""
    return float(field.replace(decimal, "."))


def _positions(n: int) -> list[str]:
    return [str(place) for place in range(n)]


def _unless_positions(names: list[str]) -> Names | None:
    return None if names == _positions(len(names)) else tuple(names)
