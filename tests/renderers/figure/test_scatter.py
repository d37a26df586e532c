"""Scatters: what is drawn is what the chart holds, lettered by group, and the same bytes each time."""

from __future__ import annotations

from math import inf, nan

import numpy as np
from matplotlib.figure import Figure

from attnviz.renderers.figure import scatter
from attnviz.renderers.figure.charts import draw_charts, plan_charts
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
    assert scatter.caveats(PICTURE, (4.6, 2.8), 7.0) == ["2 points without a number on either axis"]
    empty = Scatters("atlas", "", (Scatter("", "x", "y", POINTS[4:5]),))
    assert [text.get_text() for text in drawn(empty).axes[0].texts] == ["no points"]


def test_labels_are_written_where_there_is_room_those_farthest_out_first() -> None:
    """Of a crowd only the one that leads has its label; the one at the right edge has it at its left."""
    crowd = tuple(ScatterPoint(f"0.{n}", "", "", 0.5, 0.5 + n * 1e-6, n == 5) for n in range(9))
    corners = (ScatterPoint("1.0", "", "", 0.0, 0.0), ScatterPoint("1.1", "", "", 1.0, 1.0))
    chart = Scatter("", "x", "y", (*crowd, *corners))
    placed = scatter.place_labels(chart, (4.6, 2.8), 7.0)
    assert [point.label for point in placed][:3] == ["0.5", "1.0", "1.1"]
    assert len(placed) < 6
    assert {label: at[0] > 0 for point, at in placed.items() if (label := point.label)[0] == "1"} == {
        "1.0": True,
        "1.1": False,
    }
    (close,) = scatter.caveats(Scatters("a", "", (chart,)), (4.6, 2.8), 7.0)
    assert close == f"{11 - len(placed)} points are too close to others to be labelled"
    boxes = []
    for point, at in placed.items():
        middle = (np.array([point.x, point.y]) * 0.94 + 0.03) * np.array([4.6, 2.8]) * 72 + np.array(at)
        boxes.append((middle - 3, middle + 3))
    for n, (low, high) in enumerate(boxes):
        assert not any((low < other[1]).all() and (high > other[0]).all() for other in boxes[:n])
