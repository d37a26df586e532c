"""How large the cells of maps have to be, and what plans of pictures hold. Draws nothing and gives nothing a place.

Lengths are inches, text sizes points.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from attnviz.renderers.figure.scale import cells_of, digits_of
from attnviz.renderers.figure.style import INK, SIZES, Sizes, Theme, look_of
from attnviz.renderers.figure.text import extent
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Scale
from attnviz.specs import FigureKind

POINT = 1 / 72
MAX_APART, MIN_APART = 40, 0.05  # cells in a row, and inches of one
GAP, PAD = 0.12, 0.05  # inches between things, and between a text and its thing
TICK = 2 * POINT
LABEL_PAD, NUMBER_PAD = 1.5, 2.0  # points between tick and label, on maps and on the colour bar
MAX_MAP, MAX_PANEL, MAX_GRID_WIDTH = 7.2, 2.8, 12.0
MAX_WASTE = 0.125  # of a small map's side, for cells of whole pixels
MAX_LINES = 400  # of one head: more hide each other
MAX_CELLS = 1024  # along one side; more are pooled
OBLONG = 3  # times as long as wide: no longer a square of tokens, but a few heads, or queries, over many keys
THICK, THIN = 0.2, 0.13  # inches that the cells of an oblong map's shorter side take: wished, and least
PITCH = 1.3  # from line to line, of the text's size
LINES_ACROSS, LINES_DOWN = (1.7, 1.1), (7.2, 4.4)  # inches, of one and of several
MIN_SHORT_SIDE, MAX_SHORT_SHARE = 2.0, 0.75  # what the shorter side may take: inches that suffice, share of the longer
WIDE = 9.0  # points from token to token: where they stand closer, lines are thinner, and faint where weights are small
HAIR_SPACE = "\u200a"  # without it a comma slips under the quote behind it
SPECKS = (".", ",", "'", "’", "`", "-", ":", ";", "·", "_", "…")  # labels that are written in quotes
CLOSE = 1.1  # of the text's size: from one label to the next


T = TypeVar("T")
Align = Literal["left", "center", "right"]


class Box(NamedTuple):
    """A rectangle, in inches from the upper left corner."""

    left: float
    top: float
    width: float
    height: float


class TextLine(NamedTuple):
    """One line of text, its base line at `x`, `y` inches from the upper left corner (its start, or its middle)."""

    text: str
    x: float
    y: float
    size: float
    colour: str = INK
    align: Align = "left"
    rotation: int = 0
    bold: bool = False


class Side(NamedTuple):
    """One side of all cells: how many tokens it stands for, and inches."""

    pool: int
    length: float

    def count(self, n_tokens: int) -> int:
        """Count the cells that so many tokens make."""
        return ceil(n_tokens / self.pool)

    @property
    def pitch(self) -> float:
        """Return the points from token to token."""
        return self.length / self.pool / POINT


class Cells(NamedTuple):
    """How tokens become cells: `rows` is their height and `columns` their width; `annotated` with numbers."""

    rows: Side
    columns: Side
    annotated: bool

    @property
    def pools(self) -> tuple[int, int]:
        """Return the tokens per cell, downwards and across."""
        return self.rows.pool, self.columns.pool

    def are_apart(self, shape: Sequence[int]) -> bool:
        """Check whether hairlines separate these cells: few, and large enough."""
        return max(shape) <= MAX_APART and min(self.rows.length, self.columns.length) >= MIN_APART


ONE_EACH = Cells(Side(1, 0.0), Side(1, 0.0), annotated=False)


class Labels(NamedTuple):
    """How one side is labelled: every `step`-th (0: none) or those at `places`, in which size, with how much room."""

    step: int
    size: float
    room: float
    rotated: bool = False
    places: tuple[int, ...] | None = None

    def choose(self, tokens: Sequence[T]) -> Sequence[T]:
        """Choose the tokens that are labelled."""
        if self.step == 0:
            return ()
        return tokens[:: self.step] if self.places is None else [tokens[place] for place in self.places]


UNLABELLED = Labels(0, 0.0, 0.0)


class PlacedMap(NamedTuple):
    """One map and its box."""

    heatmap: Heatmap
    box: Box


class Word(NamedTuple):
    """A token with the box that is shaded by its value, and `outlined` where it is the one that attends."""

    box: Box
    value: float
    line: TextLine
    outlined: bool = False


class Room(NamedTuple):
    """How a picture is laid out: its look, its sizes of text, inches that a map may take along its longer side."""

    look: FigureStyle
    theme: Theme
    sizes: Sizes
    side: float

    @classmethod
    def for_picture(cls, picture: Heatmap | HeatmapGrid, look: FigureStyle) -> "Room":
        """Return the room of a picture for which no width is asked."""
        theme, sizes = look_of(look.theme, look.font_size)
        several = isinstance(picture, HeatmapGrid)
        of_panel = min(MAX_PANEL, max(0.6, MAX_GRID_WIDTH / count_maps(picture)[1] - GAP))
        side = LINES_ACROSS[several] if look.kind == "lines" else of_panel if several else MAX_MAP
        return cls(look, theme, sizes, side)


@dataclass(frozen=True, eq=False)
class Plan:
    """A picture before it is drawn; `lines` are all its texts, see `header.frame`."""

    name: str
    title: str
    width: float
    height: float
    lines: tuple[TextLine, ...]
    theme: Theme
    swatch: Box | None  # the key to forbidden cells, of maps


@dataclass(frozen=True, eq=False)
class FigurePlan(Plan):
    """Maps, or a text whose tokens are shaded, before they are drawn."""

    bar: Box  # wider than high where it lies below
    scale: Scale
    ticks: tuple[tuple[float, str], ...]  # of the colour bar: where, and what they say
    kind: FigureKind
    sizes: Sizes
    cells: Cells = ONE_EACH
    labels: tuple[Labels, Labels] = (UNLABELLED, UNLABELLED)
    tokens: tuple[TextLine, ...] = ()  # the labels of rows and columns
    places: tuple[PlacedMap, ...] = ()
    words: tuple[Word, ...] = ()

    def read_cells(self, place: PlacedMap) -> np.ma.MaskedArray:
        """Return what the cells of one of its maps show."""
        return cells_of(place.heatmap, self.scale, self.cells.pools)


def line_room(cells: Cells) -> float:
    """Return the share of the room that lines from token to token want, at most 1."""
    return min(1.0, cells.rows.length / POINT / WIDE)


def maps_of(block: Heatmap | HeatmapGrid) -> tuple[Heatmap, ...]:
    """Return the maps of a picture."""
    return block.maps if isinstance(block, HeatmapGrid) else (block,)


def spell_maps(block: Heatmap | HeatmapGrid, *, quoted: bool = True) -> tuple[Heatmap, ...]:
    """Spell labels as they stand along the sides of maps: "." alone would be a speck of dust unless `quoted`.

    Where a cell stands for several tokens, a label says which of so many it is.
    """

    def spell(name: str, position: int) -> str:
        name = f"{position} {name}" if maps[0].block > 1 else name
        return f"“{HAIR_SPACE}{name}{HAIR_SPACE}”" if quoted and name in SPECKS else name

    maps = maps_of(block)
    return tuple(
        replace(
            each,
            rows=tuple(map(spell, each.rows, each.row_positions)),
            columns=tuple(map(spell, each.columns, each.column_positions)),
        )
        for each in maps
    )


def shape_of(block: Heatmap | HeatmapGrid) -> tuple[int, int]:
    """Return the rows and columns of the largest map, in tokens."""
    shapes = [heatmap.values.shape for heatmap in maps_of(block)]
    return max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)


def count_maps(block: Heatmap | HeatmapGrid) -> tuple[int, int]:
    """Count the rows of maps, and the maps side by side."""
    n_maps = len(maps_of(block))
    n_columns = min(block.n_columns, n_maps) if isinstance(block, HeatmapGrid) else 1
    return ceil(n_maps / n_columns), n_columns


def is_small(block: Heatmap | HeatmapGrid) -> bool:
    """Check whether maps have room for a few cells only: close together, without labels, named once at the edges."""
    return isinstance(block, HeatmapGrid) and block.small and block.edges is not None


def is_difference(block: Heatmap | HeatmapGrid) -> bool:
    """Check whether its numbers carry a sign. Only a difference has negative ones."""
    return (block.scale is not None and block.scale.family.is_signed) or any(
        bool((heatmap.values < 0).any()) for heatmap in maps_of(block)
    )


def digits_side(block: Heatmap | HeatmapGrid, sizes: Sizes) -> float:
    """Return the inches that a cell needs for its number."""
    difference = is_difference(block)
    extremes = [float(each) for heatmap in maps_of(block) for each in (heatmap.values.min(), heatmap.values.max())]
    return (max(extent(digits_of(each, difference), sizes.smallest).width for each in extremes) + 4) * POINT


def fits_digits(block: Heatmap | HeatmapGrid, room: Room) -> bool:
    """Check whether each cell has room for its number."""
    return room.look.kind == "map" and max(shape_of(block)) * digits_side(block, room.sizes) <= room.side


def plan_cells(block: Heatmap | HeatmapGrid, room: Room) -> Cells:
    """Plan the cells: large for few tokens, small for many, pooled for more than pixels. Square, but see `_shorter`."""
    n_tokens, limit, look = max(shape_of(block)), room.side, room.look
    over_image = look.width is not None and not look.annotate and maps_of(block)[0].backdrop is not None
    if is_small(block) or over_image:
        # As large as the side of a map allows; not of whole pixels where that leaves much of it empty.
        n_pixels = max(1, floor(limit * look.dpi))
        pool = ceil(n_tokens / min(MAX_CELLS, n_pixels))
        pitch = n_pixels / ceil(n_tokens / pool)
        side = Side(pool, (floor(pitch) if floor(pitch) >= (1 - MAX_WASTE) * pitch else pitch) / look.dpi)
        return Cells(side, side, annotated=False)
    if look.kind == "lines":
        several = isinstance(block, HeatmapGrid)
        pitch = PITCH * (room.sizes.panel if several else room.sizes.label) * POINT
        side = Side(1, max(1, floor(min(pitch, LINES_DOWN[several] / n_tokens) * look.dpi)) / look.dpi)
        return Cells(side, side, annotated=False)
    pool = ceil(n_tokens / max(1, min(MAX_CELLS, floor(limit * look.dpi))))
    n_cells = ceil(n_tokens / pool)
    wished = (
        np.clip(1.4 + 0.18 * n_tokens, 1.8, 6.5) if isinstance(block, Heatmap) else np.clip(0.1 * n_tokens, 1.5, 2.6)
    )
    wished = limit if look.width is not None else min(float(wished) * room.sizes.axis / SIZES.axis, limit)
    pixels = round(wished * look.dpi / n_cells)
    annotated = look.annotate and fits_digits(block, room)
    if annotated:
        pixels = max(pixels, ceil(digits_side(block, room.sizes) * look.dpi))
    else:
        pixels = min(pixels, floor(limit * look.dpi / n_cells))
    side = Side(pool, max(1, pixels) / look.dpi)
    n_rows, n_columns = shape_of(block)
    shorter = _shorter(side, n_cells, min(n_rows, n_columns), look.dpi)
    rows, columns = (shorter if number * OBLONG <= n_tokens else side for number in (n_rows, n_columns))
    return Cells(rows, columns, annotated)


def _shorter(longer: Side, n_cells: int, number: int, dpi: int) -> Side:
    """Return the shorter side of the cells of an oblong map: squares would be a thin band without room for labels."""
    wished = min(THICK, max(THIN, MIN_SHORT_SIDE / number), MAX_SHORT_SHARE * n_cells * longer.length / number)
    pixels = floor(wished * dpi)
    return Side(1, pixels / dpi) if pixels / dpi > longer.length else longer
