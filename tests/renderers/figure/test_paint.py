"""Pictures painted by us: cells in their very colours, all else as matplotlib draws it, but for smoothing."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import LogNorm, Normalize

from attnviz.renderers.figure import files as figure
from attnviz.renderers.figure.plan import plan
from attnviz.renderers.figure.style import HAIRLINE
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Report, Scale
from attnviz.report import Picture as Shape
from tests.renderers.figure import reports

SHARED = Scale("shared", 0.0, 0.37, "shared")
# Of two models that cut a text differently.
UNEQUAL = HeatmapGrid("overview", "two models", (reports.heatmap(5), reports.heatmap(7)), 2)
HALF_THE_INK = 115  # of black on white: what smoothing may take from a pixel or give it


def files(shown: Report, look: FigureStyle) -> list[bytes]:
    return [content for _, content in figure.png(shown, look)]


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "draw_plan", lambda *_: pytest.fail("drawn by matplotlib"))


@pytest.mark.usefixtures("without_matplotlib")
@pytest.mark.parametrize(
    "scale",
    [reports.FIXED, SHARED, reports.LOG, Scale("lift", 1.0, 16.0, ""), Scale("diverging", -0.2, 0.2, "")],
    ids=lambda scale: scale.kind,
)
@pytest.mark.parametrize(
    ("shape", "look"),
    [((9, 9), FigureStyle("viridis", 60)), ((64, 64), FigureStyle("mako"))],
)
def test_every_pixel_has_the_colour_of_its_weight(scale: Scale, shape: tuple[int, int], look: FigureStyle) -> None:
    shown = replace(reports.heatmap(*shape, causal=True), scale=scale)
    image = reports.cell_pixels(reports.report(shown), look)
    norm, cmap = Normalize(scale.low, scale.high), look.cmap
    values = np.array(shown.values, dtype=float)
    if scale.kind == "lift":  # times the number of keys that the query may attend to
        values = values * shown.allowed.sum(axis=1, keepdims=True)
    if scale.kind in ("log", "lift"):
        norm, values = LogNorm(scale.low, scale.high), np.maximum(values, scale.low)
    if scale.kind == "diverging":
        cmap = "RdBu_r"
    colours = np.round(255 * mpl.colormaps[cmap](norm(values))[..., :3])
    size = [whole // number for whole, number in zip(image.shape, shape, strict=False)]
    expected, allowed = (each.repeat(size[0], 0).repeat(size[1], 1) for each in (colours, shown.allowed))
    row, column = (np.arange(whole) for whole in image.shape[:2])
    first = [(place > 0) & (place % length == 0) for place, length in zip((row, column), size, strict=True)]
    seam = (first[0][:, None] | first[1]) if max(shape) <= 40 else np.zeros(image.shape[:2], dtype=bool)
    white = np.round(expected + (255 - expected) * min(1, HAIRLINE * look.dpi / 72))
    assert np.abs(image[allowed & seam] - white[allowed & seam]).max(initial=0) <= 1
    assert np.array_equal(image[allowed & ~seam], expected[allowed & ~seam])


@pytest.mark.usefixtures("without_matplotlib")
def test_maps_of_several_sizes_fill_boxes_of_one_size() -> None:
    planned = plan(UNEQUAL, reports.report(UNEQUAL), FigureStyle())
    image = reports.pixels(reports.report(UNEQUAL))
    for place in planned.places:
        left, top, width, height = (round(150 * part) for part in place.box)
        box = image[top : top + height, left : left + width]
        changes = [(np.diff(box.astype(int), axis=axis) != 0).any(axis=(1 - axis, 2)).sum() for axis in (0, 1)]
        assert changes == [2 * (each - 1) for each in place.heatmap.values.shape]  # into the seam, and out of it


def unlike(ours: np.ndarray, theirs: np.ndarray) -> int:
    """How far at most a pixel is out of the range of those at its place and around it in the other picture."""
    farthest = 0
    for one, other in ((ours, theirs), (theirs, ours)):
        own, low, high = (each.astype(np.int16) for each in (one, around(np.minimum, other), around(np.maximum, other)))
        farthest = max(farthest, int((low - own).max()), int((own - high).max()))
    return farthest


def around(pick: np.ufunc, image: np.ndarray) -> np.ndarray:
    """The least or largest of each pixel and its eight neighbours."""
    image = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = pick(pick(image[:-2], image[1:-1]), image[2:])
    picked: np.ndarray = pick(pick(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:])
    return picked


@pytest.mark.parametrize(
    ("picture", "look"),
    [
        (reports.heatmap(30), FigureStyle(dpi=150)),
        (reports.labelled(reports.SCRIPTS), FigureStyle(dpi=150)),
        (reports.labelled(reports.HOSTILE), FigureStyle(dpi=72)),
        (reports.difference(9, causal=False), FigureStyle(dpi=100, annotate=True)),
        (replace(reports.panels(20), scale=reports.LOG), FigureStyle("Greys", dpi=200)),
        (UNEQUAL, FigureStyle(dpi=150)),
        (reports.small(reports.panels(14, n_heads=40, n_columns=8)), FigureStyle(dpi=150)),
    ],
    ids=["rotated", "scripts", "hostile", "numbers", "log", "unequal", "edges"],
)
def test_all_is_within_a_pixel_of_where_matplotlib_draws_it(picture: Heatmap | HeatmapGrid, look: FigureStyle) -> None:
    shown = reports.report(picture, title="注意力 مرحبا 👩\u200d🚀 e\u0301 $x$")
    ours, theirs = reports.pixels(shown, look), reports.by_matplotlib(shown, look)
    assert unlike(ours, theirs) <= HALF_THE_INK
    assert unlike(np.roll(ours, 2, axis=0), theirs) > HALF_THE_INK  # so that two pixels are seen
    assert unlike(np.roll(ours, 2, axis=1), theirs) > HALF_THE_INK


@pytest.mark.parametrize("dpi", [72, 150, 300])
def test_forbidden_cells_are_as_dark_as_those_of_matplotlib(dpi: int) -> None:
    shown, look = reports.report(reports.heatmap(12, causal=True)), FigureStyle(dpi=dpi)
    left, top, width, height = (round(dpi * part) for part in plan(reports.first_map(shown), shown, look).places[0].box)
    corner = np.s_[top + 2 : top + height // 3, left + 2 * width // 3 : left + width - 2]
    ours, theirs = (painted[corner] for painted in (reports.pixels(shown, look), reports.by_matplotlib(shown, look)))
    assert np.abs(ours.mean(axis=(0, 1)) - theirs.mean(axis=(0, 1))).max() < 3
    assert np.ptp(ours[..., 0]) > 40


def test_same_bytes_whatever_was_drawn_before() -> None:
    heads: tuple[Shape, ...] = (reports.panels(7), *reports.panels(7).maps)
    look = FigureStyle(dpi=72)
    forwards, backwards = files(reports.report(*heads), look), files(reports.report(*reversed(heads)), look)
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == len(heads)
    files(reports.report(reports.labelled(reports.HOSTILE)), FigureStyle("mako", 150))
    assert files(reports.report(*heads), look) == forwards
