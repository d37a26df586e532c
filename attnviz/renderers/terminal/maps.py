"""Maps in a terminal: shaded, with all their weights, or as each query's list of keys where they are too wide.

Knows a map, its scale and the page that it is on, and nothing of tables.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.style import Style
from rich.text import Text

from attnviz.display import format_count
from attnviz.renderers import shades
from attnviz.renderers.terminal.screen import DIM, ScreenLayout, fill_lines, pad_right
from attnviz.report import Column, Heatmap, Scale
from attnviz.specs import TableKind

LEVELS = 64  # of colour: more cannot be told apart
WEIGHT = Column("weight")
SIGNS = 1 / 6, 1 / 3, 2 / 3


def legend(page: ScreenLayout, pictures: Sequence[Heatmap], kind: TableKind, scale: Scale) -> Iterator[Text]:
    """Yield lines on how to read the maps, once for all of them."""
    fitting = [picture for picture in pictures if cell_width(page, picture, kind)]
    closed = page.forbidden if not all(bool(picture.allowed.all()) for picture in pictures) else ""
    if len(fitting) < len(pictures):
        widest = max(len(picture.columns) for picture in pictures)
        instead = "the strongest keys of each query" if kind == "heatmap" else "each query with all its keys"
        columns = format_count(page.screen.width, "columns")
        yield from page.say(f"A map of {format_count(widest, 'keys')} does not fit {columns}; {instead} instead.")
        if closed and kind == "full":
            yield from page.say("A key that is not listed may not be attended to.")
    if fitting:
        if kind == "heatmap" or page.screen.colour:
            yield from _bar(page, scale)
        axes = f"rows: {fitting[0].row_axis} · columns: {fitting[0].column_axis}, by position"
        yield from page.say(axes + (f" · {closed} may not be attended to" if closed else ""))


def shade_text(page: ScreenLayout, picture: Heatmap, scale: Scale) -> Iterator[Text]:
    """Yield each row as the text that its columns are, every token in the colour of its value.

    Without colour a token has signs before it, of a value of at least a sixth, a third and two thirds of the largest.
    """
    scale = picture.scale or scale
    if page.screen.colour:
        yield from _bar(page, scale)
    else:
        signs = "+, ++ and +++ for, -, -- and --- against: at least 1/6, 1/3 and 2/3 of"
        yield from page.say(f"{scale.label}; {signs} {scale.high:.3g}.")
    places = shades.places(picture.shade(scale), scale)
    for name, row in zip(picture.rows, places, strict=True):
        yield from page.prose(f"{picture.row_axis} {name}", DIM) if len(picture.rows) > 1 else ()
        line = Text()
        for label, place in zip(picture.columns, row.tolist(), strict=True):
            sided = 2 * place - 1
            signs = "" if page.screen.colour else ("+" if sided > 0 else "-") * sum(abs(sided) >= at for at in SIGNS)
            token = page.safe(f"{signs}{label}")
            if line.cell_len and line.cell_len + 1 + cell_len(token) > page.screen.width:
                yield line
                line = Text()
            line.append(" " if line.cell_len else "")
            line.append(token, _shade(page, place, scale) if page.screen.colour else "")
        yield line


def matrix(page: ScreenLayout, picture: Heatmap, kind: TableKind, width: int, scale: Scale) -> Iterator[Text]:
    """Yield one row per query, shaded, with as many digits as `width` holds; above it the map's own scale, if any.

    `scale` is that of the maps without one.
    """
    if picture.scale and (kind == "heatmap" or page.screen.colour):
        yield from _bar(page, picture.scale)
    scale = picture.scale or scale
    places = shades.places(picture.shade(scale), scale)
    labels = _row_labels(page, picture)
    column = max(map(cell_len, labels))
    yield Text(" " * (column + 1) + _positions(picture.column_positions, width), style=DIM)
    edge = "|" if width == 2 and not page.screen.colour else " "
    for label, values, allowed, row in zip(labels, picture.values, picture.allowed, places, strict=True):
        line = Text(pad_right(label, column) + edge)
        for value, is_allowed, place in zip(values.tolist(), allowed.tolist(), row.tolist(), strict=True):
            if not is_allowed:
                line.append(page.forbidden.rjust(width), DIM)
            elif page.screen.colour:
                digits = _weight(value) if kind == "full" else _short(value) if width > 2 else ""
                line.append(digits.rjust(width), _shade(page, place, scale))
            elif kind == "full":
                line.append(_weight(value).rjust(width))
            else:
                sign = shades.character(place, page.ramp)
                line.append(sign + _short(value) if width == 4 else sign * 2)
        yield line.append(edge.strip())
    if _is_strip(picture):  # else rows name the tokens
        numbered = zip(picture.column_positions, picture.columns, strict=True)
        yield from page.prose(" · ".join(f"{position} {label}" for position, label in numbered), DIM)


def long_form(page: ScreenLayout, picture: Heatmap) -> Iterator[Text]:
    """Yield each query, then the keys that it may attend to with their weights, in columns where they fit."""
    numbered = zip(picture.column_positions, picture.columns, strict=True)
    keys = [f"{position} {page.safe(label)}" for position, label in numbered]
    widest = max(map(cell_len, keys)) + 1 + max(map(len, _digits(picture)))
    for label, values, allowed in zip(_row_labels(page, picture), picture.values, picture.allowed, strict=True):
        yield Text(label)
        items = (
            pad_right(keys[key], widest - len(weight)) + weight
            for key, weight in enumerate(map(_weight, values.tolist()))
            if allowed[key]
        )
        yield from (Text(f"  {row}") for row in fill_lines(items, page.screen.width - 2, "   "))


def cell_width(page: ScreenLayout, picture: Heatmap, kind: TableKind) -> int:
    """Return how many columns each cell takes, as many as fit; 0 where the map is too wide for the screen."""
    room = page.screen.width - max(map(cell_len, _row_labels(page, picture))) - 2
    if kind == "full":
        widths = [max(map(len, _digits(picture))) + 1]
    else:
        short = bool((picture.values >= 0).all() and (picture.values < 1.005).all())
        widths = [*((4, 3) if page.screen.colour else (4,)), 2] if short else [2]
    return next((width for width in widths if width * len(picture.columns) <= room), 0)


def _bar(page: ScreenLayout, scale: Scale) -> Iterator[Text]:
    """Yield the scale from end to end, and what it says."""
    low, high = f"{scale.low:.3g}", f"{scale.high:.3g}"
    if scale.family.is_multiple:
        low, high = f"{low} {page.forbidden}", f"{high} {page.forbidden}"
    bar = Text(f"{low} ")
    if page.screen.colour:
        for step in range(16):
            bar.append(" ", _shade(page, step / 15, scale))
    else:
        bar.append(f"[{page.ramp}]")
    bar.append(f" {high}")
    label = list(page.prose(scale.label))
    if len(label) == 1 and bar.cell_len + 2 + label[0].cell_len <= page.screen.width:
        yield Text.assemble(bar, "  ", label[0])
    else:
        yield from (bar, *label)


def _shade(page: ScreenLayout, place: float, scale: Scale) -> Style:
    return _level(round(place * LEVELS), page.screen.true_colour, scale.kind)


@lru_cache(maxsize=4 * LEVELS)
def _level(level: int, true_colour: bool, kind: str) -> Style:
    """Return a cell's background, and digits in black or white, whichever can be read on it."""
    background = Color.from_rgb(*shades.colour(level / LEVELS, kind))
    if not true_colour:
        background = background.downgrade(ColorSystem.EIGHT_BIT)
    red, green, blue = background.get_truecolor()
    light = shades.ink((red, green, blue)) == shades.WHITE
    ink = Color.from_ansi(231 if light else 16)  # white and black that no theme has changed
    return Style(color=ink, bgcolor=background)


def _is_strip(picture: Heatmap) -> bool:
    """Check whether rows are heads over tokens, and so have no position."""
    return not (picture.has_queries or picture.is_of_pairs)


def _row_labels(page: ScreenLayout, picture: Heatmap) -> list[str]:
    if _is_strip(picture):
        return [page.safe(label) for label in picture.rows]
    digits = len(str(max(picture.row_positions)))
    numbered = zip(picture.row_positions, picture.rows, strict=True)
    return [f"{position:>{digits}} {page.safe(label)}" for position, label in numbered]


def _positions(positions: Sequence[int], width: int) -> str:
    """Write positions above their columns, right-aligned; every fifth if they would touch, etc., and after a gap."""
    every = next(n for n in (1, 5, 10, 50) if n * width > len(str(max(positions))))
    line = ""
    for place, position in enumerate(positions):
        written, before = str(position), positions[max(place - 1, 0)]
        room = (place + 1) * width - len(written) - len(line)
        if (position % every == 0 or position > before + 1) and room >= (len(line) > 0):
            line = line.ljust((place + 1) * width - len(written)) + written
    return line


def _digits(picture: Heatmap) -> list[str]:
    """Return the narrowest and the widest text that a weight of this map can have."""
    return [_weight(float(np.min(picture.values))), _weight(float(np.max(picture.values)))]


def _weight(value: float) -> str:
    return f"{value:.{WEIGHT.digits}f}"


def _short(value: float) -> str:
    """Write a value as ".12", and as "1.0" what rounds to 1."""
    digits = f"{value:.2f}"
    return digits[1:] if digits.startswith("0") else "1.0"
