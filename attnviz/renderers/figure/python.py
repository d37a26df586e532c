"""Pictures as what matplotlib gives in Python: a figure of its own, or a map on axes that the user has."""

# The first import of matplotlib, kept silent.
from attnviz.renderers.figure.files import check_look, draw_plan, plan_picture

# isort: split

import io
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from attnviz.errors import InvalidOption
from attnviz.renderers.figure.colour_bar import plan_ticks
from attnviz.renderers.figure.draw import draw_mesh, literal, opacity_over
from attnviz.renderers.figure.layout import CLOSE
from attnviz.renderers.figure.scale import cells_of, colours_of, ground
from attnviz.renderers.figure.style import drawing, look_of
from attnviz.renderers.figure.text import drawable
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Picture, Report

Corners = Float[np.ndarray, "corner axis"]  # the lower left one, and the upper right one
CELLS = WeakKeyDictionary[Axes, SubplotSpec]()  # in which axes with a map were put: the map has a cell within it
LEAST = 0.5  # of these sides, which what is around a map leaves to it
MAX_TRIES = 4  # of which the next leaves as much room as the one before needed


class NotebookFigure(Figure):
    """A figure that a notebook shows, also where nobody has imported pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=self.dpi)
        return content.getvalue()


def _find_picture(report: Report) -> Picture:
    for picture in report.pictures:
        return picture
    raise InvalidOption("there is nothing to draw", hint=" ".join(note.text for note in report.notes if note.leads))


def figure(report: Report, look: FigureStyle) -> Figure:
    """Draw the first picture of a report. Raises InvalidOption, TooLarge."""
    check_look(look)
    with drawing(look_of(look.theme, look.font_size)[0]):
        made = draw_plan(plan_picture(_find_picture(report), report, look), look, NotebookFigure)
    made.set_dpi(look.dpi)
    return made


def draw_on(axes: Axes, report: Report, cmap: str) -> Figure:
    """Draw the report's one map on somebody's axes, with a colour bar beside it, and return the figure of these.

    It has their fonts and sizes. All of it lies in the axes' part of the figure: the map becomes smaller, and what
    then has no room is left out.

    Raises InvalidOption where there are several maps, and for what is no axes.
    """
    found: object = axes  # nobody has checked what Python hands over
    if not isinstance(found, Axes):
        raise InvalidOption(f"ax is {type(found).__name__}, not axes of matplotlib", hint="Of several: ax=axes[0].")
    picture = _find_picture(report)
    if isinstance(picture, HeatmapGrid) and len(picture.maps) == 1:
        (picture,) = picture.maps
    if not isinstance(picture, Heatmap):
        raise InvalidOption("axes hold one map, and there are several", hint='Choose one: pick="0.3".')
    scale = picture.scale or report.scale
    colours = colours_of(scale, cmap)
    axes.add_patch(Rectangle((0, 0), 1, 1, transform=axes.transAxes, zorder=0, **ground(scale)))
    shown = cells_of(picture, scale, pools=(1, 1))
    draw_mesh(axes, shown, colours, opacity_over(axes, picture.backdrop, shown))
    bar = axes.inset_axes((1.04, 0, 0.08, 1))
    axes.figure.colorbar(colours, cax=bar, label=scale.label).minorticks_off()
    axes.set(title=drawable(picture.title), xlabel=picture.column_axis, ylabel=picture.row_axis)
    literal(axes.title)
    axes.xaxis.set_tick_params(rotation=90)
    names: dict[Axis, Sequence[tuple[float, str]]] = {
        axes.xaxis: [(place + 0.5, drawable(name)) for place, name in enumerate(picture.columns)],
        axes.yaxis: [(place + 0.5, drawable(name)) for place, name in enumerate(picture.rows)],
        bar.yaxis: plan_ticks(scale)[::-1],  # the largest first
    }
    leave_out: list[Callable[[], object]] = [
        lambda: bar.set_ylabel(""),
        lambda: axes.set(xlabel="", ylabel=""),
        lambda: axes.set_title(drawable(picture.title).replace(", ", ",\n")),
        lambda: bar.set_visible(False),
        lambda: axes.set_title(""),
        lambda: names.update(dict.fromkeys(names, ())),
    ]
    own, cell = _find_place(axes)
    while not _fits(axes, own, names) and leave_out:
        leave_out.pop(0)()
    whole = axes.get_figure(root=True)
    assert whole is not None
    if cell is not None:
        left = np.diff([own[0], *axes.figure.transSubfigure.transform(axes.get_position()), own[1]], axis=0).T
        CELLS[axes], ratios = cell, {"width_ratios": left[0], "height_ratios": left[1, ::-1]}
        has_engine = whole.get_layout_engine() is not None
        axes.set_subplotspec(cell if has_engine else cell.subgridspec(3, 3, wspace=0, hspace=0, **ratios)[1, 1])
        axes.set_in_layout(True)  # tight_layout, say, is to know of them
    return whole


def _find_place(axes: Axes) -> tuple[Corners, SubplotSpec | None]:
    """Return where axes were put, in pixels, whatever a map took of it, and in which cell of a grid."""
    cell = CELLS.get(axes) or (axes.get_subplotspec() if axes.get_in_layout() else None)
    place = axes.get_position(original=True) if cell is None else cell.get_position(axes.figure)  # type: ignore[arg-type]
    return np.asarray(axes.figure.transSubfigure.transform(place)), cell


def _fits(axes: Axes, own: Corners, names: Mapping[Axis, Sequence[tuple[float, str]]]) -> bool:
    """Make a map so small that all around it is in the axes' part of the figure; tell whether half of it is left.

    That part ends a pixel before the middle between these axes and each of the others, on the side where these are
    further away, and as far from them on the other side; else at the figure's edge. Of names those are written that do
    not lie on others.
    """
    reach, edge, box = np.full(2, np.inf), axes.figure.bbox.get_points(), own
    for each in axes.figure.axes:
        low, high = _find_place(each)[0]
        gaps = np.maximum(low - own[1], own[0] - high)
        if (gaps > 0).any():
            reach[gaps.argmax()] = min(reach[gaps.argmax()], gaps.max() / 2 - 1)
    room = np.stack([np.maximum(edge[0], own[0] - reach), np.minimum(edge[1], own[1] + reach)])
    for _ in range(MAX_TRIES):
        axes.set_position(Bbox(axes.figure.transSubfigure.inverted().transform(box)))
        for axis, marks in names.items():
            close, written = CLOSE * float(axis.label.get_fontsize()) * axes.figure.dpi / 72, dict[float, str]()
            last = -np.inf
            for at, name in marks:
                place = axis.axes.transData.transform((at, at))[int(axis is not axes.xaxis)]
                if abs(place - last) >= close:
                    written[at], last = name, place
            axis.set_ticks([*written], [*written.values()])
            for text in axis.get_ticklabels():
                literal(text)
        map_box, whole = axes.get_window_extent().get_points(), axes.get_tightbbox().get_points()  # type: ignore[union-attr]
        if (whole[0] >= room[0] - 0.01).all() and (whole[1] <= room[1] + 0.01).all():
            return True
        beside = map_box - whole  # what is around it
        box = np.stack([np.maximum(own[0], room[0] + beside[0]), np.minimum(own[1], room[1] + beside[1])])
        if (box[1] - box[0] < LEAST * (own[1] - own[0])).any():
            return False
    return False
