"""Reports as text for a terminal. The only renderer that knows rich; knows `report` only.

Digits are never cut: what does not fit the width is written in a longer form, at worst one number to a line. Tokens are
never read as markup. No control sequence reaches the terminal but our own colours, and without colour none.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import StringIO

import numpy as np
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from attnviz.renderers import numbers, shades
from attnviz.report import Block, Column, Formula, Heatmap, Note, Report, Scale, Section, Table
from attnviz.specs import TableKind

MOST_QUERIES = 24  # of one head in the table of top keys
MOST_LONG = 16  # heads with a paragraph each
LEVELS = 64  # of colour: more cannot be told apart
WEIGHT = Column("weight")
# The last door: a view has written these out already, another report may not have.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
STAND_INS = {
    "→": "->",
    "…": "...",
    "·": "|",
    "×": "x",
    "─": "-",
    "∞": "inf",
    "Σ": "sum",
    "√": "sqrt ",
    "⋅": ".",
    "∅": "(empty)",
    "⏎": r"\n",
    "⇥": r"\t",
    "␣": r"\x20",
}
BOLD, DIM = Style(bold=True), Style(dim=True)


@dataclass(frozen=True)
class Screen:
    """What the text is for: how many columns, which characters, and whether colour control sequences are welcome."""

    width: int = 80
    colour: bool = False
    encoding: str = "utf-8"
    true_colour: bool = False  # 24 bits instead of 256 colours


def render(report: Report, table: TableKind, screen: Screen) -> str:
    """The whole report as text that ends with a newline; nothing for "none"."""
    return "".join(lines(report, table, screen))


def lines(report: Report, table: TableKind, screen: Screen) -> Iterator[str]:
    """The report line by line, so that large maps need not be held as text."""
    if table == "none":
        return
    page = _Page(screen, report.scale)
    for text in page.report(report, table):
        yield page.out(text)


class _Page:
    """One screen and one scale. Every method that shows something gives its lines."""

    def __init__(self, screen: Screen, scale: Scale) -> None:
        self.screen = screen
        self.scale = scale
        self.encoding = _known(screen.encoding)
        self.signs = str.maketrans({sign: plain for sign, plain in STAND_INS.items() if not self.has(sign)})
        self.ramp = shades.BLOCKS if self.has(shades.BLOCKS) else shades.ASCII
        self.forbidden, self.dot, self.dash = self.safe("×"), self.safe(" · "), self.safe("─")

    # Characters and lines

    def has(self, text: str) -> bool:
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def safe(self, text: str) -> str:
        """Only what the screen can show; the rest is written out."""
        text = HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text).translate(self.signs)
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def out(self, text: Text) -> str:
        if not self.screen.colour or not (text.style or text.spans):
            return text.plain.rstrip() + "\n"
        with self.console.capture() as capture:
            self.console.print(text, soft_wrap=True)
        return capture.get()

    @cached_property
    def console(self) -> Console:
        """Everything is given here, so that no environment variable has a say."""
        return Console(
            file=StringIO(),
            width=self.screen.width,
            height=25,
            force_terminal=True,
            color_system="truecolor",
            no_color=False,
            legacy_windows=False,
            force_jupyter=False,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def prose(self, text: str, style: Style | str = "") -> Iterator[Text]:
        return (Text(line, style=style) for line in _filled(self.safe(text).split(" "), self.screen.width, " "))

    def labelled(self, label: str, items: Sequence[str], column: int) -> Iterator[Text]:
        """`label`, padded to `column` cells, and beside it the items; below it where one of them is too wide."""
        room = self.screen.width - column - 2
        if max(map(cell_len, items), default=0) <= room:
            for row in _filled(items, room, self.dot):
                yield Text(f"{_left(label, column)}  {row}".rstrip())
                label = ""
        else:
            yield Text(label)
            for row in _filled(items, self.screen.width - 2, self.dot):
                yield Text(f"  {row}")

    def report(self, report: Report, kind: TableKind) -> Iterator[Text]:
        yield from self.prose(report.title, BOLD)
        yield from self.prose(report.subtitle)
        yield from self.maps(report, kind)
        if any(isinstance(block, Formula | Section) for block in report.blocks):
            yield from self.walk(report.blocks)
            return
        for table in report.tables:  # last, because the end of a long output is what stays on the screen
            if table.role != "top":
                yield from self.listing(table)
        for number, note in enumerate(report.notes):
            yield from () if number else (Text(),)
            yield from self.prose(note.text)

    # What is read from top to bottom

    def walk(self, blocks: Sequence[Block]) -> Iterator[Text]:
        """Headings, formulas, tables and notes in their order; maps stand above already."""
        for block in blocks:
            match block:
                case Section(title=title, level=level):
                    yield Text()
                    yield from self.prose(title, BOLD)
                    if level == 1:
                        yield Text(self.dash * min(cell_len(self.safe(title)), self.screen.width), style=DIM)
                case Formula(plain=plain):
                    yield Text()
                    for line in plain.split("\n"):
                        yield from self.indented(line)
                case Table() if block.role != "top":
                    yield from self.listing(block, headed=True)
                case Note(text=text):
                    yield Text()
                    yield from self.prose(text)

    def indented(self, line: str) -> Iterator[Text]:
        """A line of a formula; where it is too wide, what follows stands further to the right."""
        words = self.safe(line).split(" ")
        for number, row in enumerate(_filled(words, self.screen.width - 6, " ")):
            yield Text(("  " if number == 0 else "      ") + row)

    # Tables

    def listing(self, table: Table, headed: bool = False) -> Iterator[Text]:
        """A line per row; where the screen is too narrow, a labelled paragraph per row.

        Cells of such a paragraph are named if `headed`, and those of a comparison always.
        """
        yield Text()
        if table.role in ("facts", "compared") and table.title:
            yield from self.prose(table.title, BOLD)
        cells = [
            [self.cell(cell, column) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows
        ]
        headers = [(self.safe(column.header), self.safe(column.unit)) for column in table.columns]
        widths = [max((cell_len(row[n]) for row in cells), default=0) for n in range(len(headers))]
        headings = [_heading(*header, width) for header, width in zip(headers, widths, strict=True)]
        if grid := self.grid(headings, numbers.numeric(table), cells):
            yield from grid
            return
        if table.role == "heads" and len(cells) > MOST_LONG and (grid := self.numbers_only(table, headings, cells)):
            yield from grid
            return
        headed = headed or table.role == "compared"
        n_labels = 2 if table.role == "heads" else 1
        labels = [self.items(headers, row)[:n_labels] if n_labels == 2 else row[:1] for row in cells]
        column = max((cell_len(", ".join(label)) for label in labels), default=0)
        for label, row in zip(labels, cells, strict=True):
            items = self.items(headers, row)[n_labels:] if n_labels == 2 or headed else row[1:]
            if headed:
                items = [item for item, cell in zip(items, row[n_labels:], strict=True) if cell]
            yield from self.labelled(", ".join(label), items, column)

    def numbers_only(self, table: Table, headings: Sequence[tuple[str, str]], cells: list[list[str]]) -> list[Text]:
        """The columns before the first that holds text; nothing where they do not fit either.

        Of very many heads a line each is worth more than which pair of tokens is the strongest.
        """
        numeric = numbers.numeric(table)
        n_numbers = numeric.index(False) if False in numeric else len(numeric)
        if n_numbers <= 2:  # layer and head
            return []
        grid = self.grid(headings[:n_numbers], numeric[:n_numbers], [row[:n_numbers] for row in cells])
        named = ", ".join(column.header for column in table.columns[n_numbers:])
        said = self.prose(f"For want of room without {named}: a wider screen shows it.", DIM)
        return [*grid, *said] if grid else []

    def items(self, headers: Sequence[tuple[str, str]], row: Sequence[str]) -> list[str]:
        """ "entropy 2.31 nats": a row of numbers in words."""
        units = (f" {unit}" if unit and unit not in header else "" for header, unit in headers)
        return [f"{header} {cell}{unit}" for (header, _), cell, unit in zip(headers, row, units, strict=True)]

    def cell(self, cell: str | int | float, column: Column) -> str:
        return self.safe(numbers.shown(cell, column))

    def grid(self, headings: Sequence[tuple[str, str]], numeric: Sequence[bool], cells: list[list[str]]) -> list[Text]:
        """Columns under headings of two lines and a rule; nothing where the screen is too narrow for them."""
        widths = [max(map(cell_len, column)) for column in zip(*zip(*headings, strict=True), *cells, strict=True)]
        if sum(widths) + 2 * (len(widths) - 1) > self.screen.width:
            return []

        def line(row: Sequence[str], style: Style | str = "") -> Text:
            parts = zip(row, widths, numeric, strict=True)
            aligned = (_right(cell, width) if number else _left(cell, width) for cell, width, number in parts)
            return Text("  ".join(aligned).rstrip(), style=style)

        upper, lower = ([heading[n] for heading in headings] for n in (0, 1))
        rule = line([self.dash * width for width in widths], DIM)
        return [*([line(upper, BOLD)] if any(upper) else []), line(lower, BOLD), rule, *map(line, cells)]

    def top(self, table: Table) -> Iterator[Text]:
        """The first queries, each with its strongest keys."""
        yield from self.prose(table.title, BOLD)
        shown = [
            [self.cell(cell, column) for cell, column in zip(row, table.columns, strict=True)]
            for row in table.rows[:MOST_QUERIES]
        ]
        digits = max((len(row[0]) for row in shown), default=1)
        rows = [[f"{row[0]:>{digits}} {row[1]}", *row[2:]] for row in shown]
        n_keys = len(table.columns) // 2 - 1
        headings = [("", "query"), *(("", text) for rank in range(1, n_keys + 1) for text in (f"key {rank}", ""))]
        if grid := self.grid(headings, [False, *[False, True] * n_keys], rows):
            yield from grid
        else:
            column = max((cell_len(row[0]) for row in rows), default=0)
            for row in rows:
                pairs = zip(row[1::2], row[2::2], strict=True)
                yield from self.labelled(row[0], [f"{key} {weight}" for key, weight in pairs if key], column)
        if more := len(table.rows) - len(shown):
            queries = "query" if more == 1 else "queries"
            yield from self.prose(f"… {more} more {queries}: --table full or --json shows all of them.", DIM)

    # Maps

    def maps(self, report: Report, kind: TableKind) -> Iterator[Text]:
        """Every head by itself: shaded, with all its weights, or its strongest keys."""
        tops = {table.name: table for table in report.tables if table.role == "top"}
        pictures = [] if kind == "top" else [block for block in report.blocks if isinstance(block, Heatmap)]
        if not pictures:
            for table in tops.values():
                yield Text()
                yield from self.top(table)
            return
        yield Text()
        yield from self.legend(pictures, kind)
        for picture in pictures:
            yield Text()
            top = tops.get(f"{picture.name}-top")
            width = self.cell_width(picture, kind)
            if not width and kind == "heatmap" and top:
                yield from self.top(top)
                continue
            yield from self.prose(picture.title, BOLD)
            if picture.scale and width and (kind == "heatmap" or self.screen.colour):
                yield from self.bar(picture.scale)
            yield from self.matrix(picture, kind, width) if width else self.long_form(picture)

    def legend(self, pictures: Sequence[Heatmap], kind: TableKind) -> Iterator[Text]:
        """How to read the maps, once for all of them."""
        fitting = [picture for picture in pictures if self.cell_width(picture, kind)]
        closed = self.forbidden if not all(bool(picture.allowed.all()) for picture in pictures) else ""
        if len(fitting) < len(pictures):
            widest = max(len(picture.columns) for picture in pictures)
            instead = "the strongest keys of each query" if kind == "heatmap" else "each query with all its keys"
            yield from self.prose(
                f"A map of {widest} keys does not fit {self.screen.width} columns; {instead} instead."
            )
            if closed and kind == "full":
                yield from self.prose("A key that is not listed may not be attended to.")
        if fitting:
            if kind == "heatmap" or self.screen.colour:
                yield from self.bar(self.scale)
            axes = f"rows: {fitting[0].row_axis} · columns: {fitting[0].column_axis}, by position"
            yield from self.prose(axes + (f" · {closed} may not be attended to" if closed else ""))

    def bar(self, scale: Scale) -> Iterator[Text]:
        """The scale from end to end, and what it says."""
        low, high = f"{scale.low:.3g}", f"{scale.high:.3g}"
        bar = Text(f"{low} ")
        if self.screen.colour:
            for step in range(16):
                bar.append(" ", self.shade(step / 15))
        else:
            bar.append(f"[{self.ramp}]")
        bar.append(f" {high}")
        label = list(self.prose(scale.label))
        if len(label) == 1 and bar.cell_len + 2 + label[0].cell_len <= self.screen.width:
            yield Text.assemble(bar, "  ", label[0])
        else:
            yield from (bar, *label)

    def cell_width(self, picture: Heatmap, kind: TableKind) -> int:
        """How many columns each cell takes, as many as fit; 0 where the map is too wide for the screen."""
        room = self.screen.width - max(map(cell_len, self.row_labels(picture))) - 2
        if kind == "full":
            widths = [max(map(len, _digits(picture))) + 1]
        else:
            short = bool((picture.values >= 0).all() and (picture.values < 1.005).all())
            widths = [*((4, 3) if self.screen.colour else (4,)), 2] if short else [2]
        return next((width for width in widths if width * len(picture.columns) <= room), 0)

    def row_labels(self, picture: Heatmap) -> list[str]:
        digits = len(str(max(picture.row_positions)))
        numbered = zip(picture.row_positions, picture.rows, strict=True)
        return [f"{position:>{digits}} {self.safe(label)}" for position, label in numbered]

    def matrix(self, picture: Heatmap, kind: TableKind, width: int) -> Iterator[Text]:
        """One row per query, shaded, with as many digits as the cells hold."""
        labels = self.row_labels(picture)
        column = max(map(cell_len, labels))
        yield Text(" " * (column + 1) + _positions(picture.column_positions, width), style=DIM)
        places = shades.places(picture.values, picture.scale or self.scale)
        edge = "|" if width == 2 and not self.screen.colour else " "
        for label, values, allowed, row in zip(labels, picture.values, picture.allowed, places, strict=True):
            line = Text(_left(label, column) + edge)
            for value, is_allowed, place in zip(values.tolist(), allowed.tolist(), row.tolist(), strict=True):
                if not is_allowed:
                    line.append(self.forbidden.rjust(width), DIM)
                elif self.screen.colour:
                    digits = _weight(value) if kind == "full" else _short(value) if width > 2 else ""
                    line.append(digits.rjust(width), self.shade(place))
                elif kind == "full":
                    line.append(_weight(value).rjust(width))
                else:
                    sign = shades.character(place, self.ramp)
                    line.append(sign + _short(value) if width == 4 else sign * 2)
            yield line.append(edge.strip())

    def shade(self, place: float) -> Style:
        return _shade(round(place * LEVELS), self.screen.true_colour)

    def long_form(self, picture: Heatmap) -> Iterator[Text]:
        """Each query, then the keys that it may attend to with their weights, in columns where they fit."""
        numbered = zip(picture.column_positions, picture.columns, strict=True)
        keys = [f"{position} {self.safe(label)}" for position, label in numbered]
        widest = max(map(cell_len, keys)) + 1 + max(map(len, _digits(picture)))
        for label, values, allowed in zip(self.row_labels(picture), picture.values, picture.allowed, strict=True):
            yield Text(label)
            items = (
                _left(keys[key], widest - len(weight)) + weight
                for key, weight in enumerate(map(_weight, values.tolist()))
                if allowed[key]
            )
            yield from (Text(f"  {row}") for row in _filled(items, self.screen.width - 2, "   "))


@lru_cache(maxsize=4 * LEVELS)
def _shade(level: int, true_colour: bool) -> Style:
    """A cell's background, and digits in black or white, whichever can be read on it."""
    place = level / LEVELS
    background = Color.from_rgb(*shades.colour(place)) if true_colour else Color.from_ansi(shades.colour_256(place))
    red, green, blue = background.get_truecolor()
    light = shades.ink((red, green, blue)) == shades.WHITE
    ink = Color.from_ansi(231 if light else 16)  # white and black that no theme has changed
    return Style(color=ink, bgcolor=background)


def _filled(items: Iterable[str], width: int, gap: str) -> Iterator[str]:
    """As many items to a line as fit; an item that is wider than a line has one to itself and is not cut."""
    line: list[str] = []
    taken = 0
    for item in items:
        wanted = cell_len(item)
        if line and taken + len(gap) + wanted > width:
            yield gap.join(line)
            line, taken = [], 0
        taken += wanted + (len(gap) if line else 0)
        line.append(item)
    yield gap.join(line)


def _heading(header: str, unit: str, width: int) -> tuple[str, str]:
    """A column's heading: on the lower of two lines where `width` holds it, else on both, as narrow as it gets."""
    words = [*header.split(), *([f"({unit})"] if unit and unit not in header else [])]
    if cell_len(" ".join(words)) <= width:
        return "", " ".join(words)
    splits = ((" ".join(words[:n]), " ".join(words[n:])) for n in range(len(words)))
    return min(splits, key=lambda split: max(map(cell_len, split)))


def _positions(positions: Sequence[int], width: int) -> str:
    """Positions above their columns, right-aligned; every fifth where they would touch, and so on."""
    every = next(n for n in (1, 5, 10, 50) if n * width > len(str(max(positions))))
    line = ""
    for place, position in enumerate(positions):
        written = str(position)
        if position % every == 0 and (place + 1) * width - len(written) >= len(line) + (len(line) > 0):
            line = line.ljust((place + 1) * width - len(written)) + written
    return line


def _digits(picture: Heatmap) -> list[str]:
    """The narrowest and the widest that a weight of this map can look."""
    return [_weight(float(np.min(picture.values))), _weight(float(np.max(picture.values)))]


def _weight(value: float) -> str:
    return f"{value:.{WEIGHT.digits}f}"


def _short(value: float) -> str:
    """ ".12", and "1.0" for what rounds to 1."""
    digits = f"{value:.2f}"
    return digits[1:] if digits.startswith("0") else "1.0"


def _left(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _known(encoding: str) -> str:
    """`encoding`, or ASCII where Python does not know it."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        return "ascii"
    return encoding
