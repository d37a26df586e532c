"""A graph over the words of a text: where everything goes, and drawn.

Each row of nodes stands above those that it reads, and the words stand below all. Rows and words are broken into lines
as the width wants, so that no two names touch; arrows pass behind names, from the upper edge of one to the lower edge
of another, side by side where several lead to one. Lengths are inches from the upper left corner, text sizes points.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Polygon, Rectangle
from matplotlib.path import Path

from attnviz.renderers.figure.draw import Sketch
from attnviz.renderers.figure.header import MARGIN, below, ceil_to_pixel, frame, header_of, paragraph, refuse_width
from attnviz.renderers.figure.layout import GAP, PAD, POINT, Box, TextLine
from attnviz.renderers.figure.style import AXIS, COLOURS, GREY, INK, Sizes, look_of
from attnviz.renderers.figure.text import extent, wrap
from attnviz.renderers.figure.words import Paragraph, flow_words
from attnviz.report import EdgeKind, FigureStyle, Graph, GraphEdge, Report

WIDTH = 5.2  # inches, with text of the usual size
HIGH, APART = 1.6, 2.4  # of the text's size: a node, and from row to row
THIN, THICK, TIP = 0.5, 3.0, 1.6  # points, of an arrow of share 0 and 1; of a tip, times that and as much again
LOOKS: Mapping[EdgeKind, tuple[str, str]] = {  # colour and line
    "for": (COLOURS[1], "-"),
    "against": (COLOURS[0], "-"),
    "looks": (GREY, "-"),
    "because": (COLOURS[2], "--"),
}


Point = tuple[float, float]


@dataclass(frozen=True, eq=False)
class GraphPlan(Sketch):
    """A graph before it is drawn. Boxes are behind names, of the colour of the ground."""

    arrows: tuple[tuple[GraphEdge, Point, Point], ...]  # from where to where
    boxes: tuple[Box, ...]

    def paint(self, axes: Axes) -> None:
        """Draw arrows, and boxes over them."""
        for edge, (x, y), (to_x, to_y) in self.arrows:
            width, (colour, dashes) = THIN + (THICK - THIN) * edge.share, LOOKS[edge.kind]
            wide, high = (TIP * width / 2 + TIP) * POINT, (TIP * width + 2 * TIP) * POINT
            foot, middle, colour = to_y + high, (y + to_y + high) / 2, self.theme.find_ink(colour)
            curve = Path([(x, y), (x, middle), (to_x, middle), (to_x, foot)], [Path.MOVETO, *[Path.CURVE4] * 3])
            look: dict[str, Any] = {"edgecolor": colour, "linewidth": width, "linestyle": dashes, "capstyle": "butt"}
            axes.add_patch(PathPatch(curve, fill=False, zorder=2, **look))
            tip = [(to_x, to_y), (to_x - wide, foot), (to_x + wide, foot)]
            axes.add_patch(Polygon(tip, facecolor=colour, linewidth=0, zorder=2))
        for left, top, width, height in self.boxes:
            axes.add_patch(Rectangle((left, top), width, height, facecolor=self.theme.ground, linewidth=0, zorder=3))


def plan_graph(graph: Graph, report: Report, look: FigureStyle) -> GraphPlan:
    """Plan where everything is placed. Raises TooLarge if the width asked for is too small, and for too many pixels."""
    sizes = look_of(look.theme, look.font_size)[1]
    width = ceil_to_pixel(look.width or WIDTH * sizes.axis / AXIS, look.dpi)
    header, top = header_of(graph, report, width, look, sizes)
    boxes, names, top = _place_nodes(graph, (top, width), sizes)
    needed = max(box.left + box.width for box in boxes.values()) + MARGIN
    if needed > width + 1e-6:
        raise refuse_width(graph.name, look, sizes, needed)
    below_all = Paragraph("words" if graph.tokens else "", graph.tokens, [0.0] * len(graph.tokens), None)
    named, words, end = flow_words([below_all], (top, width), sizes.axis)
    places = boxes | {
        place: words[node.token].box
        for place, node in enumerate(graph.nodes)
        if place not in boxes and node.token is not None
    }
    read = {graph.nodes[place].token for place in places.keys() - boxes.keys()}
    lines = [*header, *names, *named]
    lines += [word.line._replace(colour=INK if at in read else GREY) for at, word in enumerate(words)]
    for kind, said in graph.legend.items():
        written = wrap(said, sizes.small, (width - 2 * MARGIN) / POINT)
        lines += paragraph(written, sizes.small, LOOKS[kind][0], MARGIN, end)
        end = below(lines, end)
    arrows = []
    for edge in graph.edges:
        source, target, ports = places[edge.source], places[edge.target], graph.find_ports(edge)
        start = source.left + ports[0] * source.width, source.top
        arrows.append((edge, start, (target.left + ports[1] * target.width, target.top + target.height)))
    return GraphPlan(
        **frame(graph, report, look, (width, end, PAD), lines, ()),
        arrows=tuple(arrows),
        # A word that nothing leads from is seen through: behind it may go the arrow of a word on a lower line.
        boxes=(*(word.box for at, word in enumerate(words) if at in read), *boxes.values()),
    )


def _place_nodes(
    graph: Graph, place: tuple[float, float], sizes: Sizes
) -> tuple[dict[int, Box], list[TextLine], float]:
    """Place rows of nodes in `place`, its top and the figure's width, behind the names of the rows; where they end."""
    size, (top, width) = sizes.axis, place
    em, names = size * POINT, [graph.nodes[row[0]].row for row in graph.rows]
    left = MARGIN + max(extent(name, sizes.small).width for name in names) * POINT + GAP
    boxes, lines = dict[int, Box](), list[TextLine]()
    for name, row in zip(names, graph.rows, strict=True):
        lines.append(TextLine(name, MARGIN, top + 0.72 * HIGH * em, sizes.small, GREY))
        written = {each: f"{graph.nodes[each].name} {graph.nodes[each].note}".rstrip() for each in row}
        taken = {each: (extent(text, size, bold=True).width + 2 * size) * POINT for each, text in written.items()}
        broken: list[list[int]] = [[]]
        for each in row:
            if broken[-1] and sum(taken[other] for other in [*broken[-1], each]) > width - MARGIN - left:
                broken.append([])
            broken[-1].append(each)
        for line in broken:
            free, x = width - MARGIN - left - sum(taken[each] for each in line), left
            for each in line:
                box = Box(x + graph.nodes[each].lane * free, top, taken[each], HIGH * em)
                at = box.left + box.width / 2, top + 0.72 * HIGH * em
                lines.append(TextLine(written[each], *at, size, INK, "center", bold=True))
                boxes[each] = box
                x += taken[each]
            top += (HIGH + 0.4) * em
        top += (APART - 0.4) * em
    return boxes, lines, top
