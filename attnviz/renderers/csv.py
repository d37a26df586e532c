"""Rows as CSV, the table that every spreadsheet reads. Knows neither reports nor what the cells mean.

Cells are written as they are: what a spreadsheet would take for a formula is the business of whoever makes the rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

ENDING = "\r\n"  # told to the writer because it quotes exactly the line ends that it is told of


def lines(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Each row as one record that ends with a newline, quoted as in RFC 4180.

    A cell with a comma, a quote or a line end in it is quoted, so that a record may go over several lines.
    """
    writer = csv.writer(_Echo(), lineterminator=ENDING)
    for row in rows:
        record: str = writer.writerow(row)
        yield record.removesuffix(ENDING) + "\n"


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text
