"""All heads on one page, and graphs of those that wrote an answer: names that stand apart, and what is thinned."""

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.patches import PathPatch, Polygon
from matplotlib.transforms import Bbox

from attnviz.errors import TooLarge
from attnviz.renderers.figure.files import draw_plan
from attnviz.renderers.figure.graph import LOOKS, GraphPlan, plan_graph
from attnviz.renderers.figure.layout import TextLine
from attnviz.renderers.figure.plan import plan
from attnviz.renderers.figure.style import drawing
from attnviz.report import EdgeKind, FigureStyle, Graph, GraphEdge, GraphNode, HeatmapGrid, Report
from tests.renderers.figure.reports import (
    LIFT,
    drawn,
    outside,
    overlapping,
    panels,
    report,
    small,
    visible_texts,
    words,
)


def many(n_tokens: int, n_layers: int, n_heads: int) -> HeatmapGrid:
    return replace(small(panels(n_tokens, n_layers * n_heads, n_heads, causal=True)), scale=LIFT)


@pytest.mark.parametrize(
    ("n_tokens", "n_layers", "n_heads"),
    [(48, 48, 25), (3, 30, 9), (11, 6, 12), (64, 30, 9), (256, 5, 8)],
)
def test_all_heads_are_on_one_page(n_tokens: int, n_layers: int, n_heads: int) -> None:
    made = plan(many(n_tokens, n_layers, n_heads), report(), FigureStyle())
    assert round(150 * made.height) <= 2400
    assert made.width <= 12
    room = min(16 / n_layers, 12 / n_heads)
    assert made.places[0].box.height > 0.55 * room
    boxes = [place.box for place in made.places]
    below, beside = boxes[n_heads], boxes[1]
    assert boxes[0].top + boxes[0].height < below.top
    assert boxes[0].left + boxes[0].width < beside.left


def test_layers_and_heads_are_named_once_at_the_edges() -> None:
    with drawn(report(many(14, 12, 9))) as made:
        assert [text for text in made.texts if text.isdecimal()] == [*map(str, range(12)), *map(str, range(9))]
        assert made.texts.count("layer") == made.texts.count("head") == 1
        assert not [text for text in made.texts if text.startswith("layer ")]
        assert outside(made.figure) == []
        maps = [("map", axes.get_window_extent()) for axes in [*made.maps, made.bar]]
        assert overlapping([(text.get_text(), text.get_window_extent()) for text in made.figure.texts] + maps) == []
        said = " ".join(made.texts)
        assert "rows are queries, from the top, and columns keys, from the left; tokens are not labelled" in said


@pytest.mark.parametrize("width", [3.3, 7.0])
def test_a_width_that_is_asked_for(width: float) -> None:
    assert plan(many(14, 6, 12), report(), FigureStyle(width=width)).width == pytest.approx(width)
    with pytest.raises(TooLarge, match=r"6 × 100 maps have no room on 3\.3 × 16 inches"):
        plan(many(4, 6, 100), report(), FigureStyle(width=3.3))


# --- A graph as a figure: arrows lead where the edges do, names stand apart, and what has no room is refused ---


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
    report = Report("a title", "a subtitle", (graph,))
    return plan_graph(graph, report, FigureStyle(**look))  # type: ignore[arg-type]


@pytest.mark.parametrize(("n_tokens", "look"), [(1, {}), (11, {"width": 3.3, "header": False}), (64, {"width": 3.3})])
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
    assert {f"{node.name} {node.note}".strip() for node in graph.nodes if node.row} < {line.text for line in plan.lines}
    boxes = [Bbox.from_bounds(*box) for box in plan.boxes]
    assert len(boxes) == len(graph.nodes)  # a word without an arrow hides none
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
