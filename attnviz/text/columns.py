"""Which column holds the texts and which the labels: by name, by number, or by what they look like.

What is chosen is said, and so is what is left. Where two columns fit, both are named. Knows no file format.

How a table in plain text is written (what separates columns, how quotes stand in texts, whether names come first) is
found by trying: its first lines are parsed in each way that files are written; the first that gives rows of equal
length is the file's. The standard library parses, because its errors have a line and it takes no type for granted.
Python's own guess (`csv.Sniffer`) takes letters for separators, and knows neither quotes behind a backslash nor files
without quotes.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from attnviz.display import list_first
from attnviz.document import CHATS
from attnviz.errors import InvalidSource
from attnviz.registry import suggest_name
from attnviz.text import source
from attnviz.text.source import Fields, LabelReading, Row, Rows, Wanted

TEXT_COLUMNS = "text, review, sentence or content"  # as a hint lists them
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


@dataclass(frozen=True, eq=False)
class DataTable:
    """A table that can be read again and again, from its first row on."""

    name: str  # for notices
    where: str  # its names stand, or its first row
    names: Sequence[str]
    wanted: Wanted
    # Of each row where it begins, for messages, and by their names the columns that are asked for, at least.
    rows: Callable[[Sequence[str]], Rows]
    is_named: bool = True  # whether the file names its columns
    layout: tuple[str, ...] = ()  # what is not as its ending promises

    def __post_init__(self) -> None:
        if len(self.names) > source.MAX_COLUMNS:
            raise InvalidSource(f"{self.where} has more columns than the {source.MAX_COLUMNS:,} that are read")

    def list_readable(self, columns: Sequence[str]) -> Iterator[Fields]:
        """Yield some columns, up to the first row that cannot be read, which reading names."""
        with suppress(InvalidSource), closing(self.rows(columns)) as rows:
            for _, fields in rows:
                yield fields

    def choose_columns(self) -> tuple[str, str | None, LabelReading | None, str]:
        """Choose by what is asked for, then by name; in a table that names none by what they hold.

        Return the columns of texts and of labels, how the latter are read, and what is to be said of the choice.
        Raises InvalidSource, with the names of the columns, where nothing fits or two columns do.
        """
        names, wanted, where, named = self.names, self.wanted, self.where, self.is_named
        first = [] if named else source.take_first(self.list_readable(names))[0]
        label = text = None
        is_asked = wanted.label is not None
        if wanted.text is not None:
            text = _find_wanted(wanted.text, names, where, "text")
        if wanted.label not in (None, source.NO_COLUMN):
            label = _find_wanted(str(wanted.label), names, where, "label")
        if not named and not is_asked:
            label = _take_one(_guess_labels([name for name in names if name != text], first, where), "label", where)
        if text is None:
            others = [name for name in names if name != label]
            known = list(filter(is_text_name, others)) or [name for name in others if name in CHATS]
            text = _take_one(known if named else _guess_texts(others, first), "text", where)
        if text is None:
            hint = f"Choose one with --text-column; there are {', '.join(list_columns(names))}."
            raise InvalidSource(f"{where} has no column called {TEXT_COLUMNS}", hint=hint)
        others = [name for name in names if name != text]
        for known_names in (LABEL_COLUMNS, RATING_COLUMNS) if named and not is_asked else ():
            label = label or _take_one([name for name in others if _normalize(name) in known_names], "label", where)
        reading, refused = None, ""
        if label is not None:
            is_rating = _normalize(label) in RATING_COLUMNS
            values = (fields.get(label) for fields in self.list_readable([label]))
            reading = source.choose_reading(values, label, where, is_rating=is_rating)
        if label is not None and reading is None:
            filled = (fields for fields in self.list_readable([label]) if fields.get(label) not in (None, ""))
            found = list(dict.fromkeys(f"{fields[label]!r:.40}" for fields in islice(filled, source.LOOKED_AT)))
            wrong = "is not a label" if len(found) == 1 else "are not labels of one kind"
            refused = f"{label!r} holds {list_first(found, MAX_WRONG)}, which {wrong}: {LABELS}"
            if is_asked:
                raise InvalidSource(f"{where}: {refused}", hint="--label-column none reads texts alone.")
            label = None
        unused = [name for name in others if name != label]
        return text, label, reading, _describe(text, label, reading, unused, refused, named=named)

    def read(self) -> Iterator[Row]:
        """Yield texts and labels. Raises InvalidSource, of a file with its line."""
        text, label, reading, _ = self.choose_columns()
        with closing(self.rows([text, label] if label is not None else [text])) as rows:
            for where, fields in rows:
                if text not in fields:
                    raise InvalidSource(f"{where}: there is no field {text!r}")
                found = None if reading is None else reading.read(fields.get(str(label)), str(label), where)
                yield source.as_text(fields[text], text, where), found

    def describe(self) -> tuple[str, ...]:
        """Say how the table is read where that is not plain. Raises as `choose_columns` does."""
        said = (f"read as: {', '.join(self.layout)}" if self.layout else "", self.choose_columns()[-1])
        return (f"{self.name}: {'; '.join(filter(None, said))}",) if any(said) else ()


def _describe(
    text: str, label: str | None, reading: LabelReading | None, unused: list[str], refused: str, *, named: bool
) -> str:
    if refused:
        return f"texts from {text!r}, no labels: {refused}"
    is_plain = reading is None or reading.is_plain
    if named and not unused and is_plain and _normalize(label or "label") == "label":
        return ""
    place = repr if named else (lambda name: f"column {name}")
    labels = "no labels" if label is None else f"labels from {place(label)}"
    said = "" if is_plain or reading is None else f" ({reading.said})"
    left = f"; not used: {list_first(unused, MAX_NAMED, place)}" if unused else ""
    return f"texts from {place(text)}, {labels}{said}{left}"


def _find_wanted(wanted: str, names: Sequence[str], where: str, kind: str) -> str:
    """Find a column by its name, else by its number from 0."""
    if wanted not in names and wanted.isascii() and wanted.isdigit() and int(wanted[:9]) < len(names):
        wanted = names[int(wanted)]
    if names.count(wanted) > 1:
        problem = f"{where} has {names.count(wanted)} columns called {wanted!r}"
        raise InvalidSource(problem, hint="Give each a name of its own.")
    if wanted not in names:
        hint = f"{suggest_name(wanted, list_columns(names))} --{kind}-column N counts from 0."
        raise InvalidSource(f"{where} has no column {wanted!r}", hint=hint)
    return wanted


def _take_one(found: Sequence[str], kind: str, where: str) -> str | None:
    if len(found) > 1:
        columns = list_first(list_columns(found), MAX_NAMED, repr)
        raise InvalidSource(f"{where}: the {kind}s may be in {columns}", hint=f"Choose one with --{kind}-column.")
    return found[0] if found else None


def _guess_texts(names: Sequence[str], rows: Sequence[Fields]) -> list[str]:
    """Return the column whose fields are clearly the longest, or all those that may be it."""
    lengths = {name: sum(len(str(fields[name])) for fields in rows) for name in names}
    return [name for name in names if CLEARLY_LONGER * lengths[name] > max(lengths.values()) or not rows]


def _guess_labels(names: Sequence[str], rows: Sequence[Fields], where: str) -> list[str]:
    """Return the columns that hold few values, all of them labels."""
    seen = {name: [fields[name] for fields in rows] for name in names}
    few = [name for name in names if any(seen[name]) and len(set(map(str, seen[name]))) <= MAX_CLASSES]
    return [name for name in few if source.choose_reading(seen[name], name, where) is not None]


def is_text_name(name: str) -> bool:
    """Return whether a column of this name holds texts."""
    return _normalize(name) in (*TEXT_COLUMNS.replace(" or", ",").split(", "), *MORE_TEXT_COLUMNS)


def is_known_name(name: str) -> bool:
    """Return whether a column of this name holds texts, labels or ratings."""
    return is_text_name(name) or _normalize(name) in (*LABEL_COLUMNS, *RATING_COLUMNS)


def _normalize(name: str) -> str:
    return "".join(character for character in name.strip().lower() if character not in " _-")


def list_columns(names: Sequence[str]) -> list[str]:
    """Shorten names of columns for a message: in a file without a header they may be texts."""
    short = [name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…" for name in names]
    return short if len(short) <= MAX_NAMES else [*short[:MAX_NAMES], f"{len(short) - MAX_NAMES} more"]


NAMES_OF_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
QUOTES: dict[str, dict[str, Any]] = {
    "spaced": {"skipinitialspace": True},
    "doubled": {},
    "escaped": {"escapechar": "\\", "doublequote": False},
    "none": {"quoting": csv.QUOTE_NONE},
}
SAID = {"spaced": "quotes behind blanks", "escaped": "quotes behind backslashes", "none": "no quoting"}
NEVER_IN_TEXTS = "\t|"  # such files do without quotes
MOSTLY = 0.9  # of rows have as many fields as the first: a wrong line is for the reader to name
MAX_WORDS = 3  # of a column's name


@dataclass(frozen=True)
class Layout:
    """How a table is written."""

    separator: str
    quotes: str = "doubled"  # of QUOTES
    has_header: bool = True

    def parse(self, lines: Iterable[str]) -> Any:
        """Return a csv reader. Raises csv.Error when it is read."""
        return csv.reader(lines, delimiter=self.separator, strict=True, **QUOTES[self.quotes])

    def describe(self, usual: str) -> tuple[str, ...]:
        """Say what is not as the file's ending promises."""
        said = [NAMES_OF_SEPARATORS[self.separator]] if self.separator != usual else []
        if self.quotes != "doubled":
            said.append(SAID[self.quotes])
        return (*said, *([] if self.has_header else ["no header"]))


def choose_layout(lines: Sequence[str], *, is_whole: bool, usual: str, wanted: Wanted, where: str) -> Layout:
    """Choose how a file is written by its first lines, which may be all of it. `usual` is its ending's separator.

    Raises InvalidSource where two separators fit.
    """
    backslashes = any('\\"' in line for line in lines)
    for quotes in QUOTES:
        if quotes == "escaped" and not backslashes:
            continue
        fitting = {}
        for separator in (usual, *(each for each in NAMES_OF_SEPARATORS if each != usual)):
            if quotes in ("none", "spaced") and (quotes == "none") != (separator in NEVER_IN_TEXTS):
                continue  # more likely a quote is wrong, which the reader names
            if quotes == "spaced" and not any(re.search(rf'{separator} +"(?![";,\s])', line) for line in lines):
                continue  # no quote opens behind a blank; one within quotes stands twice
            rows = _parse_rows(Layout(separator, quotes), lines, is_whole=is_whole)
            share = 1.0 if quotes in ("none", "spaced") else MOSTLY
            n_columns = len(rows[0]) if rows else 0
            if rows and n_columns > 1 and sum(len(fields) == n_columns for fields in rows) >= share * len(rows):
                fitting[separator] = rows
        named = [each for each, rows in fitting.items() if _names_columns(rows[0], wanted)]
        chosen = named or list(fitting)
        if len(chosen) > 1 and usual not in chosen:
            ways = list_first([f"{NAMES_OF_SEPARATORS[each]} ({len(fitting[each][0])} columns)" for each in chosen], 4)
            problem = f"{where}: columns may be separated by {ways}"
            raise InvalidSource(problem, hint="Name the columns in the first line: text, label.")
        if chosen:
            separator = usual if usual in chosen else chosen[0]
            return Layout(separator, quotes, has_header=_has_header(fitting[separator], wanted))
    rows = _parse_rows(Layout(usual), lines, is_whole=is_whole)
    return Layout(usual, has_header=not rows or _has_header(rows, wanted))


def _parse_rows(layout: Layout, lines: Sequence[str], *, is_whole: bool) -> list[list[str]] | None:
    rows: list[list[str]] = []
    try:
        rows.extend(fields for fields in layout.parse(lines) if fields)
    except csv.Error as error:
        if is_whole or "unexpected end of data" not in str(error):  # else the last row goes on beyond these lines
            return None
    return rows


def _names_columns(fields: Sequence[str], wanted: Wanted) -> bool:
    return any(is_known_name(field) or field in (wanted.text, wanted.label) for field in fields)


def _has_header(rows: list[list[str]], wanted: Wanted) -> bool:
    """Return whether the first row names columns: it names a known one, or nothing in it is a text or a label."""
    first, others = rows[0], rows[1:]
    if _names_columns(first, wanted):
        return True
    if not others:
        return not any(map(_looks_like_text, first))
    labels = [field for field in first if field.strip() and source.choose_reading([field], "", "") is not None]
    return not (labels or any(map(_looks_like_text, first)))


def _looks_like_text(field: str) -> bool:
    return len(field) > MAX_NAME_LENGTH or len(field.split()) > MAX_WORDS or field.rstrip().endswith((".", "!", "?"))
