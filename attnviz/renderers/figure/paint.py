"""Plans of maps as pixels, in a small part of the time that matplotlib takes for the same plan. Knows no reports."""

import numpy as np
from matplotlib.cm import ScalarMappable

from attnviz.renderers.figure.layout import NUMBER_PAD, POINT, TICK, FigurePlan, PlacedMap, TextLine
from attnviz.renderers.figure.page import Canvas, Pixels, hatching, mix, rgb, to_bytes
from attnviz.renderers.figure.scale import OVER_IMAGE, colours_of, ground, numbers_in
from attnviz.renderers.figure.style import GREY
from attnviz.renderers.figure.text import ASCENT, DESCENT
from attnviz.report import Scale
from attnviz.shapes import Grey


def paint(plan: FigurePlan, cmap: str, dpi: int) -> Pixels:
    """Paint the picture of a plan: each cell in its exact colour, all else within a pixel of where `draw` puts it."""
    # What is painted later lies on top, so maps come first and words last. The plan says where all of it stands, in
    # inches: `draw` follows the same one, which keeps the two pictures alike.
    page = Canvas(plan.width, plan.height, dpi)
    colours = colours_of(plan.scale, cmap)
    for place in plan.places:
        _paint_map(page, place, plan, colours)
    _paint_bar(page, plan, colours)
    if plan.swatch is not None:
        _hatch(page.within(plan.swatch), plan.scale, dpi)
        page.frame(plan.swatch)
    for line in (*plan.lines, *plan.tokens):
        page.write(line)
    return page.pixels


def _paint_map(page: Canvas, place: PlacedMap, plan: FigurePlan, colours: ScalarMappable) -> None:
    # The hatching is laid under the whole map. Forbidden cells are masked, their colour is transparent, and so the
    # ground shows there. In a map of pairs, as of how alike heads are, the half left out stays blank.
    cells, pixels = plan.read_cells(place), page.within(place.box)
    if np.ma.is_masked(cells) and not place.heatmap.is_of_pairs:
        _hatch(pixels, plan.scale, page.dpi)
    painted = to_bytes(colours.to_rgba(cells))
    is_apart = plan.cells.are_apart(cells.shape) and place.heatmap.backdrop is None
    seam = (page.hairline, page.cover) if is_apart else (0, 0.0)
    _fill(pixels, painted, place.heatmap.backdrop, seam)
    page.frame(place.box)
    height, width = (n_pixels / number for n_pixels, number in zip(pixels.shape, cells.shape, strict=False))
    if plan.cells.annotated:
        (left, top, *_), dpi, size = page.edges(place.box), page.dpi, plan.sizes.smallest
        for x, y, text, ink in numbers_in(place.heatmap, plan.scale, colours):
            base = (top + y * height) / dpi + (ASCENT - DESCENT) / 2 * size * POINT
            page.write(TextLine(text, (left + x * width) / dpi, base, size, ink, "center"))


def _fill(pixels: Pixels, colours: np.ndarray, backdrop: Grey | None, seam: tuple[int, float]) -> None:
    """Repeat each cell's colour over its pixels; what is transparent leaves the ground as it is.

    Through colours over an image, that is seen. A `seam` between cells: how many pixels, and how white.
    """
    # Each pixel looks up its row and its column of cells. Cells need not be a whole number of pixels: some are one
    # pixel wider than others, and no line of pixels is left over or painted twice.
    rows, columns = (np.arange(n) * number // n for n, number in zip(pixels.shape, colours.shape[:2], strict=False))
    packed = np.ascontiguousarray(colours).view(np.uint32)[..., 0]  # a third of the time that four bytes take
    full = packed.take(columns, axis=1).take(rows, axis=0)[..., None].view(np.uint8)[..., :3]
    if backdrop is not None:  # only patches lie over an image
        from attnviz.renderers.figure.image import resize

        full = mix(resize(backdrop, *pixels.shape[:2])[..., None], full, OVER_IMAGE)
    if seam[0]:
        # The first pixels of every cell but the first of its axis become the seam. They are mixed from the colours as
        # they were, so that a corner, which lies on two seams, is not whitened twice.
        of_cells = full.copy()
        for axis, places in enumerate((rows, columns)):
            starts = np.flatnonzero(np.diff(places)) + 1
            at = (starts[:, None] + np.arange(seam[0])).ravel()
            full.swapaxes(0, axis)[at] = mix(of_cells.swapaxes(0, axis)[at], rgb("white"), seam[1])
    opaque = colours[..., 3:] > 0
    np.copyto(pixels, full, where=opaque.all() or opaque.take(columns, axis=1).take(rows, axis=0))


def _hatch(pixels: Pixels, scale: Scale, dpi: int) -> None:
    """Hatch the ground that forbidden cells leave open."""
    look = ground(scale)
    tile = hatching(dpi, look["facecolor"], look["edgecolor"])
    rows, columns = (np.arange(n) % len(tile) for n in pixels.shape[:2])
    pixels[:] = tile[:, columns][rows]


def _paint_bar(page: Canvas, plan: FigurePlan, colours: ScalarMappable) -> None:
    """Paint the colour bar, as `draw.draw_bar` has it."""
    left, top, right, bottom = page.edges(plan.bar)
    height = bottom - top
    # One shade for each row of pixels, at the middle of the row, the highest value on top.
    shades = to_bytes(colours.cmap((np.arange(height, 0, -1) - 0.5) / height))
    page.pixels[top:bottom, left:right] = shades[:, None, :3]
    page.frame(plan.bar)
    shares = np.asarray(colours.norm(np.array([value for value, _ in plan.ticks])))
    for share, (_, text) in zip(shares, plan.ticks, strict=True):
        y, size = bottom - height * float(share), plan.sizes.axis
        page.tick(right, y)
        x, base = right / page.dpi + TICK + NUMBER_PAD * POINT, y / page.dpi + ASCENT / 2 * size * POINT
        page.write(TextLine(text, x, base, size, GREY))
