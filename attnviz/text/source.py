"""What every source has: splits, and rows with a text and perhaps a label. Knows no file format."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from attnviz.bounded import Budget, format_bytes
from attnviz.errors import InvalidSource

Row = tuple[str, int | None]
Thing = TypeVar("Thing")
Fields = Mapping[str, Any]  # of a row of a table, by the names of its columns
Rows = Generator[tuple[str, Fields], None, None]  # each with where it begins, for messages

SPLIT_NAMES = ("train", "test", "validation", "valid", "val", "dev", "eval", "unsupervised")
MAX_TEXT = 2**24  # bytes of one text or line: three times the Bible
ROW_BYTES = 800  # bytes beside a text: its name, its label, its position
MAX_ROWS = 2**21  # of one label that are looked at for a second one
MAX_COLUMNS = 2**12
LOOKED_AT = 200  # lines or rows from which is guessed how a table is written, and what columns without names hold
MAX_LOOKED_AT = 2**20  # characters of them
NO_COLUMN = "none"  # of --label-column


@dataclass(frozen=True)
class Wanted:
    """What is asked for of a source: columns by name or number, how its bytes are characters (None: look), and what
    it may take.
    """

    text: str | None = None
    label: str | None = None  # NO_COLUMN: labels are left out
    encoding: str | None = None
    budget: Budget = field(default_factory=Budget)
    keep_markup: bool = False


@dataclass(frozen=True, repr=False)
class OtherKind:
    """A value that was left as it lies, since its kind is neither that of a text nor of a label."""

    kind: object

    def __repr__(self) -> str:
        return str(self.kind)


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
    found = "null" if value is None else f"{type(value).__name__} {value!r:.40}".removeprefix("OtherKind ")
    raise InvalidSource(f"{where}: {column!r} holds {found}, not text", hint="Choose another with --text-column.")


def take_first(things: Iterable[Thing]) -> tuple[list[Thing], bool]:
    """Take so many lines or rows that something can be guessed from them, and say whether they are all."""
    taken, size = list[Thing](), 0
    for thing in things:
        if len(taken) == LOOKED_AT or size > MAX_LOOKED_AT:
            return taken, False
        taken.append(thing)
        size += len(str(thing))
    return taken, True
