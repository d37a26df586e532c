"""What every source has: splits, and rows with a text and perhaps a label. Knows no file format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from attnviz.bounded import format_bytes
from attnviz.errors import InvalidOption, InvalidSource

Row = tuple[str, int | None]

SPLIT_NAMES = ("train", "test", "validation", "valid", "val", "dev", "eval", "unsupervised")
MAX_TEXT = 2**24  # bytes of one text or line: three times the Bible
MAX_TEXTS = 2**30  # characters of all texts that are read, each counted as ROW_BYTES longer
ROW_BYTES = 500  # bytes beside a text: its name, its label, its position
MAX_ROWS = MAX_TEXTS // ROW_BYTES  # no data set that is read has more
NO_COLUMN = "none"  # of --label-column


@dataclass(frozen=True)
class Wanted:
    """What is asked for of a source: columns by name or number, and how its bytes are characters. None: look."""

    text: str | None = None
    label: str | None = None  # NO_COLUMN: labels are left out
    encoding: str | None = None


@dataclass(frozen=True, eq=False)
class Source:
    """An open data set. `rows` yields the rows of a split, with few of them in memory at a time."""

    name: str
    splits: tuple[str, ...]
    rows: Callable[[str], Iterator[Row]]
    notices: tuple[str, ...] = ()


def as_text(value: object, column: str, where: str) -> str:
    """Return the value, a text. Raises InvalidSource for another type, as converting 5 to "5.0" would change it."""
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            found = f"{where}: a text of {len(value):,} characters"
            raise InvalidSource(found, hint=f"At most {format_bytes(MAX_TEXT)} of one text are read.")
        return value
    found = "null" if value is None else f"{type(value).__name__} {value!r:.40}"
    raise InvalidSource(f"{where}: {column!r} holds {found}, not text", hint="Choose another with --text-column.")


def check_no_columns(wanted: Wanted, where: str) -> None:
    """Raises InvalidOption where a column was asked for of a source without columns."""
    for option, value in (("--text-column", wanted.text), ("--label-column", wanted.label)):
        if value not in (None, NO_COLUMN):
            raise InvalidOption(f"{where} has no columns to choose from", hint=f"Leave out {option}.")
