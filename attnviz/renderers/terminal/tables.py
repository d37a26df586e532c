"""Tables in a terminal, with every digit: columns where they fit, else a labelled paragraph per row.

Knows a table and the page that it is on, and nothing of maps or of what stands around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.renderers import numbers
from attnviz.renderers.terminal.screen import BOLD, DIM, ScreenLayout, pad_right, right
from attnviz.report import Table

MAX_QUERIES = 24  # of one head in the table of top keys
N_LABELS = 2  # columns that say which head it is


def listing(page: ScreenLayout, table: Table, headed: bool = False, compact: bool = False) -> Iterator[Text]:
    """A line per row; where the screen is too narrow, of heads as many tables as it takes, else a paragraph per row.

    Cells of such a paragraph are named if `headed`, of a comparison, and where several are numbers. A `compact` table
    does without minor columns, as many as it takes, and one of heads says so.
    """
    yield Text()
    if table.role in ("facts", "compared") and table.title:
        yield from page.prose(table.title, BOLD)
    cells = _cells(page, table, len(table.rows))
    headers = [(page.safe(column.header), page.safe(column.unit)) for column in table.columns]
    widths = [max((cell_len(row[n]) for row in cells), default=0) for n in range(len(headers))]
    headings = [_heading(*header, width) for header, width in zip(headers, widths, strict=True)]
    numeric = numbers.numeric(table)

    def grid_of(places: Sequence[int]) -> list[Text]:
        rows = [[row[n] for n in places] for row in cells]
        return _grid(page, [headings[n] for n in places], [numeric[n] for n in places], rows)

    places = list(range(len(headers)))
    minor = [n for n in places if compact and table.columns[n].minor]
    left_out: list[int] = []
    while not (grid := grid_of(places)) and minor:
        left_out.insert(0, minor.pop())
        places.remove(left_out[0])
    if grid := grid or (_fold(grid_of, places) if table.role == "heads" else []):
        yield from grid
        if left_out and table.role == "heads" and not table.more:
            names = ", ".join(headers[n][0] for n in left_out)
            yield from page.prose(f"No room to show {names}: --measure NAME shows one.", DIM)
    else:
        places = places if table.role != "heads" else [*range(len(headers))]
        several = table.role == "facts" and len(places) > 2  # numbers, of which none says what it is
        several = several and any(not isinstance(row[n], str) for row in table.rows for n in places)
        named = headed or table.role == "compared" or several
        rows = [[row[n] for n in places] for row in cells]
        yield from _paragraphs(page, table, [headers[n] for n in places], rows, named)


def top(page: ScreenLayout, table: Table) -> Iterator[Text]:
    """The first queries, each with its strongest keys."""
    yield from page.prose(table.title, BOLD)
    shown = _cells(page, table, MAX_QUERIES)
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
            yield from page.label_items(row[0], [f"{key} {weight}" for key, weight in pairs if key], column)
    if more := len(table.rows) - len(shown):
        queries = "query" if more == 1 else "queries"
        yield from page.prose(f"… {more} more {queries}: --table full or --json shows all of them.", DIM)


def _cells(page: ScreenLayout, table: Table, n_rows: int) -> list[list[str]]:
    return [
        [page.safe(numbers.write_cell(cell, column)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows[:n_rows]
    ]


def _grid(
    page: ScreenLayout, headings: Sequence[tuple[str, str]], numeric: Sequence[bool], cells: list[list[str]]
) -> list[Text]:
    """Columns under headings of two lines and a rule; nothing where the screen is too narrow for them."""
    widths = [max(map(cell_len, column)) for column in zip(*zip(*headings, strict=True), *cells, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > page.screen.width:
        return []

    def line(row: Sequence[str], style: Style | str = "") -> Text:
        parts = zip(row, widths, numeric, strict=True)
        aligned = (right(cell, width) if number else pad_right(cell, width) for cell, width, number in parts)
        return Text("  ".join(aligned).rstrip(), style=style)

    upper, lower = ([heading[n] for heading in headings] for n in (0, 1))
    rule = line([page.dash * width for width in widths], DIM)
    return [*([line(upper, BOLD)] if any(upper) else []), line(lower, BOLD), rule, *map(line, cells)]


def _fold(grid_of: Callable[[Sequence[int]], list[Text]], places: Sequence[int]) -> list[Text]:
    """One below the other, tables of as many columns as fit, each after the labels; nothing where one does not fit."""
    labels, others = list(places[:N_LABELS]), list(places[N_LABELS:])
    lines: list[Text] = []
    while others:
        fits = ((n, grid) for n in range(len(others), 0, -1) if (grid := grid_of([*labels, *others[:n]])))
        n_columns, grid = next(fits, (0, []))
        if not grid:
            return []
        lines += [*([Text()] if lines else []), *grid]
        others = others[n_columns:]
    return lines


def _paragraphs(
    page: ScreenLayout, table: Table, headers: Sequence[tuple[str, str]], cells: list[list[str]], headed: bool
) -> Iterator[Text]:
    """Each row as its label and its other cells; of a head, these are named by their columns."""
    n_labels = 2 if table.role == "heads" or [header for header, _ in headers[:2]] == ["layer", "head"] else 1
    labels = [_name_numbers(headers, row)[:n_labels] if n_labels == 2 else row[:1] for row in cells]
    column = max((cell_len(", ".join(label)) for label in labels), default=0)
    for label, row in zip(labels, cells, strict=True):
        items = _name_numbers(headers, row)[n_labels:] if n_labels == 2 or headed else row[1:]
        if headed:
            items = [item for item, cell in zip(items, row[n_labels:], strict=True) if cell]
        yield from page.label_items(", ".join(label), items, column)


def _name_numbers(headers: Sequence[tuple[str, str]], row: Sequence[str]) -> list[str]:
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
