"""Reports for machines: one JSON document of all texts, or the most of it that fits in 4 kB. Knows `report` only.

The document is `{"schema": 1, "texts": [...]}`, one `Report.data` per text, keys in the order of the data, always
a list. Pure ASCII: controls, bidi and every other script are written as escapes, so that a terminal and any locale can
take it. A lone surrogate, which strict parsers refuse even escaped, becomes U+FFFD. float32 is written with the fewest
digits that give the same float32 again. The same report gives the same bytes.

The brief one is for scripts and programs that read a command's result and have little room, such as a language model:
what was found, and the first rows of each table.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite

import numpy as np

from attnviz.display import replace_surrogates
from attnviz.renderers import cell_text
from attnviz.report import Cell, Column, Report, Table

SCHEMA = 1
SEVERAL = (list, tuple, Mapping, np.ndarray)


def chunks(reports: Iterable[Report]) -> Iterator[str]:
    """Yield the document bit by bit: never more than one row of weights as text at a time.

    Raises ValueError for a number that JSON does not have (NaN, infinity) and TypeError for an unknown type.
    """
    yield f'{{\n"schema": {SCHEMA},\n"texts": ['
    for number, report in enumerate(reports):
        yield ",\n" if number else "\n"
        yield from _write(report.data, 1)
    yield "\n]\n}\n"


def write_alone(report: Report) -> Iterator[str]:
    """Yield the document of a report on no single one of several texts: `{"schema": 1, ...}` with its data beside."""
    yield from _write({"schema": SCHEMA, **report.data}, 1)
    yield "\n"


def _write(value: object, depth: int) -> Iterator[str]:
    """Yield `value` as JSON: objects and arrays of arrays over several lines, a row of plain values on one."""
    is_row = isinstance(value, list | tuple) and not any(isinstance(each, SEVERAL) for each in value)
    if isinstance(value, np.ndarray) and value.ndim < 2:
        if value.dtype != np.float32:
            yield _plain(value.tolist())
            return
        if not np.isfinite(value).all():
            raise ValueError("a number that is not finite has no place in JSON")
        yield f"[{', '.join(value.astype('U16').tolist())}]"  # numpy writes the shortest digits of a float32
    elif isinstance(value, SEVERAL) and not is_row:
        yield "{" if isinstance(value, Mapping) else "["
        for number, each in enumerate(value):
            yield ("," if number else "") + "\n" + " " * depth
            if isinstance(value, Mapping):
                assert isinstance(each, str), "a key of an object is a string"
                yield f"{_plain(each)}: "
            yield from _write(value[each] if isinstance(value, Mapping) else each, depth + 1)
        yield "}" if isinstance(value, Mapping) else "]"
    else:
        yield _plain(value)


def _plain(value: object) -> str:
    """Write a value, or a list of values, on one line."""
    return json.dumps(_make_plain(value), allow_nan=False)


def _make_plain(value: object) -> object:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Sequence):
        return [_make_plain(inner) for inner in value]
    return value


MAX_BYTES = 4_096
MORE = "--json in the place of --print brief has every number"
# Reports, rows of a table, notes and characters of a text, from the most that may be kept to what fits in any case.
SIZES = (
    (20, 16, 12, 300),
    (10, 8, 8, 200),
    (5, 4, 5, 160),
    (3, 2, 3, 120),
    (1, 2, 2, 80),
    (1, 0, 1, 60),
)


def render_brief(reports: Iterable[Report]) -> str:
    """Return the reports as JSON of at most 4,096 bytes: the same keys however much had to be left out.

    `{"schema": 1, "reports": [{"title", "about", "notes", "tables": {name: {"columns", "rows", "of"}}, "of"}], "of",
    "more"}`. Each "of" counts what there is: rows of a table, notes and tables of a report, reports. Numbers have the
    digits of the printed table.
    """
    shown = list(reports)
    documents = (_write_brief(shown, *size) for size in SIZES)
    return next(document for document in documents if len(document) <= MAX_BYTES)


def _write_brief(reports: list[Report], n_reports: int, n_rows: int, n_notes: int, n_characters: int) -> str:
    def cut(text: str) -> str:
        return text if len(text) <= n_characters else text[: n_characters - 1] + "…"

    def write_cell(cell: Cell, column: Column) -> Cell:
        if isinstance(cell, float):
            return round(cell, column.digits) if isfinite(cell) else cell_text.write_cell(cell, column)
        return cut(cell) if isinstance(cell, str) else cell

    def write_table(table: Table) -> dict[str, object]:
        columns = [cut(cell_text.heading(column)) for column in table.columns]
        rows = [[write_cell(*pair) for pair in zip(row, table.columns, strict=True)] for row in table.rows[:n_rows]]
        return {"columns": columns, "rows": rows, "of": len(table.rows)}

    def write_report(report: Report) -> dict[str, object]:
        notes = sorted(report.notes, key=lambda note: not note.leads)
        tables = [table for table in report.tables if table.role != "top" and not table.is_detail]
        return {
            "title": cut(report.title),
            "about": cut(report.subtitle),
            "notes": [cut(note.text) for note in notes[:n_notes]],
            "tables": {table.name: write_table(table) for table in tables if n_rows},
            "of": {"notes": len(notes), "tables": len(tables)},
        }

    document = {"schema": 1, "reports": [write_report(report) for report in reports[:n_reports]]}
    return json.dumps({**document, "of": len(reports), "more": MORE}, ensure_ascii=True) + "\n"
