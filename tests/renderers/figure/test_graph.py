"""A graph as a figure: arrows lead where the edges do, names stand apart, and what has no room is refused."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.patches import PathPatch, Polygon
from matplotlib.transforms import Bbox

from attnviz.errors import TooLarge
from attnviz.renderers.figure.files import draw_plan
from attnviz.renderers.figure.graph import LOOKS, GraphPlan, plan_graph
from attnviz.renderers.figure.layout import TextLine
from attnviz.renderers.figure.style import drawing
from attnviz.report import EdgeKind, FigureStyle, Graph, GraphEdge, GraphNode, Report
from tests.renderers.figure.reports import outside, overlapping, visible_texts, words

KINDS: tuple[EdgeKind, ...] = ("for", "against", "looks", "because")


def graph_of(n_tokens: int, n_heads: int = 9) -> Graph:
    """Heads of three layers that each read a word and write to the answer."""
    heads = [
        GraphNode(f"{at % 3 + 20}.{at}", at % 3 + 20, f"layer {at % 3 + 20}", note="+1.25", lane=(at + 0.5) / n_heads)
        for at in range(n_heads)
    ]
    read = [GraphNode("w", -2, "", token=at) for at in range(min(n_tokens, n_heads))]
    nodes = (GraphNode("‘.’", 30, "answer"), *heads, *read)
    edges = [GraphEdge(1 + at, 0, KINDS[at % 4], at / n_heads, "") for at in range(n_heads)]
    edges += [GraphEdge(1 + n_heads + at % len(read), 1 + at, KINDS[at % 4], 0.5, "") for at in range(n_heads)]
    labels = words(n_tokens)
    return Graph("explanation", labels, (*range(n_tokens),), nodes, tuple(edges), dict.fromkeys(KINDS, "a kind"))


def plan_of(graph: Graph, **look: object) -> GraphPlan:
    report = Report("a title", "a subtitle", (graph,), caveat="untrained")
    return plan_graph(graph, report, FigureStyle(**look))  # type: ignore[arg-type]


@pytest.mark.parametrize("n_tokens", [1, 3, 11, 64])
@pytest.mark.parametrize("look", [{}, {"width": 3.3}, {"width": 3.3, "header": False}, {"theme": "dark"}])
def test_no_name_is_cut_or_lies_on_another(n_tokens: int, look: dict[str, object]) -> None:
    graph = graph_of(n_tokens)
    plan = plan_of(graph, **look)
    assert look.get("width") is None or plan.width == pytest.approx(3.3, abs=0.01)
    with drawing(plan.theme):
        figure = draw_plan(plan, FigureStyle())
        assert outside(figure) == []
        texts = visible_texts(figure)
        assert overlapping([(text.get_text(), text.get_window_extent()) for text in texts]) == []
        assert all(float(text.get_fontsize()) >= 6 for text in texts)
        assert ("untrained" in [text.get_text() for text in texts]) == (look.get("header") is False)
    assert {f"{node.name} {node.note}".strip() for node in graph.nodes if node.row} < {line.text for line in plan.lines}
    boxes = [Bbox.from_bounds(*box) for box in plan.boxes]
    shared = [Bbox.intersection(*pair) for pair in combinations(boxes, 2)]
    assert max((min(box.size) for box in shared if box), default=0) < 1e-6


def test_arrows_lead_up_from_who_wrote_to_who_reads_as_thick_as_their_share() -> None:
    graph = graph_of(11)
    plan = plan_of(graph)
    with drawing(plan.theme):
        (axes,) = draw_plan(plan, FigureStyle()).axes
    curves = [each for each in axes.patches if isinstance(each, PathPatch)][: len(graph.edges)]
    tips = [each for each in axes.patches if isinstance(each, Polygon)]
    names = {line.text: line for line in plan.lines}

    def line_of(node: GraphNode) -> TextLine:
        return names[graph.tokens[node.token] if node.token is not None else f"{node.name} {node.note}".strip()]

    for edge, curve, tip in zip(graph.edges, curves, tips, strict=False):
        (x, start), (to_x, top) = np.asarray(curve.get_path().vertices)[0], tip.get_xy()[0]
        source, target = line_of(graph.nodes[edge.source]), line_of(graph.nodes[edge.target])
        assert target.y < top < start < source.y  # inches from above
        assert max(abs(x - source.x), abs(to_x - target.x)) < 0.5
        assert curve.get_linestyle() == LOOKS[edge.kind][1]
    widths = [curve.get_linewidth() for curve in curves]
    assert np.argsort(widths[:9]).tolist() == [*range(9)]
    assert len({round(float(tip.get_xy()[0][0]), 6) for tip in tips[:9]}) == 9  # side by side


def test_what_has_no_room_is_refused_with_a_width_that_works() -> None:
    with pytest.raises(TooLarge, match="1 in are too few for 'explanation'") as refusal:
        plan_of(graph_of(3), width=1.0)
    (works,) = re.findall(r"--width ([\d.]+)in", str(refusal.value.hint))
    assert plan_of(graph_of(3), width=float(works)).width == pytest.approx(float(works), abs=0.01)
