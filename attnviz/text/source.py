"""What every source has: splits, and rows with a text and perhaps a label. Knows no file format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from attnviz.bounded import format_bytes
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.registry import suggest_name

Row = tuple[str, int | None]

TEXT_COLUMNS = ("text", "review", "sentence", "content")
SPLIT_NAMES = ("train", "test", "validation", "valid", "val", "dev", "eval", "unsupervised")
MAX_TEXT = 2**24  # bytes of one text or line: three times the Bible
MAX_TEXTS = 2**30  # characters of all texts that are read, each counted as ROW_BYTES longer
ROW_BYTES = 500  # bytes beside a text: its name, its label, its position
MAX_NAME_LENGTH = 40
MAX_NAMES = 20
LABELS = {"neg": 0, "negative": 0, "pos": 1, "positive": 1}


def check_total_size(rows: Iterable[Row], where: str) -> Iterator[Row]:
    """Yield the rows. Raises InvalidSource as soon as they take more memory than a data set may."""
    n_bytes = 0
    for text, label in rows:
        n_bytes += len(text) + ROW_BYTES
        if n_bytes > MAX_TEXTS:
            raise InvalidSource(
                f"{where} holds more than {format_bytes(MAX_TEXTS)} of texts",
                hint="--split 'train[:10000]' reads fewer.",
            )
        yield text, label


class Rows(Protocol):
    """A list of rows, or a sequence that reads each row on access."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> Row: ...


@dataclass(frozen=True, eq=False)
class Source:
    """An open data set. `read` takes a split and how many of its first texts are needed (None: all of them).

    `stream` yields the same rows with few of them in memory; None: all are in memory anyway.
    """

    name: str
    splits: tuple[str, ...]
    read: Callable[[str, int | None], Rows]
    notices: tuple[str, ...] = ()
    stream: Callable[[str], Iterable[Row]] | None = None

    def rows(self, split: str) -> Iterator[Row]:
        """Iterate over the rows of a split, with few of them in memory where the source can stream."""
        return iter(self.stream(split)) if self.stream else iter(self.read(split, None))


def find_text_column(columns: Sequence[str], wanted: str | None, where: str) -> str:
    """Find the column that holds the texts. Raises InvalidSource with the names of the columns."""
    if wanted is not None:
        if columns.count(wanted) == 1:
            return wanted
        if wanted in columns:
            raise InvalidSource(f"{where} has {columns.count(wanted)} columns called {wanted!r}")
        raise InvalidSource(f"{where} has no column {wanted!r}", hint=suggest_name(wanted, _list_columns(columns)))
    for name in TEXT_COLUMNS:
        found = [column for column in columns if column.strip().lower() == name]
        if len(found) > 1:
            raise InvalidSource(f"{where} has {len(found)} columns called {name!r}")
        if found:
            return found[0]
    raise InvalidSource(
        f"{where} has no column called {', '.join(TEXT_COLUMNS[:-1])} or {TEXT_COLUMNS[-1]}",
        hint=f"Choose one with --text-column; there are {', '.join(_list_columns(columns))}.",
    )


def _list_columns(columns: Sequence[str]) -> list[str]:
    """Shorten names of columns for a message: in a file without a header they are texts."""
    short = [name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…" for name in columns]
    return short if len(short) <= MAX_NAMES else [*short[:MAX_NAMES], f"{len(short) - MAX_NAMES} more"]


def find_label_column(columns: Sequence[str]) -> str | None:
    """Find the column that holds labels, if any."""
    return next((column for column in columns if column.strip().lower() == "label"), None)


def as_text(value: object, column: str, where: str) -> str:
    """Return the value, a text. Raises InvalidSource for another type, as converting 5 to "5.0" would change it."""
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            found = f"{where}: a text of {len(value):,} characters"
            raise InvalidSource(found, hint=f"At most {format_bytes(MAX_TEXT)} of one text are read.")
        return value
    found = "null" if value is None else f"{type(value).__name__} {value!r:.40}"
    raise InvalidSource(f"{where}: {column!r} holds {found}, not text")


def as_label(value: object) -> int | None:
    """Parse a label: 0 is negative and 1 positive; None where there is none, which data sets also write as -1."""
    if isinstance(value, str):
        name = value.strip().lower()
        value = int(name) if name.isascii() and name.isdigit() and len(name) < 9 else LABELS.get(name)
    if isinstance(value, float) and value.is_integer():  # a column of whole numbers with a gap is read as floats
        value = int(value)
    return int(value) if isinstance(value, int) and value >= 0 else None


def check_no_columns(wanted: str | None, where: str) -> None:
    """Raises InvalidOption where --text-column was given for a source without columns."""
    if wanted is not None:
        raise InvalidOption(f"{where} has no columns to choose from", hint="Leave out --text-column.")
