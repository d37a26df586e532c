"""Which column holds the texts and which the labels: by name, by number, or by what they look like.

What is chosen is said, and so is what is left. Where two columns fit, both are named. Knows no file format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from statistics import fmean

from attnviz.display import list_first
from attnviz.errors import InvalidSource
from attnviz.registry import suggest_name
from attnviz.text.labels import LabelReading, choose_reading
from attnviz.text.source import NO_COLUMN, Row, Wanted, as_text

TEXT_COLUMNS = ("text", "review", "sentence", "content")  # as a hint lists them
MORE_TEXT_COLUMNS = ("texts", "reviews", "sentences", "reviewtext", "reviewbody", "reviewcontent", "comment", "tweet")
LABEL_COLUMNS = ("label", "labels", "sentiment", "class", "target", "polarity")
RATING_COLUMNS = ("rating", "ratings", "stars", "starrating", "overall", "score")
MAX_NAME_LENGTH = 40
MAX_NAMES = 20
MAX_NAMED = 8  # columns in a notice
LABELS = "these are 0, 1, 2 …, neg, pos and such"
MAX_WRONG = 3  # values that are no labels, in a message
MAX_CLASSES = 10  # of a column without a name that is taken for labels: more are numbers of rows
CLEARLY_LONGER = 2  # times as long as the next column on average is the column of texts, where none has a name

Values = Callable[[str], Iterable[object]]  # of a column, from its first row on


@dataclass(frozen=True)
class Columns:
    """The chosen columns of a table."""

    text: str
    label: str | None
    reading: LabelReading | None
    notes: tuple[str, ...]  # what is to be said of the choice

    def read_row(self, text: object, label: object, where: str) -> Row:
        """Return the text and the label of a row. Raises InvalidSource for another type or an unknown label."""
        read = None if self.reading is None else self.reading.read(label, str(self.label), where)
        return as_text(text, self.text, where), read


@dataclass(frozen=True, eq=False)
class DataTable(ABC):
    """A table that can be read again and again, from its first row on."""

    name: str  # for notices
    where: str  # its names stand, or its first row
    names: Sequence[str]
    wanted: Wanted
    is_named: bool = True  # whether the file names its columns
    layout: tuple[str, ...] = ()  # what is not as its ending promises
    note: str = ""  # what else is to be said of it

    @abstractmethod
    def list_values(self, column: str) -> Iterator[object]:
        """Yield what a column holds, up to the first row that cannot be read, which reading names."""

    @abstractmethod
    def list_rows(self, columns: Columns) -> Iterator[tuple[str, object, object]]:
        """Yield where each row begins, its text and its label. Raises InvalidSource."""

    def choose_columns(self) -> Columns:
        """Choose what is read. Raises InvalidSource."""
        return choose_columns(self.names, self.list_values, self.wanted, self.where, named=self.is_named)

    def read(self) -> Iterator[Row]:
        """Yield texts and labels. Raises InvalidSource, of a file with its line."""
        columns = self.choose_columns()
        for where, text, label in self.list_rows(columns):
            yield columns.read_row(text, label, where)

    def describe(self) -> tuple[str, ...]:
        """Say how the table is read where that is not plain; nothing where that fails, since reading says it."""
        with suppress(InvalidSource):
            layout = f"read as: {', '.join(self.layout)}" if self.layout else ""
            notes = (filter(None, (layout, note)) for note in self.choose_columns().notes or (self.note,))
            return tuple(f"{self.name}: {said}" for said in map("; ".join, notes) if said)
        return ()


def choose_columns(names: Sequence[str], values: Values, wanted: Wanted, where: str, *, named: bool = True) -> Columns:
    """Choose by what is asked for, then by name; in a table whose columns are not `named` by what they hold.

    Raises InvalidSource, with the names of the columns, where nothing fits or two columns do.
    """
    label = text = None
    is_asked = wanted.label is not None
    if wanted.text is not None:
        text = _find_wanted(wanted.text, names, where, "text")
    if wanted.label not in (None, NO_COLUMN):
        label = _find_wanted(str(wanted.label), names, where, "label")
    if not named and not is_asked:
        label = _guess_label([name for name in names if name != text], values, where)
    if text is None:
        text = _find_text(names, label, where) if named else _guess_text(names, values, label, where)
    others = [name for name in names if name != text]
    if named and not is_asked:
        label = _find_label(others, where)
    reading, refused = None, ""
    if label is not None:
        is_rating = _normalize(label) in RATING_COLUMNS
        reading = choose_reading(values(label), label, where, is_rating=is_rating)
        if reading is None:
            held = _look(value for value in values(label) if value not in (None, ""))
            found = list(dict.fromkeys(f"{value!r:.40}" for value in held))
            wrong = "is not a label" if len(found) == 1 else "are not labels of one kind"
            refused = f"{label!r} holds {list_first(found, MAX_WRONG)}, which {wrong}: {LABELS}"
            if is_asked:
                raise InvalidSource(f"{where}: {refused}", hint="--label-column none reads texts alone.")
            label = None
    unused = [name for name in others if name != label]
    return Columns(text, label, reading, _describe(text, label, reading, unused, refused, named=named))


def _describe(
    text: str, label: str | None, reading: LabelReading | None, unused: list[str], refused: str, *, named: bool
) -> tuple[str, ...]:
    if refused:
        return (f"texts from {text!r}, no labels: {refused}",)
    is_plain = label is None or (reading is not None and reading.is_plain and _normalize(label) == "label")
    if named and is_plain and not unused:
        return ()
    place = repr if named else (lambda name: f"column {name}")
    labels = f"labels from {place(label)} ({reading.said})" if label is not None and reading else "no labels"
    if label is not None and reading and reading.is_plain:
        labels = f"labels from {place(label)}"
    left = f"; not used: {list_first(unused, MAX_NAMED, place)}" if unused else ""
    return (f"texts from {place(text)}, {labels}{left}",)


def _find_wanted(wanted: str, names: Sequence[str], where: str, kind: str) -> str:
    """Find a column by its name, else by its number from 0."""
    if wanted not in names and wanted.isascii() and wanted.isdigit() and int(wanted[:9]) < len(names):
        wanted = names[int(wanted)]
    if names.count(wanted) == 1:
        return wanted
    if wanted in names:
        raise InvalidSource(
            f"{where} has {names.count(wanted)} columns called {wanted!r}", hint="Give each a name of its own."
        )
    raise InvalidSource(
        f"{where} has no column {wanted!r}",
        hint=f"{suggest_name(wanted, list_columns(names))} --{kind}-column N counts from 0.",
    )


def _find_text(names: Sequence[str], label: str | None, where: str) -> str:
    known = [name for name in names if is_text_name(name) and name != label]
    for name, n_alike in Counter(map(_normalize, known)).items():
        if n_alike > 1:
            raise InvalidSource(f"{where} has {n_alike} columns called {name!r}")
    if len(known) > 1:
        raise InvalidSource(
            f"{where}: the texts may be in {list_first(known, MAX_NAMED, repr)}", hint="Choose one with --text-column."
        )
    if known:
        return known[0]
    raise InvalidSource(
        f"{where} has no column called {', '.join(TEXT_COLUMNS[:-1])} or {TEXT_COLUMNS[-1]}",
        hint=f"Choose one with --text-column; there are {', '.join(list_columns(names))}.",
    )


def _find_label(names: Sequence[str], where: str) -> str | None:
    for known in (LABEL_COLUMNS, RATING_COLUMNS):
        found = [name for name in names if _normalize(name) in known]
        if len(found) > 1:
            raise InvalidSource(
                f"{where}: the labels may be in {list_first(found, MAX_NAMED, repr)}",
                hint="Choose one with --label-column, or none.",
            )
        if found:
            return found[0]
    return None


def _guess_text(names: Sequence[str], values: Values, label: str | None, where: str) -> str:
    """Choose the column whose fields are clearly the longest."""
    lengths = {
        name: fmean([len(str(value)) for value in _look(values(name))] or [0]) for name in names if name != label
    }
    longest = sorted(lengths, key=lambda name: -lengths[name])
    if not longest:
        raise InvalidSource(f"{where} has no column but {label!r}")
    if len(longest) > 1 and lengths[longest[0]] < CLEARLY_LONGER * lengths[longest[1]]:
        raise InvalidSource(
            f"{where} names no columns, and the texts may be in column {longest[0]} or {longest[1]}",
            hint=f"Choose one with --text-column; there are {', '.join(list_columns(names))}.",
        )
    return longest[0]


def _guess_label(names: Sequence[str], values: Values, where: str) -> str | None:
    """Choose the only column that holds few values, all of them labels."""
    found = []
    for name in names:
        seen = _look(values(name))
        if len(set(map(str, seen))) <= MAX_CLASSES and any(seen) and choose_reading(seen, name, where) is not None:
            found.append(name)
    if len(found) > 1:
        raise InvalidSource(
            f"{where} names no columns, and the labels may be in column {found[0]} or {found[1]}",
            hint="Choose one with --label-column, or none.",
        )
    return found[0] if found else None


def _look(values: Iterable[object]) -> list[object]:
    return list(islice(values, 200))


def is_text_name(name: str) -> bool:
    """Return whether a column of this name holds texts."""
    return _normalize(name) in (*TEXT_COLUMNS, *MORE_TEXT_COLUMNS)


def is_known_name(name: str) -> bool:
    """Return whether a column of this name holds texts, labels or ratings."""
    return is_text_name(name) or _normalize(name) in (*LABEL_COLUMNS, *RATING_COLUMNS)


def _normalize(name: str) -> str:
    return "".join(character for character in name.strip().lower() if character not in " _-")


def list_columns(names: Sequence[str]) -> list[str]:
    """Shorten names of columns for a message: in a file without a header they may be texts."""
    short = [name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…" for name in names]
    return short if len(short) <= MAX_NAMES else [*short[:MAX_NAMES], f"{len(short) - MAX_NAMES} more"]
