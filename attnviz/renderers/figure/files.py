"""Reports as pictures: one file per map, overview and set of charts. What of matplotlib others may call is here.

The first import below is the first of matplotlib in the process, and it keeps that silent. A film
is a GIF of several.
"""

from attnviz.renderers.figure.style import AUTO, PAPER, colour_map, drawing

# isort: split

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from io import BytesIO
from math import floor, sqrt
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from matplotlib.figure import Figure
from PIL import Image

from attnviz.errors import TooLarge
from attnviz.renderers.figure.layout import FigurePlan, Room, fits_digits, maps_of
from attnviz.renderers.figure.page import png_of
from attnviz.renderers.figure.paint import paint
from attnviz.renderers.figure.plan import plan
from attnviz.renderers.figure.text import missing
from attnviz.renderers.figure.words import plan_text
from attnviz.report import Calculation, Charts, FigureStyle, Graph, Heatmap, HeatmapGrid, Picture, Report, WeightFactors

if TYPE_CHECKING:
    from attnviz.renderers.figure.draw import Sketch


MAX_PIXELS = 100_000_000
# At least, for the cells of an SVG or PDF, and for cells under so many inches: many viewers blur where pixels meet.
VECTOR_DPI, FINE_DPI, FINE_CELL = 150, 300, 0.02

Planned: TypeAlias = "FigurePlan | Sketch"
Kind = Literal["png", "svg", "pdf"]


def check_look(look: FigureStyle) -> None:
    """Check the name of the colour map. Raises InvalidOption for one that does not exist."""
    if look.cmap != AUTO:
        colour_map(look.cmap)


def undrawable(report: Report) -> str:
    """List the characters in the pictures' texts that none of our fonts has, sorted: they are drawn as boxes."""
    texts = {report.title, report.subtitle, report.scale.label, *_list_texts([*report.pictures])}
    return "".join(sorted(set().union(*map(missing, texts))))


def is_annotated(picture: Picture, look: FigureStyle = FigureStyle()) -> bool:  # noqa: B008 - it is frozen
    """Check whether `FigureStyle.annotate` writes numbers into all cells of this picture: only where they fit."""
    return not isinstance(picture, Heatmap | HeatmapGrid) or fits_digits(picture, Room.for_picture(picture, look))


def _pictures(report: Report, look: FigureStyle, kind: Kind) -> Iterator[tuple[str, bytes]]:
    """Plan all pictures before the first is drawn, so that one that is too large is refused at once."""
    check_look(look)
    plans = [plan_picture(picture, report, look) for picture in report.pictures]
    return ((f"{each.name}.{kind}", _content(each, report, look, kind)) for each in plans)


# Each yields each picture's file name and what the file holds. Raises InvalidOption, TooLarge.
png = partial(_pictures, kind="png")
svg = partial(_pictures, kind="svg")  # texts are outlines
pdf = partial(_pictures, kind="pdf")  # fonts are embedded


def plan_picture(picture: Picture, report: Report, look: FigureStyle) -> Planned:
    """Plan how large one picture is and where each part of it lies. Raises TooLarge, and says what would work."""
    made: Planned
    match picture:  # what few pictures want is imported only for them
        case Heatmap() | HeatmapGrid():
            if maps_of(picture)[0].is_of_pairs:
                look = replace(look, kind="map")
            made = (plan_text if look.kind == "text" else plan)(picture, report, look)
        case Calculation():
            from attnviz.renderers.figure.calculation import plan_calculation

            made = plan_calculation(picture, report, look)
        case Charts():
            from attnviz.renderers.figure.charts import plan_charts

            made = plan_charts(picture, report, look)
        case Graph():
            from attnviz.renderers.figure.graph import plan_graph

            made = plan_graph(picture, report, look)
        case _:
            assert_never(picture)
    if (n_pixels := made.width * made.height * look.dpi**2) > MAX_PIXELS:
        pixels = f"{made.width * look.dpi:.0f} × {made.height * look.dpi:.0f} pixels"
        works = floor(0.98 * look.dpi * sqrt(MAX_PIXELS / n_pixels))
        raise TooLarge(f"{made.name!r} would have {pixels}", hint=f"Up to {works} dpi it can be drawn.")
    return made


def _list_texts(thing: object) -> Iterator[str]:
    """List all texts that pictures hold; factors are of what is not drawn."""
    if isinstance(thing, str):
        yield thing
    elif is_dataclass(thing) and not isinstance(thing, WeightFactors):
        yield from _list_texts([getattr(thing, field.name) for field in fields(thing)])
    elif isinstance(thing, list | tuple | Mapping):
        for each in thing.values() if isinstance(thing, Mapping) else thing:
            yield from _list_texts(each)


def draw_plan(layout: Planned, look: FigureStyle, kind: type[Figure] = Figure) -> Figure:
    """Draw the figure of one plan, of that kind where it shows maps. To be called within `style.drawing`."""
    if isinstance(layout, FigurePlan):
        from attnviz.renderers.figure.draw import draw  # what is painted needs nothing of it

        return draw(layout, look.cmap, kind)
    return layout.draw()


def _content(layout: Planned, report: Report, look: FigureStyle, kind: Kind) -> bytes:
    # Pictures that are drawn by the thousand have a shorter way.
    is_plain = layout.theme == PAPER and look.width is None and not look.transparent
    if kind == "png" and isinstance(layout, FigurePlan) and layout.kind == "map" and is_plain:
        return png_of(paint(layout, look.cmap, look.dpi), look.dpi, _facts(layout.title, report))
    content = BytesIO()
    with drawing(layout.theme, look.svg_text):
        is_fine = isinstance(layout, FigurePlan) and min(side.length for side in layout.cells[:2]) < FINE_CELL
        least = 1 if kind == "png" else FINE_DPI if is_fine else VECTOR_DPI
        dpi = look.dpi * max(1, -(-least // look.dpi))
        metadata = _metadata(layout.title, report, kind)
        draw_plan(layout, look).savefig(content, format=kind, dpi=dpi, metadata=metadata, transparent=look.transparent)
    return content.getvalue()


def _facts(title: str, report: Report) -> dict[str, str]:
    return {"Title": title, "Description": report.subtitle, **dict(report.facts)}


def _metadata(title: str, report: Report, kind: Kind) -> Mapping[str, str | list[str] | None]:
    """Say where the picture comes from; no clock and no version, so that the same input makes the same bytes."""
    if kind == "png":
        return {**_facts(title, report), "Software": None}
    facts = [f"{name}: {value}" for name, value in report.facts]
    if kind == "svg":
        return {"Title": title, "Description": report.subtitle, "Keywords": facts, "Creator": "attnviz", "Date": None}
    return {
        "Title": title,
        "Subject": report.subtitle,
        "Keywords": "; ".join(facts),
        "Creator": "attnviz",
        "CreationDate": None,
    }


MILLISECONDS = 200  # a frame


def join_frames(pictures: Sequence[bytes]) -> bytes:
    """Join PNGs of one size to a GIF that repeats."""
    first, *others = (Image.open(BytesIO(picture)).convert("RGB") for picture in pictures)
    sink = BytesIO()
    first.save(sink, "GIF", save_all=True, append_images=others, duration=MILLISECONDS, loop=0)
    return sink.getvalue()
