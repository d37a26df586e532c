"""Where everything on a picture goes: texts are measured and the figure is built around them, so nothing is ever cut.

Inches from the upper left corner; maps lie on whole pixels, so that all cells are equal. Draws nothing.
"""

from dataclasses import replace
from itertools import count
from math import ceil, inf

from attnviz.errors import TooLarge
from attnviz.renderers.figure import layout
from attnviz.renderers.figure.grid import plan_in
from attnviz.renderers.figure.header import STANDS_OUT, measure_longest_word, refuse_width
from attnviz.renderers.figure.layout import FigurePlan, Room, is_small
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Report

MAX_HEIGHT = 9.0  # inches of a page's text
MIN_SIDE = 0.4  # inches of a map: in less, nothing is to be seen
MIN_OVER_IMAGE = 0.95  # and of one over an image: three in a column of a paper
MAX_OVERVIEW = 16.0  # inches of an overview: 2,400 pixels at the usual resolution
MIN_SMALL_SIDE = 0.04  # of a map there: in less, nothing is to be seen


def plan(picture: Heatmap | HeatmapGrid, report: Report, look: FigureStyle) -> FigurePlan:
    """Plan where everything on one picture is placed. Raises TooLarge for too small a width; says what would work."""
    if isinstance(picture, HeatmapGrid):  # lines begin and end at every token, and have titles over them
        picture = replace(picture, maps=layout.spell_maps(picture), small=picture.small and look.kind == "map")
    else:
        (picture,) = layout.spell_maps(picture)
    room = Room.for_picture(picture, look)
    if made := _fit_columns(picture, report, room):
        return made
    width, (n_rows, n_columns) = look.width or layout.MAX_GRID_WIDTH, layout.count_maps(picture)
    if is_small(picture):
        sizes = f"{n_rows} × {n_columns} maps have no room on {width:.3g} × {MAX_OVERVIEW:g} inches"
        raise TooLarge(sizes, hint="Choose fewer with --layer or --head.")
    wider = (tenths / 10 for tenths in count(ceil(10 * width)))
    needed = next(w for w in wider if _fit_columns(picture, report, room._replace(look=replace(look, width=w))))
    raise refuse_width(picture.name, look, room.sizes, needed)


def _fit_columns(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan | None:
    """Fit a picture, as `fit` does, in as many columns as leave each token its label on one page.

    Else every second token has its label, else some, else all columns are kept. A row per layer stays one where it
    fits; else each map has its title, and fewer stand in a row.
    """
    if not isinstance(picture, HeatmapGrid) or not picture.reflows or is_small(picture) or room.look.width is None:
        return fit(picture, report, room)
    if picture.edges is not None and (whole := fit(picture, report, room)):
        return whole
    picture, n_maps = replace(picture, edges=None), len(picture.maps)
    # The fewest columns for as many rows, so that maps are the larger.
    fewest = {ceil(n_maps / number): number for number in range(layout.count_maps(picture)[1], 0, -1)}
    grids = (replace(picture, n_columns=number) for number in fewest.values())
    plans = [fitted for grid in grids if (fitted := fit(grid, report, room))]
    labelled = [each for each in plans if all(label.step for label in each.labels) and each.height <= MAX_HEIGHT]
    if labelled and picture.maps[0].backdrop is None:  # which patch is which, the image says itself
        return min(labelled, key=lambda each: min(3, max(label.step for label in each.labels)))
    return next(iter(plans), None)


def fit(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> FigurePlan | None:
    """Find the plan with the largest maps for the width that is asked for; None where they would be too small.

    Very many maps have to fit a page in any case. Others are as large as they want to be where no width is asked for.
    """
    (n_rows, n_columns), small = layout.count_maps(picture), is_small(picture)
    if room.look.width is None and not small:
        return plan_in(picture, report, room)
    widest = room.look.width or layout.MAX_GRID_WIDTH
    longest = measure_longest_word(picture, room) if n_columns > 1 else 0.0
    side, least, highest = widest / n_columns, max(MIN_SIDE, longest), inf
    if isinstance(picture, HeatmapGrid) and picture.reflows and picture.maps[0].backdrop is not None:
        least = MIN_OVER_IMAGE
    if small:
        side, least, highest = min(layout.MAX_PANEL, side), MIN_SMALL_SIDE, MAX_OVERVIEW
    while side >= least:
        result = plan_in(picture, report, room._replace(side=side))
        over = max((result.width - widest) / n_columns, (result.height - highest) / n_rows)
        if over < 1e-6:  # cells are whole pixels, so that maps may be narrower than their share
            return result if result.places[0].box.width + STANDS_OUT >= longest else None
        side -= max(over, 1 / room.look.dpi)
    return None
