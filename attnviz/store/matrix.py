"""A matrix of weights as text, with or without names: what pandas, R and numpy.savetxt write. A line is bounded."""

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from attnviz.errors import InvalidRecord

MAX_LINE = 2**22  # bytes
DELIMITERS = (",", ";", "\t", None)  # None: blanks
DECIMALS: dict[str | None, str] = {";": ",", "\t": ","}  # some countries write 0,5: then commas do not separate
Names = tuple[str, ...]
Row = tuple[int, list[str]]  # the number of the line, and its fields
Matrix = tuple[Float32[np.ndarray, "*query key"], Names | None, Names | None]


def measure_matrix(path: Path) -> tuple[int, int]:
    """Return how many rows and columns there are at most. Raises OSError, and ValueError for too long a line."""
    n_lines, n_columns = 1, 2
    with path.open("rb") as file:
        for line in iter(partial(file.readline, MAX_LINE + 1), b""):
            if len(line) > MAX_LINE:
                raise ValueError(f"a line is longer than {MAX_LINE:,} bytes")
            n_lines, n_columns = n_lines + 1, max(n_columns, 2 + max(map(line.count, (b",", b";", b"\t", b" "))))
    return n_lines, n_columns


def split_rows(lines: Sequence[str], ending: str, name: str) -> tuple[list[Row], str]:
    """Return the rows that are not blank, and the sign before decimals; where blanks separate, # begins a comment.

    What separates is the first under which a row is numbers behind its first field, or ends in one, else as the ending
    says. Raises InvalidRecord and ValueError.
    """
    found: str | None
    found, decimal = "\t" if ending == ".tsv" else ",", "."
    for part, delimiter in ((part, each) for part in (slice(-1, None), slice(1, None)) for each in DELIMITERS[::-1]):
        sign = DECIMALS.get(delimiter, ".")
        fields = [fields for _, fields in islice(_split(lines, delimiter), 2)][-1:]
        if fields and len(fields[0]) > 1 and all(_parse(field, sign) is not None for field in fields[0][part]):
            found, decimal = delimiter, sign
    rows = list(_split(lines, found))
    if found is None and any(line.lstrip()[:1] == "#" for line in lines[rows[0][0] : rows[-1][0]]):
        raise InvalidRecord(
            f"{name}: a comment parts rows, as where a file holds several matrices",
            hint="Save them as one array of more axes: numpy.save.",
        )
    return rows, decimal


def _split(lines: Sequence[str], delimiter: str | None) -> Iterator[Row]:
    if delimiter is None:
        lines = [" ".join(line.partition("#")[0].split()) for line in lines]
    rows = csv.reader(lines, delimiter=delimiter or " ")
    return ((number, fields) for number, fields in enumerate(rows, 1) if fields)


def read_matrix(rows: Sequence[Row], decimal: str, name: str) -> Matrix:
    """Read a matrix, and the names of its rows and columns, where these say more than their positions.

    A single column is a vector.

    Raises InvalidRecord with the line for what is no number and for rows of several lengths.
    """
    if not rows:
        raise InvalidRecord(f"{name} is empty")

    def is_number(field: str) -> bool:
        return _parse(field, decimal) is not None

    (_, first), (at, second) = rows[0], rows[:2][-1]
    # R's header has no name for the names of rows
    shifted = len(second) == len(first) + 1 and not all(map(is_number, first))
    has_names = len(second) > 1 and (shifted or not first[0].strip() or not is_number(second[0]))
    head = first if shifted or not has_names else first[1:]
    has_header = len(rows) > 1 and (shifted or (has_names and not first[0].strip()) or not all(map(is_number, head)))
    names, values = list[str](), list[Float32[np.ndarray, " key"]]()
    for line, fields in rows[has_header:]:
        if len(fields) != len(second):
            raise InvalidRecord(f"{name}:{line}: {len(fields)} columns, where line {at} has {len(second)}")
        numbers = fields[has_names:]
        if wrong := [field for field in numbers if not is_number(field)]:
            raise InvalidRecord(f"{name}:{line}: {wrong[0].strip()!r:.40} is not a number")
        values.append(np.array([_parse(field, decimal) for field in numbers], dtype=np.float32))
        names.append(fields[0])
    counted = [str(place) for place in range(max(len(head), len(names)))]
    if not has_header and head == counted[: len(head)] and len(values) > 1 and (len(head) != 2 or len(values) == 3):
        del values[0], names[0]  # pandas without names of rows: columns are called 0, 1, 2
    weights = np.stack(values)
    of_rows, of_columns = (None if each == counted[: len(each)] else tuple(each) for each in (names, head))
    of_rows, of_columns = of_rows if has_names else None, of_columns if has_header else None
    if weights.shape[1] == 1 and len(weights) > 1:
        return weights[:, 0], None, of_rows
    return weights, of_rows, of_columns


def _parse(field: str, decimal: str) -> float | None:
    """Return the number, which OpenNMT marks where it is the largest of its row; None for what is none."""
    try:
        return float(field.removeprefix("*").replace(decimal, "."))
    except ValueError:
        return None
