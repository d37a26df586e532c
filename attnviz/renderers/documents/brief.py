"""Reports in at most 4 kB of JSON: what was found, and the first rows of each table. Knows `report` only.

For scripts and programs that read a command's result and have little room, such as a language model. The whole of it
is what `json` writes.
"""

import json
from collections.abc import Iterable
from math import isfinite

from attnviz.renderers import cell_text
from attnviz.report import Cell, Column, Report, Table

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


def render(reports: Iterable[Report]) -> str:
    """Return the reports as JSON of at most 4,096 bytes: the same keys however much had to be left out.

    `{"schema": 1, "reports": [{"title", "about", "notes", "tables": {name: {"columns", "rows", "of"}}, "of"}], "of",
    "more"}`. Each "of" counts what there is: rows of a table, notes and tables of a report, reports. Numbers have the
    digits of the printed table.
    """
    shown = list(reports)
    documents = (_write(shown, *size) for size in SIZES)
    return next(document for document in documents if len(document) <= MAX_BYTES)


def _write(reports: list[Report], n_reports: int, n_rows: int, n_notes: int, n_characters: int) -> str:
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
