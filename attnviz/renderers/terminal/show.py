"""Reports as text for a terminal: what stands in which order. The only renderer that knows rich; knows `report` only.

Digits are never cut: what does not fit the width is written in a longer form, at worst one number to a line. Tokens are
never read as markup. No control sequence reaches the terminal but our own colours, and without colour none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from attnviz.renderers.terminal.maps import cell_width, legend, long_form, matrix, shade_text
from attnviz.renderers.terminal.screen import BOLD, DIM, Screen, ScreenLayout
from attnviz.renderers.terminal.tables import listing, top
from attnviz.report import Heatmap, Note, Report, Scale, Table
from attnviz.specs import TableKind

GAP = 4  # blanks between two maps
MIN_HALF_WIDTH = 78  # of a map beside another, which takes 160 columns

__all__ = ["Screen", "lines", "render"]


def render(report: Report, table: TableKind, screen: Screen) -> str:
    """The whole report as text that ends with a newline; nothing for "none"."""
    return "".join(lines(report, table, screen))


def lines(report: Report, table: TableKind, screen: Screen) -> Iterator[str]:
    """The report line by line, so that large maps need not be held as text."""
    if table == "none":
        return
    page = ScreenLayout(screen)
    for text in _report(page, report, table):
        yield page.out(text)


def _report(page: ScreenLayout, report: Report, kind: TableKind) -> Iterator[Text]:
    yield from page.prose(report.title, BOLD)
    yield from page.prose(report.subtitle)
    if kind not in ("answer", "heads"):
        yield from _maps(page, report, kind)
    answers = [table for table in report.tables if table.role == "answer"]
    notes = [note for note in report.notes if kind != "answer" or not note.is_detail]
    if kind == "answer" or not answers:
        yield from _notes(page, [note for note in notes if note.leads])
    answers = answers if kind == "answer" else []
    for table in answers or report.listed:  # last, because the end of a long output is what stays on the screen
        if kind == "full" or not table.is_detail:
            yield from listing(page, table if kind == "full" else _shorten(table, kind))
            is_short = kind != "full" and (bool(table.first) or kind == "answer")
            yield from page.prose(table.more, DIM) if is_short and table.more else ()
    for picture in report.focus if kind in ("answer", "heads") else ():
        yield Text()
        yield from shade_text(page, picture, picture.scale or report.scale)
    yield from _notes(page, [note for note in notes if not note.leads])


def _notes(page: ScreenLayout, notes: Sequence[Note]) -> Iterator[Text]:
    """Notes after an empty line; nothing without any."""
    for number, note in enumerate(notes):
        yield from () if number else (Text(),)
        yield from page.prose(note.text)


def _shorten(table: Table, kind: TableKind) -> Table:
    """Leave only the rows that are listed where not all are, and of an answer no minor columns."""
    kept = [n for n, column in enumerate(table.columns) if kind != "answer" or not column.minor]
    rows = [table.rows[n] for n in table.first] if table.first else table.rows
    columns = tuple(table.columns[n] for n in kept)
    return replace(table, columns=columns, rows=tuple(tuple(row[n] for n in kept) for row in rows), links=())


def _maps(page: ScreenLayout, report: Report, kind: TableKind) -> Iterator[Text]:
    """Every head by itself: shaded, with all its weights, or its strongest keys."""
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
    half = ScreenLayout(replace(page.screen, width=(page.screen.width - GAP) // 2))
    is_wide = len(pictures) > 1 and half.screen.width >= MIN_HALF_WIDTH
    if is_wide and all(cell_width(half, picture, kind) for picture in pictures):
        for pair in zip_longest(pictures[::2], pictures[1::2]):
            beside = Grid.grid(*(Column(width=half.screen.width) for _ in pair), padding=(0, GAP, 0, 0))
            beside.add_row(*(Text("\n").join(_map(half, each, kind, report.scale)) for each in pair if each))
            yield from (Text(), *page.lay_out(beside, page.screen.width))
        return
    for picture in pictures:
        instead = tops.get(f"{picture.name}-top")
        if kind == "heatmap" and instead and not cell_width(page, picture, kind):
            yield from top(page, instead)
        else:
            yield from (Text(), *_map(page, picture, kind, report.scale))


def _map(page: ScreenLayout, picture: Heatmap, kind: TableKind, scale: Scale) -> Iterator[Text]:
    """One map under its title."""
    yield from page.prose(picture.title, BOLD)
    width = cell_width(page, picture, kind)
    yield from matrix(page, picture, kind, width, scale) if width else long_form(page, picture)
