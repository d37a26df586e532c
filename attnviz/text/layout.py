"""How a table in plain text is written: what separates columns, how quotes stand in texts, whether names come first.

Its first lines are parsed in each way that files are written; the first that gives rows of equal length is the file's.
The standard library parses, because its errors have a line and it takes no type for granted. Python's own guess
(`csv.Sniffer`) takes letters for separators, and knows neither quotes behind a backslash nor files without quotes.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from attnviz.display import list_first
from attnviz.errors import InvalidSource
from attnviz.text.columns import MAX_NAME_LENGTH, is_known_name
from attnviz.text.labels import choose_reading
from attnviz.text.source import Wanted

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
    labels = [field for field in first if field.strip() and choose_reading([field], "", "") is not None]
    return not (labels or any(map(_looks_like_text, first)))


def _looks_like_text(field: str) -> bool:
    return len(field) > MAX_NAME_LENGTH or len(field.split()) > MAX_WORDS or field.rstrip().endswith((".", "!", "?"))
