"""Rows as CSV, the table that every spreadsheet reads. Knows reports and not what the cells mean.

Numbers are written with every digit, and what is missing (None, NaN) as nothing; a list is one cell, with "; "
between. Text is data: what cannot be seen is written out, as in a terminal, and what a spreadsheet would take for a
formula stands behind an apostrophe (CWE-1236).
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import isnan
from types import SimpleNamespace
from typing import Any

from attnviz.display import escape_for_spreadsheet
from attnviz.report import Cell, Report, Row

ENDING = "\r\n"  # told to the writer because it quotes exactly the line ends that it is told of


def lines(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield each row as one record that ends with a newline, quoted as in RFC 4180.

    A cell with a comma, a quote or a line end in it is quoted, so that a record may go over several lines.
    """
    echo: Any = SimpleNamespace(write=str)  # a file that hands back what is written to it
    writer = csv.writer(echo, lineterminator=ENDING)
    for row in rows:
        record: str = writer.writerow(map(_write_cell, row))
        yield record.removesuffix(ENDING) + "\n"


def _write_cell(cell: Any) -> Cell | None:
    if isinstance(cell, list):
        cell = "; ".join(map(str, cell))
    if isinstance(cell, str):
        return cell and _write_text(cell)
    return None if isinstance(cell, float) and isnan(cell) else cell


_write_text = lru_cache(maxsize=2**16)(escape_for_spreadsheet)  # labels of tokens come again and again


def document(results: Iterable[tuple[Report, Iterable[Sequence[Any]]]]) -> Iterator[str]:
    """Yield the rows of all results under one header; of a result without rows of its own the tables of its report."""
    header: Sequence[Any] = ()
    for report, rows in results:
        for number, row in enumerate(rows or tables_as_rows(report)):
            if number or row != header:
                yield from lines([row])
            header = header if number else row


def tables_as_rows(report: Report) -> Iterator[Row]:
    """Yield tables of the same columns under one header, each row after its table's name; else a row per cell."""
    tables = list(report.tables)
    headers = [tuple(f"{of.header} ({of.unit})" if of.unit else of.header for of in table.columns) for table in tables]
    if len(set(headers)) == 1:
        yield ("table", *headers[0])
        yield from ((table.name, *row) for table in tables for row in table.rows)
        return
    yield ("table", "row", "column", "value")
    for table, header in zip(tables, headers, strict=True):
        for number, row in enumerate(table.rows):
            for name, cell in zip(header, row, strict=True):
                if cell != "":
                    yield (table.name, number, name, cell)
