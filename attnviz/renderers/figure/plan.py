"""Where everything on a picture goes: texts are measured and the figure is built around them, so nothing is ever cut.

Inches from the upper left corner; maps lie on whole pixels, so that all cells are equal. Draws nothing.
"""

from dataclasses import replace
from itertools import chain, count
from math import ceil, inf

from attnviz.errors import TooLarge
from attnviz.renderers.figure.colour_bar import Across, place_bar, plan_bar
from attnviz.renderers.figure.grid import (
    ABOVE,
    GridPlan,
    list_caveats,
    name_edges,
    place_headings,
    place_maps,
    plan_across,
    say_above,
    wrap_headings,
    write_tokens,
)
from attnviz.renderers.figure.header import (
    HATCHED,
    MARGIN,
    ceil_to_pixel,
    frame,
    header_of,
    height_of,
    paragraph,
    refuse_width,
)
from attnviz.renderers.figure.layout import (
    GAP,
    MAX_GRID_WIDTH,
    MAX_PANEL,
    PAD,
    POINT,
    TICK,
    Cells,
    FigurePlan,
    Labels,
    Room,
    TextLine,
    count_maps,
    is_small,
    maps_of,
    name_pairs,
    plan_cells,
    plan_labels,
    shape_of,
    spell_maps,
)
from attnviz.renderers.figure.scale import plan_ticks
from attnviz.renderers.figure.style import GREY
from attnviz.renderers.figure.text import extent, wrap_evenly
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Report
from attnviz.words import say

MAX_BESIDE = 0.22  # of a width that is asked for: what names of cells may take beside the map
MAX_HEIGHT = 9.0  # inches of a page's text
MIN_SIDE = 0.4  # inches of a map: in less, nothing is to be seen
MIN_OVER_IMAGE = 0.95  # and of one over an image: three in a column of a paper
MAX_OVERVIEW = 16.0  # inches of an overview: 2,400 pixels at the usual resolution
MIN_SMALL_SIDE = 0.04  # of a map there: in less, nothing is to be seen
MAX_BAR_HEIGHT = 4.0
BETWEEN, MIN_BETWEEN = (0.06, 0.035), 0.02  # inches from one small map to the next, across and down
BETWEEN_SHARE = 0.13  # of a small map's side


def plan(picture: Heatmap | HeatmapGrid, report: Report, look: FigureStyle) -> FigurePlan:
    """Plan where everything on one picture is placed. Raises TooLarge for too small a width; says what would work."""
    if isinstance(picture, HeatmapGrid):  # lines begin and end at every token, and have titles over them
        picture = replace(picture, maps=spell_maps(picture), small=picture.small and look.kind == "map")
    else:
        (picture,) = spell_maps(picture)
    room = Room.for_picture(picture, look)
    made = _fit_columns(picture, report, room)
    if made is None:
        raise too_narrow(picture, report, room)
    return made


def _fit_columns(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan | None:
    """Fit a picture, as `fit` does, in as many columns as leave each token its label on one page.

    Else every second token has its label, else some, else all columns are kept. A row per layer stays one where it
    fits; else each map has its title, and fewer stand in a row.
    """
    if not isinstance(picture, HeatmapGrid) or not picture.reflows or is_small(picture) or room.look.width is None:
        return fit(picture, report, room)
    if picture.edges is not None and (whole := fit(picture, report, room)):
        return whole
    over_image = picture.maps[0].backdrop is not None
    picture = replace(picture, edges=None)
    rows = {number: ceil(len(picture.maps) / number) for number in range(count_maps(picture)[1], 0, -1)}
    fewest = {n_rows: number for number, n_rows in rows.items()}  # the larger the maps, for as many rows
    grids = (replace(picture, n_columns=number) for number in fewest.values())
    plans = [fitted for grid in grids if (fitted := fit(grid, report, room))]
    steps = [{label.step for label in each.labels} for each in plans]
    for most in () if over_image else (1, 2, inf):  # which patch is which, the image says itself
        for each, found in zip(plans, steps, strict=True):
            if 0 < min(found) <= max(found) <= most and each.height <= MAX_HEIGHT:
                return each
    return next(iter(plans), None)


def fit(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan | None:
    """Find the plan with the largest maps for the width that is asked for; None where they would be too small.

    Very many maps have to fit a page in any case. Others are as large as they want to be where no width is asked for.
    """
    (n_rows, n_columns), small = count_maps(picture), is_small(picture)
    if room.look.width is None and not small:
        return plan_in(picture, report, room)
    widest = room.look.width or MAX_GRID_WIDTH
    words = [word for text in chain(*say_above(picture)) for word in text.split() if n_columns > 1]
    longest = max((extent(word, room.sizes.headings[-1]).width * POINT for word in words), default=0.0)
    side, least, highest = widest / n_columns, max(MIN_SIDE, longest), inf
    if isinstance(picture, HeatmapGrid) and picture.reflows and picture.maps[0].backdrop is not None:
        least = MIN_OVER_IMAGE
    if small:
        side, least, highest = min(MAX_PANEL, side), MIN_SMALL_SIDE, MAX_OVERVIEW
    while side >= least:
        result = plan_in(picture, report, room._replace(side=side))
        over = max((result.width - widest) / n_columns, (result.height - highest) / n_rows)
        if over < 1e-6:  # cells are whole pixels, so that maps may be narrower than their share
            return result if result.places[0].box.width + 0.8 * GAP >= longest else None
        side -= max(over, 1 / room.look.dpi)
    return None


def too_narrow(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> TooLarge:
    """Say that the width is too small, and the smallest that would work."""
    width, (n_rows, n_columns) = room.look.width or MAX_GRID_WIDTH, count_maps(picture)
    if is_small(picture):
        sizes = f"{n_rows} × {n_columns} maps have no room on {width:.3g} × {MAX_OVERVIEW:g} inches"
        return TooLarge(sizes, hint="Choose fewer with --layer or --head.")
    wider = (tenths / 10 for tenths in count(ceil(10 * width)))
    needed = next(w for w in wider if _fit_columns(picture, report, room._replace(look=replace(room.look, width=w))))
    return refuse_width(picture.name, room.look, room.sizes, needed)


def plan_in(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan:
    """Plan the figure for maps of one size; wider than the width asked for where they do not fit."""
    look, sizes, dpi = room.look, room.sizes, room.look.dpi
    scale, edges = picture.scale or report.scale, picture.edges if isinstance(picture, HeatmapGrid) else None
    cells, ticks = plan_cells(picture, room), plan_ticks(scale)
    labels = plan_labels(picture, cells, room)
    grid = _grid(picture, cells, labels, room)
    highest = min(grid.height, MAX_BAR_HEIGHT) if grid.small else grid.map_height
    bar = plan_bar(scale, ticks, (grid.width, highest), look.width, room)
    axis, above, beside = 0.0, 0.0, labels[0].room
    if edges and grid.small:
        axis = height_of([edges.column_axis], sizes.axis)
        above = axis + height_of(edges.columns[:1], grid.edge_size) + PAD
        beside = max(extent(name, grid.edge_size).width for name in edges.rows) * POINT + 2 * PAD
    elif edges:
        above = height_of(["layer"], grid.edge_size) + ABOVE
        beside += above + PAD
    across = plan_across(grid, beside, bar, room)

    header, start = header_of(picture, report, across.width, look, sizes)
    top = ceil_to_pixel(start + above + grid.heading_room, dpi)
    places = tuple(place_maps(grid, across.maps, top))
    named, base = (grid.maps[0].row_axis, grid.maps[0].column_axis), top + grid.height + labels[1].room
    if edges and grid.small:
        named, base = (edges.row_axis, edges.column_axis), start + axis - PAD / 2 - sizes.axis * POINT
    axes: tuple[TextLine, ...] = ()
    lowest = top + grid.height
    if any(named):
        axes = _axis_names(grid, named, base + sizes.axis * POINT, across, top, room)
        length = extent(axes[0].text, sizes.axis).width * POINT * (not grid.lines)
        lowest = max(lowest, top + length, axes[-1].y)
    names = name_edges(grid, edges, across.maps - labels[0].room, places) if edges else []
    names += [*place_headings(grid, places), *axes]
    bar_box, bar_label, lowest = place_bar(bar, grid.width, across, (top, lowest), room)
    is_hatched = not grid.lines and not all(each.is_of_pairs or each.allowed.all() for each in grid.maps)
    hatched = HATCHED[grid.maps[0].has_queries or grid.maps[0].has_keys]
    notes = [hatched] * is_hatched + list_caveats(grid, cells, labels, scale)
    end, down = across.maps + grid.map_width + TICK + PAD, top + 0.36 * sizes.smallest * POINT
    pairs = [TextLine(pair, end, down + at, sizes.smallest) for at, pair in grid.pairs.items()]
    return FigurePlan(
        **frame(picture, report, look, (across.width, lowest, GAP), [*header, *names, *bar_label, *pairs], notes),
        cells=cells,
        labels=labels,
        tokens=tuple(write_tokens(places, labels, cells, grid.n_columns, room)),
        places=places,
        bar=bar_box,
        scale=scale,
        ticks=ticks,
        kind=look.kind,
        sizes=sizes,
    )


def _grid(picture: Heatmap | HeatmapGrid, cells: Cells, labels: tuple[Labels, Labels], room: Room) -> GridPlan:
    lines, dpi, sizes = room.look.kind == "lines", room.look.dpi, room.sizes.headings
    small = is_small(picture)
    sides = zip(cells[:2], shape_of(picture), strict=True)
    height, width = (side.count(number) * side.length for side, number in sides)
    if small:
        height, width = (ceil_to_pixel(side, dpi) for side in (height, width))
    if lines:
        height, width = max(height, width), ceil_to_pixel(room.side, dpi)
    beside = sum(label.room for label in labels) if lines else 0.0
    gaps = [min(most, max(MIN_BETWEEN, BETWEEN_SHARE * width)) for most in BETWEEN] if small else (GAP + beside, GAP)
    size, headings, above = wrap_headings(*say_above(picture), (width + beside) / POINT, sizes)
    maps = maps_of(picture)
    if labels[0].step == 0 and maps[0].backdrop is not None and not small:
        maps, gaps = tuple(replace(each, row_axis="", column_axis="") for each in maps), (BETWEEN[0], GAP)
    pairs, footnote = name_pairs(picture, cells, room), "" if small else picture.footnote
    beyond = labels[1].room if lines else 0.0
    if pairs:
        widest = max(extent(pair, room.sizes.smallest).width for pair in pairs.values())
        beyond = ceil_to_pixel(widest * POINT + TICK + 2 * PAD, dpi)
    if beyond > MAX_BESIDE * (room.look.width or inf) and not lines:  # so narrow a map needs the room itself
        listed = f"strongest: {', '.join(pairs.values())}"
        pairs, beyond, footnote = {}, 0.0, " · ".join(filter(None, (footnote, listed)))
    return GridPlan(
        maps=maps,
        n_columns=count_maps(picture)[1],
        map_width=width,
        map_height=height,
        heading_size=size,
        headings=headings,
        heading_room=ceil_to_pixel(above + ABOVE, dpi) if above else 0.0,
        edge_size=room.sizes.panel if small else sizes[0],
        gap=ceil_to_pixel(gaps[0], dpi),
        down=ceil_to_pixel(gaps[1], dpi),
        lines=lines,
        small=small,
        beyond=beyond,
        footnote=footnote,
        pairs=pairs,
    )


def _axis_names(
    grid: GridPlan, names: tuple[str, str], base: float, across: Across, top: float, room: Room
) -> tuple[TextLine, ...]:
    """Place the names of rows and columns, each once, at the middle of its side; columns on a line at `base`."""
    size, (rows, columns) = room.sizes.axis, names
    right = across.maps + grid.width if grid.lines else across.width - MARGIN  # beyond are the colour bar's numbers
    said = say(f"from {rows} to {columns}", room.look.lang)
    texts = wrap_evenly(said, size, (right - MARGIN) / POINT) if grid.lines else (columns,)
    half = max(extent(text, size).width for text in texts) * POINT / 2
    maps = grid.width - grid.beyond
    middle = min(max(across.maps + maps / 2, MARGIN + half), right - half)
    if grid.lines:
        under = top + grid.height + PAD
        return tuple(line._replace(align="center") for line in paragraph(texts, size, GREY, middle, under))
    length = extent(rows, size).width * POINT
    return (
        TextLine(rows, across.row_axis, top + max(grid.height, length) / 2, size, GREY, "center", 90),
        TextLine(columns, middle, base, size, GREY, "center"),
    )
