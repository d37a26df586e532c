"""Reports as text for a terminal: what stands in which order. The only renderer that knows rich; knows `report` only.

Digits are never cut: what does not fit the width is written in a longer form, at worst one number to a line. Tokens are
never read as markup. No control sequence reaches the terminal but our own colours, and without colour none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from attnviz.display import pluralize
from attnviz.renderers.terminal.maps import cell_width, legend, long_form, matrix, shade_text
from attnviz.renderers.terminal.screen import BOLD, DIM, Screen, ScreenLayout
from attnviz.renderers.terminal.tables import listing, top
from attnviz.report import Heatmap, Note, Report, Table
from attnviz.specs import TableKind

MIN_ROWS, MAX_ROWS = 5, 10  # of the table of an answer

__all__ = ["Screen", "lines", "render"]


def render(report: Report, table: TableKind, screen: Screen) -> str:
    """Render the whole report as text that ends with a newline; nothing for "none"."""
    return "".join(lines(report, table, screen))


def lines(report: Report, table: TableKind, screen: Screen) -> Iterator[str]:
    """Yield the report line by line, so that large maps need not be held as text."""
    if table == "none":
        return
    page = ScreenLayout(screen)
    for text in _first_screen(page, report) if table == "answer" else _report(page, report, table, [*report.notes]):
        yield page.out(text)


def _first_screen(page: ScreenLayout, report: Report) -> list[Text]:
    """Fit the answer on as many lines as it may take: the last rows of its table are left out first, then notes."""
    notes = sorted((note for note in report.notes if not note.is_detail), key=lambda note: not note.leads)
    n_rows, n_notes = MAX_ROWS, len(notes)
    while True:
        found = [*_report(page, report, "answer", notes[:n_notes], n_rows)]
        if left := len(notes) - n_notes:
            found += page.prose(f"{left} more {pluralize(left, 'notes')}: --print markdown.", DIM)
        over = len(found) - (report.max_lines or len(found))
        if over <= 0 or not (n_notes or n_rows > MIN_ROWS):
            return found
        n_rows, n_notes = max(MIN_ROWS, n_rows - over), n_notes - (n_rows == MIN_ROWS)


def _report(
    page: ScreenLayout, report: Report, kind: TableKind, notes: Sequence[Note], n_rows: int = MAX_ROWS
) -> Iterator[Text]:
    """Yield everything that a kind shows, with these notes; of the table of an answer `n_rows`."""
    yield from page.prose(report.title, BOLD)
    yield from page.prose(report.subtitle)
    if kind not in ("answer", "heads"):
        yield from _maps(page, report, kind)
    answers = [table for table in report.tables if table.role == "answer"]
    if kind == "answer" or not answers:
        yield from _notes(page, [note for note in notes if note.leads])
    answers = answers if kind == "answer" else []
    for table in answers or report.listed:  # last, because the end of a long output is what stays on the screen
        if kind == "full" or not table.is_detail:
            short = table if kind == "full" else _shorten(table, kind, n_rows)
            yield from listing(page, short, folds=kind != "answer")
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
