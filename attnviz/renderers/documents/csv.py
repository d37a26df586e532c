"""Rows as CSV, the table that every spreadsheet reads. Knows neither reports nor what the cells mean.

Cells are written as they are: what a spreadsheet would take for a formula is the business of whoever makes the rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from attnviz.display import escape_for_spreadsheet
from attnviz.report import Column, Report, Row

ENDING = "\r\n"  # told to the writer because it quotes exactly the line ends that it is told of


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """Each row as one record that ends with a newline, quoted as in RFC 4180.

    A cell with a comma, a quote or a line end in it is quoted, so that a record may go over several lines.
    """
    writer = csv.writer(_Echo(), lineterminator=ENDING)
    for row in rows:
        record: str = writer.writerow(row)
        yield record.removesuffix(ENDING) + "\n"


def document(results: Iterable[tuple[Report, Iterable[Row]]]) -> Iterator[str]:
    """The rows of all results under one header; of a result without rows of its own the tables of its report."""
    header: Row = ()
    for report, rows in results:
        for number, row in enumerate(rows or tables_as_rows(report)):
            if number or row != header:
                yield from lines([row])
            header = header if number else row


def tables_as_rows(report: Report) -> Iterator[Row]:
    """Tables of the same columns under one header, each row behind its table's name; else a row for each cell.

    A cell that a spreadsheet would take for a formula is written behind an apostrophe (CWE-1236).
    """
    tables = list(report.tables)
    headers = [tuple(_inert(_header(column)) for column in table.columns) for table in tables]
    if len(set(headers)) == 1:
        yield ("table", *headers[0])
        yield from ((table.name, *map(_inert, row)) for table in tables for row in table.rows)
        return
    yield ("table", "row", "column", "value")
    for table, header in zip(tables, headers, strict=True):
        for number, row in enumerate(table.rows):
            for name, cell in zip(header, row, strict=True):
                if cell != "":
                    yield (table.name, number, name, _inert(cell))


def _header(column: Column) -> str:
    return f"{column.header} ({column.unit})" if column.unit else column.header


def _inert(cell: str | int | float) -> str | int | float:
    return escape_for_spreadsheet(cell) if isinstance(cell, str) else cell


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text
