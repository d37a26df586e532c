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
    choose_statistic,
    describe_cells,
    fold_maps,
    place_maps,
    plan_across,
    plan_slim,
)
from attnviz.renderers.figure.header import (
    MARGIN,
    Across,
    below,
    ceil_to_pixel,
    check_size,
    finish_plan,
    header_of,
    height_of,
    ordinal,
    paragraph,
    place_bar,
    plan_bar,
)
from attnviz.renderers.figure.headings import ABOVE, name_edges, place_headings, say_above, wrap_headings
from attnviz.renderers.figure.layout import (
    GAP,
    MAX_LINES,
    PAD,
    POINT,
    TICK,
    Cells,
    FigurePlan,
    Labels,
    PlacedMap,
    Room,
    TextLine,
    columns_of,
    line_room,
    plan_cells,
    plan_labels,
    shape_of,
    spell_maps,
)
from attnviz.renderers.figure.overview import plan_overview
from attnviz.renderers.figure.scale import LEAST_WRITTEN, plan_limits, plan_ticks
from attnviz.renderers.figure.style import GREY, INK, MIN_FONT_SIZE, SIZES
from attnviz.renderers.figure.text import extent, wrap_evenly
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Report, Scale, ScaleFamily

MAX_HEIGHT = 9.0  # inches of a page's text
MIN_SIDE = 0.4  # inches of a map: in less, nothing is to be seen


def plan(picture: Heatmap | HeatmapGrid, report: Report, look: FigureStyle) -> FigurePlan:
    """Everything on one picture with its place. Raises TooLarge for too many pixels, and says what would work."""
    if isinstance(picture, HeatmapGrid):  # lines begin and end at every token, and have titles over them
        picture = fold_maps(picture) if look.kind == "map" else replace(picture, fold=None, small=False)
    room = Room.for_picture(picture, look)
    if isinstance(picture, HeatmapGrid) and picture.small and picture.edges is not None:
        result = plan_overview(picture, picture.edges, report, room)
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


def plan_in(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan:
    """The plan for maps of one size; wider than the width asked for where they do not fit."""
    look, sizes, dpi = room.look, room.sizes, room.look.dpi
    scale = picture.scale or report.scale
    ticks = plan_ticks(scale)
    cells = plan_cells(picture, room)
    row_labels, column_labels = plan_labels(picture, cells, room)
    grid = _grid(picture, cells, (row_labels, column_labels), scale.family, room)
    bar = plan_bar(scale, ticks, (grid.width, grid.map_height), look.width, room)
    edges = picture.edges if isinstance(picture, HeatmapGrid) else None
    edge = height_of(["layer"], grid.edge_size) + ABOVE if edges else 0.0
    across = plan_across(grid, row_labels.room + (edge + PAD) * bool(edges), bar, room)

    header = header_of(picture, report, across.width, sizes) if look.header else []
    top = ceil_to_pixel(below(header, MARGIN) + GAP * bool(header) + edge + grid.heading_room, dpi)
    places = place_maps(grid, across.maps, top)
    axes = _axis_names(grid, 0.0 if grid.lines else column_labels.room, across, top, room)
    lowest = max(axes[-1].y, top + extent(axes[0].text, sizes.axis).width * POINT * (not grid.lines))
    bar_box, bar_label, lowest = place_bar(bar, grid.width, across, (top, lowest), room)
    tokens = _beside_lines(places, (row_labels, column_labels), cells) if grid.lines else []
    names = name_edges(grid, edges, across.maps - row_labels.room, places) if edges else []
    lines = (*header, *names, *place_headings(grid, places), *axes, *bar_label, *tokens)
    result = FigurePlan(
        name=picture.name,
        width=across.width,
        height=lowest,
        cells=cells,
        row_labels=row_labels,
        column_labels=column_labels,
        places=places,
        bar=bar_box,
        scale=scale,
        ticks=ticks,
        lines=lines,
        kind=look.kind,
    )
    return finish_plan(result, picture, report, room, _small_print(grid, cells, (row_labels, column_labels), scale))


def _grid(
    picture: Heatmap | HeatmapGrid, cells: Cells, labels: tuple[Labels, Labels], kind: ScaleFamily, room: Room
) -> GridPlan:
    maps = spell_maps(picture)
    height, width = (
        side.count(number) * side.length for side, number in zip(cells[:2], shape_of(picture), strict=True)
    )
    lines, dpi, sizes = room.look.kind == "lines", room.look.dpi, room.sizes.headings
    if lines:
        height, width = max(height, width), ceil_to_pixel(room.side, dpi)
    beside = sum(label.room for label in labels) if lines else 0.0
    points = (width + beside) / POINT
    size, headings, above = wrap_headings(*say_above(picture), points, sizes)
    return GridPlan(
        maps=maps,
        n_columns=columns_of(picture),
        map_width=width,
        map_height=height,
        heading_size=size,
        headings=headings,
        heading_room=ceil_to_pixel(above + ABOVE, dpi) if above else 0.0,
        edge_size=sizes[0],
        gap=ceil_to_pixel(GAP + beside, dpi),
        down=ceil_to_pixel(GAP, dpi),
        statistic=choose_statistic(maps[0], kind),
        lines=lines,
        beyond=labels[1].room if lines else 0.0,
        fold=picture.fold if isinstance(picture, HeatmapGrid) else None,
        footnote=picture.footnote,
        slim=plan_slim(picture, width, dpi),
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


def _small_print(grid: GridPlan, cells: Cells, labels: tuple[Labels, Labels], scale: Scale) -> list[str]:
    """What the picture cannot show by itself."""
    texts = []
    if labels[0].step == 0:
        texts.append("tokens are not labelled, for want of room")
    shape = [max(sizes) for sizes in zip(*(heatmap.values.shape for heatmap in grid.maps), strict=True)]
    sides = ("query", "key") if labels[0].step != labels[1].step else ("token", "token")
    axes = ((grid.maps[0].row_axis, Heatmap.row_axis), (grid.maps[0].column_axis, Heatmap.column_axis))
    things = (side if axis == usual else axis for side, (axis, usual) in zip(sides, axes, strict=True))
    thinned = {
        (side.step * (side.step > 1) * grid.maps[0].block, thing)
        for side, thing, number in zip(labels, things, shape, strict=True)
        if number > 1
    }
    texts += [f"every {ordinal(step)} {thing} is labelled" for step, thing in sorted(thinned) if step > 1]
    if labels[1].places is not None:
        texts.append(f"of the {'keys' if grid.lines else 'columns'}, those that get most are named first")
    low, _ = plan_limits(scale)
    if grid.lines and any((heatmap.shade(scale)[heatmap.allowed] > low).sum() > MAX_LINES for heatmap in grid.maps):
        texts.append(f"of each head, the {MAX_LINES} strongest lines are drawn")
    if grid.lines:
        thicker = "thicker" if line_room(cells) == 1 else "thicker and less faint"
        texts.append(f"the {thicker} a line, the larger its weight")
    if cells.annotated and any((abs(each.values[each.allowed]) < LEAST_WRITTEN).any() for each in grid.maps):
        texts.append(f"cells without a number: less than {LEAST_WRITTEN:.3f}".replace("0.", "."))
    if grid.fold is not None:
        texts.append(grid.fold.label)
    if grid.footnote:
        texts.append(grid.footnote)
    if cells.pools != (1, 1) or grid.maps[0].block > 1:
        texts.append(describe_cells(grid.statistic, grid.maps[0], cells, scale.family))
    return texts
