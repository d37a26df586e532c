"""Scatters: what is drawn is what the chart holds, lettered by group, and the same bytes each time."""

from __future__ import annotations

from math import inf, nan

import numpy as np
from matplotlib.figure import Figure

from attnviz.renderers.figure import scatter
from attnviz.renderers.figure.charts import draw_charts, plan_charts
from attnviz.renderers.figure.files import pdf, png, svg
from attnviz.renderers.figure.style import drawing
from attnviz.report import FigureStyle, Report, Scatter, ScatterPoint, Scatters

POINTS = (
    ScatterPoint("", "first token", "F", 0.1, 0.2),
    ScatterPoint("", "first token", "F", 0.2, 0.1),
    ScatterPoint("18.6", "induction", "I", 0.1, 0.9),
    ScatterPoint("", "", "", 0.5, 0.5),
    ScatterPoint("", "", "", nan, 0.5),
    ScatterPoint("", "previous $_$", "P", 0.9, inf),
)
PICTURE = Scatters("atlas", "all heads", (Scatter("", "to previous (share)", "peak (share)", POINTS),))
REPORT = Report("m over texts", "six heads", (PICTURE,))


def drawn(picture: Scatters = PICTURE) -> Figure:
    with drawing():
        return draw_charts(plan_charts(picture, REPORT, FigureStyle()))


def test_points_stand_where_their_numbers_are_the_rarest_group_on_top() -> None:
    (axes,) = drawn().axes
    points = [sorted(map(tuple, np.column_stack(line.get_data()).tolist())) for line in axes.lines]
    assert points == [[(0.5, 0.5)], [(0.1, 0.2), (0.2, 0.1)], [(0.1, 0.9)], []]
    assert axes.get_xlabel() == "to previous (share)"


def test_letters_stand_in_points_and_names_beside_them() -> None:
    (axes,) = drawn().axes
    assert sorted(text.get_text() for text in axes.texts) == ["18.6", "F", "F", "I"]
    legend = [text.get_text() for text in drawn().legends[0].get_texts()]
    assert legend == ["F: first token", "I: induction", "P: previous $_$"]


def test_what_cannot_be_drawn_is_said() -> None:
    assert scatter.caveats(PICTURE) == ["2 points without a number on either axis"]
    empty = Scatters("atlas", "", (Scatter("", "x", "y", POINTS[4:5]),))
    assert [text.get_text() for text in drawn(empty).axes[0].texts] == ["no points"]


def test_the_same_bytes_each_time() -> None:
    for render in (png, svg, pdf):
        assert list(render(REPORT, FigureStyle())) == list(render(REPORT, FigureStyle()))
