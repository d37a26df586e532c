"""Reports as pictures: one file per map and overview. What of matplotlib others may call is here.

The first import below is the first of matplotlib in the process, and it keeps that silent.
"""

from __future__ import annotations

from attnviz.renderers.style import colour_map, drawing

# isort: split

import io
from collections.abc import Iterator
from typing import Literal

from attnviz.errors import BadOption
from attnviz.renderers.figure_draw import draw
from attnviz.renderers.figure_layout import Plan, fits_digits, maps_of
from attnviz.renderers.figure_plan import plan
from attnviz.renderers.figure_text import missing
from attnviz.report import Heatmap, Look, Panels, Report

FEWEST_DPI, MOST_DPI = 30, 2400
VECTOR_DPI = 300  # at least, for the cells of an SVG or PDF

Kind = Literal["png", "svg", "pdf"]


def png(report: Report, look: Look) -> Iterator[tuple[str, bytes]]:
    """Each picture's file name and pixels. Raises BadOption, TooLarge."""
    return _pictures(report, look, "png")


def svg(report: Report, look: Look) -> Iterator[tuple[str, bytes]]:
    """Each picture's file name and vectors; texts are outlines. Raises BadOption, TooLarge."""
    return _pictures(report, look, "svg")


def pdf(report: Report, look: Look) -> Iterator[tuple[str, bytes]]:
    """Each picture's file name and vectors; fonts are embedded. Raises BadOption, TooLarge."""
    return _pictures(report, look, "pdf")


def check_look(look: Look) -> None:
    """Raises BadOption for a colour map or a resolution that there is not."""
    colour_map(look.cmap)
    if not FEWEST_DPI <= look.dpi <= MOST_DPI:
        raise BadOption(
            f"--dpi {look.dpi} is out of range",
            hint=f"Between {FEWEST_DPI} and {MOST_DPI}; 150 for screens, 300 for print.",
        )


def undrawable(report: Report) -> str:
    """The characters in the pictures' texts that none of our fonts has, sorted: drawn as boxes."""
    texts = {report.title, report.subtitle, report.scale.label}
    for picture in report.pictures:
        texts.add(picture.title)
        for heatmap in maps_of(picture):
            texts |= {heatmap.title, heatmap.row_axis, heatmap.column_axis, *heatmap.rows, *heatmap.columns}
    return "".join(sorted(set().union(*map(missing, texts))))


def annotated(picture: Heatmap | Panels) -> bool:
    """Whether `Look.annotate` writes numbers into this picture's cells: only where they fit."""
    return fits_digits(picture)


def _pictures(report: Report, look: Look, kind: Kind) -> Iterator[tuple[str, bytes]]:
    """All pictures are planned before the first is drawn, so that one that is too large is refused at once."""
    check_look(look)
    plans = [plan(picture, report, look) for picture in report.pictures]
    return ((f"{each.name}.{kind}", _content(each, report, look, kind)) for each in plans)


def _content(planned: Plan, report: Report, look: Look, kind: Kind) -> bytes:
    content = io.BytesIO()
    with drawing():
        dpi = look.dpi if kind == "png" else look.dpi * max(1, -(-VECTOR_DPI // look.dpi))
        draw(planned, report.scale, look.cmap).savefig(
            content, format=kind, dpi=dpi, metadata=_metadata(planned, report, kind)
        )
    return content.getvalue()


def _metadata(planned: Plan, report: Report, kind: Kind) -> dict[str, str | list[str] | None]:
    """Where the picture comes from; no clock and no version, so that the same input makes the same bytes."""
    title = planned.title
    if kind == "png":
        return {"Title": title, "Description": report.subtitle, **dict(report.facts), "Software": None}
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
