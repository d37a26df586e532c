"""Tables in a terminal, drawn by rich: where not all columns fit, several tables one below the other; no digit is cut.

Knows a table and the page that it is on, and nothing of maps or of what stands around it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from attnviz.display import pluralize
from attnviz.renderers import cell_text
from attnviz.renderers.terminal.screen import BOLD, DIM, ScreenLayout
from attnviz.report import Table

MAX_QUERIES = 24  # of one head in the table of top keys
MAX_DRAWN = 60  # rows of a table that rich draws
GAP = 2  # blanks between columns
MAX_ON_ONE_LINE = 8  # columns of the screen for a heading
MIN_WRAPPED = 12  # columns of the screen for a text that takes several lines, if no word is longer


def listing(page: ScreenLayout, table: Table, *, folds: bool = True) -> Iterator[Text]:
    """Yield a line per row under the table's title, or several where texts are wrapped.

    Where not all columns fit, the others follow below, or if it does not fold are left out.
    """
    yield Text()
    if table.title and table.role != "heads":
        yield from page.prose(table.title, BOLD)
    headers = [page.safe(cell_text.heading(column)) for column in table.columns]
    cells = [
        [page.safe(cell_text.write_cell(cell, column)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    numeric, full, least = cell_text.numeric(table), list[int](), list[int]()
    for n, header in enumerate(headers):
        heading, column = _halve(header), [row[n] for row in cells]
        full.append(max([heading, *map(cell_len, column)]))
        longest = max([0, *(cell_len(word) for cell in column for word in cell.split())])
        is_wrapped = table.role not in ("heads", "top") and not numeric[n]  # of others a row is one line
        wrapped = max(heading, MIN_WRAPPED, min(longest, page.screen.width // 2))
        least.append(min(full[n], wrapped) if is_wrapped else full[n])
    for number, group in enumerate(_fold(page, table, least)[: None if folds else 1]):
        grid = Grid(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False, header_style=BOLD)
        grid.border_style = DIM
        for n in group:
            width = full[n] if least[n] == full[n] else None
            grid.add_column(Text(headers[n]), justify="right" if numeric[n] else "left", width=width, overflow="fold")
        # rich takes two milliseconds a row: of a long table, each row of which is one line, the rest is only aligned.
        n_drawn = MAX_DRAWN if all(least[n] == full[n] for n in group) else len(cells)
        for row in cells[:n_drawn]:
            grid.add_row(*(Text(row[n]) for n in group))
        yield from () if number == 0 else (Text(),)
        yield from page.lay_out(grid, max(page.screen.width, _add_up(least, group)))
        for row in cells[n_drawn:]:
            blanks = {n: " " * (full[n] - cell_len(row[n])) for n in group}
            line = [blanks[n] + row[n] if numeric[n] else row[n] + blanks[n] for n in group]
            yield Text((" " * GAP).join(line).rstrip())


def top(page: ScreenLayout, table: Table) -> Iterator[Text]:
    """Yield the first queries, each with its strongest keys."""
    yield from listing(page, replace(table, rows=table.rows[:MAX_QUERIES]))
    if (more := len(table.rows) - MAX_QUERIES) > 0:
        yield from page.prose(
            f"… {more} more {pluralize(more, 'queries')}: --table full or --json shows all of them.", DIM
        )


def _halve(header: str) -> int:
    """Return the least width of a heading: a long one stands on two lines."""
    words = header.split() if cell_len(header) > MAX_ON_ONE_LINE else [header]
    splits = ((" ".join(words[:n]), " ".join(words[n:])) for n in range(len(words)))
    return min(max(map(cell_len, split)) for split in splits)


def _add_up(widths: Sequence[int], places: Sequence[int]) -> int:
    """Return the width of a table of these columns."""
    return sum(widths[n] for n in places) + GAP * (len(places) - 1)


def _fold(page: ScreenLayout, table: Table, widths: Sequence[int]) -> list[list[int]]:
    """Split a table into as many columns at a time as fit, at least one, each after those that say what a row is of."""
    n_labels = 2 if table.role == "top" or [column.header for column in table.columns[:2]] == ["layer", "head"] else 1
    groups = [[*range(n_labels)]]
    for n in range(n_labels, len(widths)):
        if len(groups[-1]) > n_labels and _add_up(widths, [*groups[-1], n]) > page.screen.width:
            groups.append([*range(n_labels)])
        groups[-1].append(n)
    return groups
