"""Tables in a terminal, with every digit: columns where they fit, else a labelled paragraph per row.

Knows a table and the page that it is on, and nothing of maps or of what stands around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.renderers import numbers
from attnviz.renderers.terminal_screen import BOLD, DIM, Page, left, right
from attnviz.report import Table

MOST_QUERIES = 24  # of one head in the table of top keys
MOST_LONG = 16  # heads with a paragraph each


def listing(page: Page, table: Table, headed: bool = False) -> Iterator[Text]:
    """A line per row; where the screen is too narrow, a labelled paragraph per row.

    Cells of such a paragraph are named if `headed`, and those of a comparison always.
    """
    yield Text()
    if table.role in ("facts", "compared") and table.title:
        yield from page.prose(table.title, BOLD)
    cells = _cells(page, table, len(table.rows))
    headers = [(page.safe(column.header), page.safe(column.unit)) for column in table.columns]
    widths = [max((cell_len(row[n]) for row in cells), default=0) for n in range(len(headers))]
    headings = [_heading(*header, width) for header, width in zip(headers, widths, strict=True)]
    if grid := _grid(page, headings, numbers.numeric(table), cells):
        yield from grid
        return
    if table.role == "heads" and len(cells) > MOST_LONG and (grid := _numbers_only(page, table, headings, cells)):
        yield from grid
        return
    yield from _paragraphs(page, table, headers, cells, headed or table.role == "compared")


def top(page: Page, table: Table) -> Iterator[Text]:
    """The first queries, each with its strongest keys."""
    yield from page.prose(table.title, BOLD)
    shown = _cells(page, table, MOST_QUERIES)
    digits = max((len(row[0]) for row in shown), default=1)
    rows = [[f"{row[0]:>{digits}} {row[1]}", *row[2:]] for row in shown]
    n_keys = len(table.columns) // 2 - 1
    headings = [("", "query"), *(("", text) for rank in range(1, n_keys + 1) for text in (f"key {rank}", ""))]
    if grid := _grid(page, headings, [False, *[False, True] * n_keys], rows):
        yield from grid
    else:
        column = max((cell_len(row[0]) for row in rows), default=0)
        for row in rows:
            pairs = zip(row[1::2], row[2::2], strict=True)
            yield from page.labelled(row[0], [f"{key} {weight}" for key, weight in pairs if key], column)
    if more := len(table.rows) - len(shown):
        queries = "query" if more == 1 else "queries"
        yield from page.prose(f"… {more} more {queries}: --table full or --json shows all of them.", DIM)


def _cells(page: Page, table: Table, n_rows: int) -> list[list[str]]:
    """The first rows as they are written."""
    return [
        [page.safe(numbers.shown(cell, column)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows[:n_rows]
    ]


def _grid(
    page: Page, headings: Sequence[tuple[str, str]], numeric: Sequence[bool], cells: list[list[str]]
) -> list[Text]:
    """Columns under headings of two lines and a rule; nothing where the screen is too narrow for them."""
    widths = [max(map(cell_len, column)) for column in zip(*zip(*headings, strict=True), *cells, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > page.screen.width:
        return []

    def line(row: Sequence[str], style: Style | str = "") -> Text:
        parts = zip(row, widths, numeric, strict=True)
        aligned = (right(cell, width) if number else left(cell, width) for cell, width, number in parts)
        return Text("  ".join(aligned).rstrip(), style=style)

    upper, lower = ([heading[n] for heading in headings] for n in (0, 1))
    rule = line([page.dash * width for width in widths], DIM)
    return [*([line(upper, BOLD)] if any(upper) else []), line(lower, BOLD), rule, *map(line, cells)]


def _numbers_only(page: Page, table: Table, headings: Sequence[tuple[str, str]], cells: list[list[str]]) -> list[Text]:
    """The columns before the first that holds text; nothing where they do not fit either.

    Of very many heads a line each is worth more than which pair of tokens is the strongest.
    """
    numeric = numbers.numeric(table)
    n_numbers = numeric.index(False) if False in numeric else len(numeric)
    if n_numbers <= 2:  # layer and head
        return []
    grid = _grid(page, headings[:n_numbers], numeric[:n_numbers], [row[:n_numbers] for row in cells])
    named = ", ".join(column.header for column in table.columns[n_numbers:])
    said = page.prose(f"For want of room without {named}: a wider screen shows it.", DIM)
    return [*grid, *said] if grid else []


def _paragraphs(
    page: Page, table: Table, headers: Sequence[tuple[str, str]], cells: list[list[str]], headed: bool
) -> Iterator[Text]:
    """Each row as its label and its other cells; of a head, these are named by their columns."""
    n_labels = 2 if table.role == "heads" else 1
    labels = [_named(headers, row)[:n_labels] if n_labels == 2 else row[:1] for row in cells]
    column = max((cell_len(", ".join(label)) for label in labels), default=0)
    for label, row in zip(labels, cells, strict=True):
        items = _named(headers, row)[n_labels:] if n_labels == 2 or headed else row[1:]
        if headed:
            items = [item for item, cell in zip(items, row[n_labels:], strict=True) if cell]
        yield from page.labelled(", ".join(label), items, column)


def _named(headers: Sequence[tuple[str, str]], row: Sequence[str]) -> list[str]:
    """ "entropy 2.31 nats": a row of numbers in words."""
    units = (f" {unit}" if unit and unit not in header else "" for header, unit in headers)
    return [f"{header} {cell}{unit}" for (header, _), cell, unit in zip(headers, row, units, strict=True)]


def _heading(header: str, unit: str, width: int) -> tuple[str, str]:
    """A column's heading: on the lower of two lines where `width` holds it, else on both, as narrow as it gets."""
    words = [*header.split(), *([f"({unit})"] if unit and unit not in header else [])]
    if cell_len(" ".join(words)) <= width:
        return "", " ".join(words)
    splits = ((" ".join(words[:n]), " ".join(words[n:])) for n in range(len(words)))
    return min(splits, key=lambda split: max(map(cell_len, split)))
