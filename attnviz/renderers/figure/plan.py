"""Where everything on a picture goes: texts are measured and the figure is built around them, so nothing is ever cut.

Inches from the upper left corner; maps lie on whole pixels, so that all cells are equal. Draws nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from math import ceil, inf
from typing import Literal

from attnviz.errors import TooLarge
from attnviz.renderers.figure.grid import (
    GridPlan,
    fold_maps,
    list_caveats,
    place_maps,
    plan_across,
)
from attnviz.renderers.figure.header import (
    MARGIN,
    Across,
    ceil_to_pixel,
    check_size,
    finish_plan,
    header_of,
    height_of,
    paragraph,
    place_bar,
    plan_bar,
)
from attnviz.renderers.figure.headings import ABOVE, name_edges, place_headings, say_above, wrap_headings
from attnviz.renderers.figure.layout import (
    GAP,
    MAX_GRID_WIDTH,
    MAX_PANEL,
    PAD,
    POINT,
    TICK,
    UNLABELLED,
    Cells,
    FigurePlan,
    Labels,
    PlacedMap,
    Room,
    TextLine,
    columns_of,
    maps_of,
    plan_cells,
    plan_labels,
    shape_of,
    spell_maps,
)
from attnviz.renderers.figure.overview import find_small_edges, name_small_edges, plan_small_cells, plan_small_gaps
from attnviz.renderers.figure.scale import plan_ticks
from attnviz.renderers.figure.style import GREY, INK, MIN_FONT_SIZE, SIZES
from attnviz.renderers.figure.text import extent, wrap_evenly
from attnviz.report import EdgeNames, FigureStyle, Heatmap, HeatmapGrid, Report, ScaleFamily

MAX_HEIGHT = 9.0  # inches of a page's text
MIN_SIDE = 0.4  # inches of a map: in less, nothing is to be seen
MAX_OVERVIEW = 16.0  # inches of an overview: 2,400 pixels at the usual resolution
MIN_SMALL_SIDE = 0.04  # of a map there: in less, nothing is to be seen
MAX_BAR = 4.0
FOLD_SHARE, MIN_FOLD, MAX_FOLD = 0.14, 0.03, 0.14  # of a map's width, and inches, that a slim column takes


def plan(picture: Heatmap | HeatmapGrid, report: Report, look: FigureStyle) -> FigurePlan:
    """Everything on one picture with its place. Raises TooLarge for too many pixels, and says what would work."""
    if isinstance(picture, HeatmapGrid):  # lines begin and end at every token, and have titles over them
        picture = fold_maps(picture) if look.kind == "map" else replace(picture, fold=None, small=False)
    room = Room.for_picture(picture, look)
    if isinstance(picture, HeatmapGrid) and (edges := find_small_edges(picture)):
        result = plan_overview(picture, edges, report, room)
    elif look.width is None:
        result = plan_in(picture, report, room)
    elif (fitted := _fit_columns(picture, report, room)) is not None:
        result = fitted
    else:
        raise too_narrow(picture, report, room)
    check_size(result.name, result.width, result.height, look.dpi)
    return result


def _fit_columns(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan | None:
    """As `fit`, in as many columns as leave each token its label, else every second, else some, on one page; else
    in all. A row per layer stays one where it fits; else each map has its title, and fewer stand in a row."""
    if not isinstance(picture, HeatmapGrid) or not picture.reflows:
        return fit(picture, report, room)
    if picture.edges is not None and (whole := fit(picture, report, room)):
        return whole
    picture = replace(picture, edges=None)
    rows = {number: ceil(len(picture.maps) / number) for number in range(columns_of(picture), 0, -1)}
    fewest = {n_rows: number for number, n_rows in rows.items()}  # the larger the maps, for as many rows
    grids = (replace(picture, n_columns=number) for number in fewest.values())
    plans = [fitted for grid in grids if (fitted := fit(grid, report, room))]
    steps = [{each.row_labels.step, each.column_labels.step} for each in plans]
    for most in (1, 2, inf):
        for each, found in zip(plans, steps, strict=True):
            if 0 < min(found) <= max(found) <= most and each.height <= MAX_HEIGHT:
                return each
    return next(iter(plans), None)


def fit(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan | None:
    """The plan with the largest maps for the width that is asked for; None where they would be too small."""
    width, n_columns = room.look.width, columns_of(picture)
    assert width is not None
    words = [word for text in chain(*say_above(picture)) for word in text.split() if n_columns > 1]
    longest = max((extent(word, room.sizes.headings[-1]).width * POINT for word in words), default=0.0)
    side = width / n_columns
    while side >= max(MIN_SIDE, longest):
        result = plan_in(picture, report, room._replace(side=side))
        if result.width <= width:  # cells are whole pixels, so that maps may be narrower than their share
            return result if result.places[0].box.width + 0.8 * GAP >= longest else None
        side -= max((result.width - width) / n_columns, 1 / room.look.dpi)
    return None


def too_narrow(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> TooLarge:
    """What would work instead of a width that is too small."""
    width, n_columns = room.look.width, columns_of(picture)
    assert width is not None
    wider = (ceil(10 * width) / 10 + step / 10 for step in range(1, 400))
    at = next(
        (w for w in wider if _fit_columns(picture, report, room._replace(look=replace(room.look, width=w)))), None
    )
    ways = [] if at is None else [f"--width {at:.1f}in"]
    if isinstance(picture, HeatmapGrid):
        fewer = (replace(picture, n_columns=number, edges=None) for number in range(n_columns - 1, 0, -1))
        ways += [f"--columns {each.n_columns}" for each in fewer if fit(each, report, room)][:1]
        if edges := picture.edges:
            ways.append(f"some heads, --pick {edges.rows[0]}.{edges.columns[0]},{edges.rows[-1]}.{edges.columns[-1]}")
    own_size = room.look.font_size is None and room.sizes.axis > SIZES.axis  # that nobody asked for
    if room.sizes.axis > MIN_FONT_SIZE and (own_size or not ways):
        ways.append("a smaller --font-size")
    what = f"{room.look.width:.3g} in are too few for {picture.name!r} with text of {room.sizes.smallest:.3g} points"
    of_theme = f", which --theme {room.look.theme} has" if own_size else ""
    return TooLarge(what + of_theme, hint=f"Try {' or '.join(ways)}.")


def plan_overview(picture: HeatmapGrid, edges: EdgeNames, report: Report, room: Room) -> FigurePlan:
    """The plan with the largest maps that fit a page, or the width that is asked for. Raises TooLarge if none does."""
    widest = room.look.width or MAX_GRID_WIDTH
    side = min(MAX_PANEL, widest / len(edges.columns))
    while side >= MIN_SMALL_SIDE:
        result = plan_in(picture, report, room._replace(side=side))
        over = (result.width - widest) / len(edges.columns), (result.height - MAX_OVERVIEW) / len(edges.rows)
        if max(over) <= 0:
            return result
        side -= max(*over, 1 / room.look.dpi)
    sizes = f"{len(edges.rows)} × {len(edges.columns)} maps have no room on {widest:.3g} × {MAX_OVERVIEW:g} inches"
    raise TooLarge(sizes, hint="Choose fewer with --layer or --head.")


def plan_in(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan:
    """The plan for maps of one size; wider than the width asked for where they do not fit."""
    look, sizes, dpi = room.look, room.sizes, room.look.dpi
    scale = picture.scale or report.scale
    ticks, small = plan_ticks(scale), find_small_edges(picture)
    cells = plan_small_cells(picture, room) if small else plan_cells(picture, room)
    labels = (UNLABELLED, UNLABELLED) if small else plan_labels(picture, cells, room)
    grid = _grid(picture, cells, labels, scale.family, room)
    bar = plan_bar(
        scale, ticks, (grid.width, min(grid.height, MAX_BAR) if small else grid.map_height), look.width, room
    )
    edges = picture.edges if isinstance(picture, HeatmapGrid) else None
    edge, beside = 0.0, labels[0].room
    if small:
        axis = height_of([small.column_axis], sizes.axis)
        edge = axis + height_of(small.columns[:1], sizes.panel) + PAD
        beside = max(extent(name, sizes.panel).width for name in small.rows) * POINT + 2 * PAD
    elif edges:
        edge = height_of(["layer"], grid.edge_size) + ABOVE
        beside += edge + PAD
    across = plan_across(grid, beside, bar, room)

    header, start = header_of(picture, report, across.width, look, sizes)
    top = ceil_to_pixel(start + edge + grid.heading_room, dpi)
    places = place_maps(grid, across.maps, top)
    if small:
        lowest, names = top + grid.height, name_small_edges(grid, small, across, (start + axis, top), room)
    else:
        axes = _axis_names(grid, 0.0 if grid.lines else labels[1].room, across, top, room)
        lowest = max(axes[-1].y, top + extent(axes[0].text, sizes.axis).width * POINT * (not grid.lines))
        names = name_edges(grid, edges, across.maps - labels[0].room, places) if edges else []
        names += [*place_headings(grid, places), *axes]
    bar_box, bar_label, lowest = place_bar(bar, grid.width, across, (top, lowest), room)
    tokens = _beside_lines(places, labels, cells) if grid.lines else []
    result = FigurePlan(
        name=picture.name,
        width=across.width,
        height=lowest,
        cells=cells,
        row_labels=labels[0],
        column_labels=labels[1],
        places=places,
        bar=bar_box,
        scale=scale,
        ticks=ticks,
        lines=(*header, *names, *bar_label, *tokens),
        kind=look.kind,
    )
    return finish_plan(result, picture, report, room, list_caveats(grid, cells, labels, scale))


def _grid(
    picture: Heatmap | HeatmapGrid, cells: Cells, labels: tuple[Labels, Labels], kind: ScaleFamily, room: Room
) -> GridPlan:
    lines, dpi, sizes = room.look.kind == "lines", room.look.dpi, room.sizes.headings
    small = find_small_edges(picture) is not None
    sides = zip(cells[:2], shape_of(picture), strict=True)
    height, width = (side.count(number) * side.length for side, number in sides)
    if small:
        height, width = (ceil_to_pixel(side, dpi) for side in (height, width))
    if lines:
        height, width = max(height, width), ceil_to_pixel(room.side, dpi)
    beside = sum(label.room for label in labels) if lines else 0.0
    gaps = plan_small_gaps(width) if small else (GAP + beside, GAP)
    size, headings, above = wrap_headings(*(([], []) if small else say_above(picture)), (width + beside) / POINT, sizes)
    maps = maps_of(picture) if small else spell_maps(picture)
    fold = picture.fold if isinstance(picture, HeatmapGrid) else None
    # What a cell shows that stands for several weights: their mean, since nearly all maxima of blocks are large. At
    # 2,500 tokens most of a map would be dark that is pale. Where colours are no logarithms, a thin line fades in a
    # mean of few cells, and differences of either sign cancel out: of them a cell shows the largest, up or down.
    is_mean = maps[0].block > 1 or (kind.is_logarithmic and not kind.is_signed)
    return GridPlan(
        maps=maps,
        n_columns=columns_of(picture),
        map_width=width,
        map_height=height,
        heading_size=size,
        headings=headings,
        heading_room=ceil_to_pixel(above + ABOVE, dpi) if above else 0.0,
        edge_size=sizes[0],
        gap=ceil_to_pixel(gaps[0], dpi),
        down=ceil_to_pixel(gaps[1], dpi),
        statistic="mean" if is_mean else "largest",
        lines=lines,
        small=small,
        beyond=labels[1].room if lines else 0.0,
        fold=fold,
        footnote="" if small else picture.footnote,
        slim=ceil_to_pixel(min(MAX_FOLD, max(MIN_FOLD, FOLD_SHARE * width)), dpi) if fold else 0.0,
    )


def _axis_names(grid: GridPlan, column_room: float, across: Across, top: float, room: Room) -> tuple[TextLine, ...]:
    """What rows and columns are, each once, at the middle of its side."""
    size = room.sizes.axis
    rows, columns = grid.maps[0].row_axis, grid.maps[0].column_axis
    right = across.maps + grid.width if grid.lines else across.width - MARGIN  # beyond are the colour bar's numbers
    texts = wrap_evenly(f"from {rows} to {columns}", size, (right - MARGIN) / POINT) if grid.lines else (columns,)
    half = max(extent(text, size).width for text in texts) * POINT / 2
    maps = grid.width - grid.beyond
    middle = min(max(across.maps + maps / 2, MARGIN + half), right - half)
    if grid.lines:
        under = top + grid.height + PAD
        return tuple(line._replace(align="center") for line in paragraph(texts, size, GREY, middle, under))
    length = extent(rows, size).width * POINT
    base = top + grid.height + column_room + size * POINT
    return (
        TextLine(rows, across.row_axis, top + max(grid.height, length) / 2, size, GREY, "center", 90),
        TextLine(columns, middle, base, size, GREY, "center"),
    )


def _beside_lines(places: Sequence[PlacedMap], labels: tuple[Labels, Labels], cells: Cells) -> list[TextLine]:
    """Tokens to the left of where lines begin and to the right of where they end; a few as high as many."""
    found = []
    for heatmap, box, *_ in places:
        sides: tuple[tuple[Sequence[str], float, Literal["left", "right"]], ...] = (
            (heatmap.rows, box.left - TICK - PAD, "right"),
            (heatmap.columns, box.left + box.width + TICK + PAD, "left"),
        )
        most = max(len(heatmap.rows), len(heatmap.columns))
        for (names, x, align), label, side in zip(sides, labels, cells[:2], strict=True):
            for place, name in label.choose(list(enumerate(names))) if label.step else ():
                middle = (place + 0.5) * (most / len(names)) * side.length
                y = box.top + middle + 0.36 * label.size * POINT
                found.append(TextLine(name, x, y, label.size, INK, align))
    return found
