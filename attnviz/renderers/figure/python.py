"""Pictures as what matplotlib gives in Python: a figure of its own, or a map on axes that the user has."""

from attnviz.renderers.figure.files import (
    check_look,
    draw_plan,
    plan_picture,
)  # the first import of matplotlib, kept silent

# isort: split

import io
from math import ceil

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnviz.errors import InvalidOption
from attnviz.renderers.figure.draw import draw_mesh, literal, opacity_over
from attnviz.renderers.figure.layout import CLOSE
from attnviz.renderers.figure.scale import cells_of, colours_of, ground, plan_ticks
from attnviz.renderers.figure.style import drawing, look_of
from attnviz.renderers.figure.text import drawable
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Picture, Report


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
    """The first picture of a report. Raises InvalidOption, TooLarge."""
    check_look(look)
    with drawing(look_of(look.theme, look.font_size)[0]):
        made = draw_plan(plan_picture(_find_picture(report), report, look), look, NotebookFigure)
    made.set_dpi(look.dpi)
    return made


def draw_on(axes: Axes, report: Report, cmap: str) -> None:
    """Draw the report's one map on somebody's axes, in their fonts and sizes, with a colour bar beside it.

    As many tokens are named as have room. Where several axes stand in one figure, its layout keeps them apart, such as
    `plt.subplots(1, 2, layout="constrained")`.

    Raises InvalidOption where there are several maps, and for what is no axes.
    """
    found: object = axes  # nobody has checked what Python hands over
    if not isinstance(found, Axes):
        raise InvalidOption(f"a {type(found).__name__} is not matplotlib axes", hint="Of several, as in ax=axes[0].")
    picture = _find_picture(report)
    if isinstance(picture, HeatmapGrid) and len(picture.maps) == 1:
        (picture,) = picture.maps
    if not isinstance(picture, Heatmap):
        raise InvalidOption("axes hold one map, and there are several", hint='Choose one: pick="0.3".')
    scale = picture.scale or report.scale
    colours = colours_of(scale, cmap)
    axes.add_patch(Rectangle((0, 0), 1, 1, transform=axes.transAxes, zorder=0, **ground(scale)))
    shown = cells_of(picture, scale, pools=(1, 1))
    draw_mesh(axes, shown, *colours, opacity_over(axes, picture.backdrop, shown))
    bar = axes.figure.colorbar(colours.mappable, ax=axes, label=scale.label)
    bar.set_ticks([tick for tick, _ in plan_ticks(scale)], labels=[text for _, text in plan_ticks(scale)])
    bar.ax.minorticks_off()
    axes.set(title=drawable(picture.title), xlabel=picture.column_axis, ylabel=picture.row_axis)
    literal(axes.title)
    axes.xaxis.set_tick_params(rotation=90)
    room = axes.get_window_extent()
    for axis, names, pixels in (axes.xaxis, picture.columns, room.width), (axes.yaxis, picture.rows, room.height):
        close = CLOSE * float(axis.label.get_fontsize()) * axes.figure.dpi / 72
        places = range(0, len(names), max(1, ceil(close * len(names) / pixels)))
        axis.set_ticks([place + 0.5 for place in places], [drawable(names[place]) for place in places])
        for text in axis.get_ticklabels():
            literal(text)
