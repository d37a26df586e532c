"""Reports as text for a terminal: what stands in which order, and tables, drawn by rich. Knows `report` only.

Digits are never cut: what does not fit the width is written in a longer form, at worst one number to a line, and where
not all columns of a table fit, several tables stand one below the other. Tokens are never read as markup. No control
sequence reaches the terminal but our own colours, and without colour none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from attnviz.display import pluralize
from attnviz.renderers import cell_text
from attnviz.renderers.terminal.maps import cell_width, legend, long_form, matrix, shade_text
from attnviz.renderers.terminal.screen import BOLD, DIM, Screen, ScreenLayout
from attnviz.report import Heatmap, Note, Report, Table
from attnviz.specs import TableKind

MAX_QUERIES = 24  # of one head in the table of top keys
MAX_DRAWN = 60  # rows of a table that rich draws
GAP = 2  # blanks between columns
MAX_ON_ONE_LINE = 8  # columns of the screen for a heading
MIN_WRAPPED = 12  # columns of the screen for a text that takes several lines, if no word is longer


def listing(page: ScreenLayout, table: Table) -> Iterator[Text]:
    """Yield a line per row under the table's title, or several where texts are wrapped.

    Where not all columns fit, the others follow below.
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
    for number, group in enumerate(_fold(page, table, least)):
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
        yield from page.say(
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


MIN_ROWS, MAX_ROWS = 5, 10  # of the table of an answer

__all__ = ["Screen", "lines"]


def lines(report: Report, table: TableKind, screen: Screen) -> Iterator[str]:
    """Yield the report line by line, each with its newline, so that large maps need not be held as text."""
    page = ScreenLayout(screen)
    for text in _first_screen(page, report) if table == "answer" else _report(page, report, table, [*report.notes]):
        yield page.out(text)


def _first_screen(page: ScreenLayout, report: Report) -> list[Text]:
    """Fit the answer on as many lines as it may take: the last rows of its table are left out first, then notes.

    How many is said of the usual width: a narrow screen takes more of them.
    """
    notes = sorted((note for note in report.notes if not note.is_detail), key=lambda note: not note.leads)
    n_rows, n_notes = MAX_ROWS, len(notes)
    while True:
        found = [*_report(page, report, "answer", notes[:n_notes], n_rows)]
        if left := len(notes) - n_notes:
            found += page.say(f"{left} more {pluralize(left, 'notes')}: --print markdown.", DIM)
        over = len(found) - round((report.max_lines or len(found)) * max(1, Screen.width / page.screen.width))
        if over <= 0 or not (n_notes or n_rows > MIN_ROWS):
            return found
        n_rows, n_notes = max(MIN_ROWS, n_rows - over), n_notes - (n_rows == MIN_ROWS)


def _report(
    page: ScreenLayout, report: Report, kind: TableKind, notes: Sequence[Note], n_rows: int = MAX_ROWS
) -> Iterator[Text]:
    """Yield everything that a kind shows, with these notes; of the table of an answer `n_rows`."""
    yield from page.prose(report.title, BOLD)
    yield from page.prose(report.subtitle)
    answers = [table for table in report.tables if table.role == "answer"]
    if kind in ("answer", "full") or not answers:
        yield from _notes(page, [note for note in notes if note.leads])
    if kind not in ("answer", "heads"):
        yield from _maps(page, report, kind)
    # last, because the end of a long output is what stays on the screen
    for table in answers if answers and kind == "answer" else report.listed:
        if kind == "full" or not table.is_detail:
            short = table if kind == "full" else _shorten(table, kind, n_rows)
            yield from listing(page, short)
            yield from page.prose(table.more, DIM) if kind != "full" and table.more else ()
    for picture in report.focus if kind in ("answer", "heads") else ():
        yield Text()
        yield from shade_text(page, picture, picture.scale or report.scale)
    yield from _notes(page, [note for note in notes if not note.leads])


def _notes(page: ScreenLayout, notes: Sequence[Note]) -> Iterator[Text]:
    """Yield notes after an empty line; nothing without any."""
    for number, note in enumerate(notes):
        yield from () if number else (Text(),)
        yield from page.prose(note.text)


def _shorten(table: Table, kind: TableKind, n_rows: int) -> Table:
    """Leave only the rows that are listed where not all are, and of an answer no minor columns."""
    kept = [n for n, column in enumerate(table.columns) if kind != "answer" or not column.minor]
    rows = [table.rows[n] for n in table.first] if table.first else table.rows
    rows = rows[:n_rows] if table.role == "answer" else rows
    columns = tuple(table.columns[n] for n in kept)
    return replace(table, columns=columns, rows=tuple(tuple(row[n] for n in kept) for row in rows), links=())


def _maps(page: ScreenLayout, report: Report, kind: TableKind) -> Iterator[Text]:
    """Yield every head by itself: shaded, with all its weights, or its strongest keys."""
    tops = {table.name: table for table in report.tables if table.role == "top"}
    drawn = [block for block in report.blocks if isinstance(block, Heatmap)]
    if report.panels:  # of which not all are listed
        several = {each.name: each for each in (*report.panels, *drawn)}
        drawn = [each for name, each in several.items() if f"{name}-top" in tops]
    pictures = [] if kind == "top" else drawn
    if not pictures:
        for table in tops.values():
            yield from top(page, table)
        return
    yield Text()
    yield from legend(page, pictures, kind, report.scale)
    for picture in pictures:
        instead, width = tops.get(f"{picture.name}-top"), cell_width(page, picture, kind)
        if kind == "heatmap" and instead and not width:
            yield from top(page, instead)
        else:
            yield from (Text(), *page.prose(picture.title, BOLD))
            yield from matrix(page, picture, kind, width, report.scale) if width else long_form(page, picture)
