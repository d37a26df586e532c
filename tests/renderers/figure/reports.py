"""Made-up reports with pictures, and figures of them to look into."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import combinations
from math import cos, exp
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from attnviz.renderers.figure import files as figure
from attnviz.renderers.figure.draw import draw
from attnviz.renderers.figure.plan import plan
from attnviz.renderers.figure.style import drawing
from attnviz.report import Chart, Charts, EdgeNames, FigureStyle, Heatmap, HeatmapGrid, Report, Scale
from attnviz.report import Picture as Shape
from attnviz.shapes import Cells, Shown
from tests.made import softmax

SENTENCE = """the movie was not just bad , it is one of those films that make you wonder why anybody ever thought of
making it , and yet I could n't look away ; somehow acting extraordinary cinematography disappointment"""
WORDS = tuple(SENTENCE.split())
SCRIPTS = (
    *("猫", "坐在垫子上", "繁體貓", "ねこ", "カナ", "고양이", "مرحبا", "السلام", "שלום", "naïve", "Жизнь", "Ωμέγα"),
    *(
        "👨\u200d👩\u200d👧\u200d👦",
        "❤\ufe0f",
        "👍🏽",
        "🇩🇪",
        "1\ufe0f\u20e3",
        "e\u0301a",
        "Z\u0302\u0303\u0304\u0305algo",
    ),
    *("नमस्ते", "\ue000", "\U0010ffff"),
)
HOSTILE = ("$$", "$_$", "${$", r"$\frac$", "$5$", r"\frac{", "</script>", "a_b^{", "%&#~", "[CLS]", "∅", "␣x⏎")
FIXED = Scale("fixed", 0.0, 1.0, "attention weight (fixed scale, 0 to 1)")
LIFT = Scale("lift", 1.0, 16.0, "attention weight, × an equal share (1/n)")
LOG = Scale("log", 1e-3, 1.0, "attention weight (logarithmic scale, 0.001 to 1)")
FACTS = (("model", "multi:8"), ("text", "猫坐在垫子上"), ("seed", "0"))
SUBTITLE = "untrained (random weights, seed 0) · sample train[0] · first 20 of 233 tokens"


class Sample(NamedTuple):
    """Numbers of one thing, such as one measure of one head over many texts."""

    label: str
    group: str
    values: tuple[float, ...]


class Drawn(NamedTuple):
    """One picture, drawn but not written."""

    plan: Any  # of maps or of charts
    figure: Figure

    @property
    def maps(self) -> list[Axes]:
        return self.figure.axes[: len(self.plan.places)]

    @property
    def bar(self) -> Axes:
        return self.figure.axes[len(self.plan.places)]

    @property
    def free(self) -> list[Text]:
        """Every text but tokens beside and under maps, and numbers along axes."""
        names = [text for axes in self.figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label)]
        legends = [text for legend in self.figure.legends for text in legend.get_texts()]
        return [text for text in (*self.figure.texts[: len(self.plan.lines)], *names, *legends) if text.get_text()]

    @property
    def texts(self) -> list[str]:
        return [" ".join(text.get_text().split()) for text in self.free]

    @property
    def tokens(self) -> list[Text]:
        return self.figure.texts[len(self.plan.lines) :]


def attend(n_rows: int, n_columns: int, n_heads: int = 1, causal: bool = False, seed: int = 0) -> tuple[Cells, Shown]:
    """Made-up attention, heads first, and where it is allowed."""
    scores = 2 * np.random.default_rng(seed).normal(size=(n_heads, n_rows, n_columns))
    allowed = np.tri(n_rows, n_columns, dtype=bool) if causal else np.ones((n_rows, n_columns), dtype=bool)
    return softmax(scores, allowed), allowed


def words(number: int) -> tuple[str, ...]:
    return tuple(WORDS[position % len(WORDS)] for position in range(number))


def heatmap(n_rows: int, n_columns: int | None = None, causal: bool = False) -> Heatmap:
    n_columns = n_columns or n_rows
    weights, allowed = attend(n_rows, n_columns, causal=causal)
    return Heatmap("layer-0-head-3", "layer 0, head 3", weights[0], allowed, words(n_rows), words(n_columns))


def labelled(labels: Sequence[str]) -> Heatmap:
    weights, allowed = attend(len(labels), len(labels))
    return Heatmap("layer-0-head-3", "layer 0, head 3", weights[0], allowed, tuple(labels), tuple(labels))


def panels(n_tokens: int, n_heads: int = 8, n_columns: int = 4, causal: bool = False) -> HeatmapGrid:
    weights, allowed = attend(n_tokens, n_tokens, n_heads, causal)
    names = words(n_tokens)
    maps = (
        Heatmap(f"head-{head}", f"layer 0, head {head}", weights[head], allowed, names, names)
        for head in range(n_heads)
    )
    return HeatmapGrid("overview", f"{n_heads} heads of layer 0", tuple(maps), n_columns)


def small(grid: HeatmapGrid) -> HeatmapGrid:
    """The same maps close together with their names at the edges."""
    rows, columns = (tuple(map(str, range(n))) for n in (len(grid.maps) // grid.n_columns, grid.n_columns))
    return replace(grid, edges=EdgeNames("layer", "head", rows, columns), small=True)


Points = tuple[Sequence[float], Sequence[float]]
TRAINING, HELD_OUT = "training (with dropout)", "held out"
STEPS = [step / 20 for step in range(1, 81)]
LOSSES = [0.3 + 0.39 * exp(-step / 24) + 0.02 * cos(step * step) for step in range(1, 81)]


def line_chart(lines: Mapping[str, Points], title: str = "a chart", y_axis: str = "nats", **more: Any) -> Chart:
    rows = tuple((x, y, name) for name, points in lines.items() for x, y in zip(*points, strict=True))
    return Chart("line", title, "epoch", y_axis, ("x", "y", "group"), rows, **more)


LOSS = line_chart(
    {TRAINING: (STEPS, LOSSES), HELD_OUT: ((1.0, 2.0, 3.0, 4.0), (0.431, 0.362, 0.335, 0.341))},
    "loss",
    "cross-entropy (nats)",
    at=(3.0, "kept"),
)
ACCURACY = line_chart(
    {
        TRAINING: (STEPS, [1.1 - loss for loss in LOSSES]),
        HELD_OUT: ((1.0, 2.0, 3.0, 4.0), (0.8, 0.846, 0.861, 0.858)),
    },
    "accuracy",
    "share of texts labelled correctly",
    at=(3.0, "kept"),
)


def curves(*charts: Chart, n_columns: int | None = None) -> Charts:
    return Charts("learning-curve", "loss and accuracy", charts, n_columns)


def difference(n_tokens: int, causal: bool = True, share: float = 1.0) -> Heatmap:
    """One made-up head minus another, on a scale of its own; `share` of it."""
    (first, allowed), (second, _) = (attend(n_tokens, n_tokens, causal=causal, seed=seed) for seed in (1, 2))
    values = share * (first[0] - second[0])
    most = float(np.abs(values).max())
    scale = Scale("diverging", -most, most, "difference of weight, multi:8 − single")
    return Heatmap("difference", "multi:8 minus single", values, allowed, words(n_tokens), words(n_tokens), scale=scale)


def sample(*values: float, label: str = "0", group: str = "single") -> Sample:
    return Sample(label, group, values)


def spread(number: int, label: str = "0", group: str = "single", middle: float = 3.0, seed: int = 0) -> Sample:
    """Made-up numbers, more of them low than high."""
    return Sample(label, group, tuple(np.random.default_rng(seed).gamma(4, middle / 4, number).tolist()))


def box_chart(*samples: Sample, title: str = "a chart", y_axis: str = "nats") -> Chart:
    rows = tuple((place, value, each.group) for place, each in enumerate(samples) for value in each.values)
    names = tuple(each.label for each in samples)
    return Chart("box", title, "head", y_axis, ("x", "y", "group"), rows, names)


def heads(number: int, title: str = "effective keys", unit: str = "tokens", scale: float = 1.0) -> Chart:
    """A model of one head beside a model of 8, `number` texts each."""
    eight = (spread(number, str(head), "multi:8", scale * (3 + 2 * head), head) for head in range(8))
    one = spread(number, "0", "single", 9 * scale, 99)
    return box_chart(one, *eight, title=title, y_axis=f"{title} ({unit})")


def distributions(*charts: Chart, n_columns: int = 2) -> Charts:
    return Charts("distributions", "each head over many texts", charts, n_columns)


def report(*pictures: Shape, scale: Scale = FIXED, title: str = "multi:8 attends to sample train[0]") -> Report:
    return Report(title, SUBTITLE, pictures, scale, FACTS)


@contextmanager
def drawn(shown: Report, look: FigureStyle | None = None) -> Iterator[Drawn]:
    """The first picture of a report as a figure whose texts can be measured."""
    look = look or FigureStyle()
    planned = figure.plan_picture(next(shown.pictures), shown, look)
    with drawing(planned.theme):
        made = figure.draw_plan(planned, look)
        made.set_dpi(look.dpi)
        FigureCanvasAgg(made)
        made.draw_without_rendering()
        yield Drawn(planned, made)


def first_map(shown: Report) -> Heatmap | HeatmapGrid:
    picture = next(shown.pictures)
    assert isinstance(picture, Heatmap | HeatmapGrid)
    return picture


def visible_texts(of: Artist) -> list[Text]:
    """What is hidden is not asked for what it holds: matplotlib makes the ticks of hidden axes only then."""
    if not of.get_visible():
        return []
    below = [text for child in of.get_children() for text in visible_texts(child)]
    return [*below, of] if isinstance(of, Text) and of.get_text() else below


def outside(figure: Figure) -> list[str]:
    """Texts that the canvas cuts."""
    canvas = figure.bbox
    extents = [(text.get_text(), text.get_window_extent()) for text in visible_texts(figure)]
    return [
        text
        for text, box in extents
        if not (box.x0 >= 0 and box.y0 >= 0 and box.x1 <= canvas.x1 and box.y1 <= canvas.y1)
    ]


def overlapping(boxes: Sequence[tuple[str, Bbox]]) -> list[tuple[str, str]]:
    return [
        (first[0], second[0])
        for first, second in combinations(boxes, 2)
        if min(first[1].x1, second[1].x1) - max(first[1].x0, second[1].x0) > 1
        and min(first[1].y1, second[1].y1) - max(first[1].y0, second[1].y0) > 1
    ]


def pixels(shown: Report, look: FigureStyle | None = None) -> np.ndarray:
    """The first picture of a report as red, green and blue."""
    _, content = next(figure.png(shown, look or FigureStyle()))
    return np.asarray(Image.open(BytesIO(content)).convert("RGB"))


def by_matplotlib(shown: Report, look: FigureStyle) -> np.ndarray:
    """The first map of a report as red, green and blue, drawn by matplotlib alone, as SVG and PDF are."""
    with drawing(), BytesIO() as file:
        draw(plan(first_map(shown), shown, look), look.cmap).savefig(file, format="png", dpi=look.dpi)
        return np.asarray(Image.open(file).convert("RGB"))


def cell_pixels(shown: Report, look: FigureStyle | None = None) -> np.ndarray:
    """Only the first map, without its frame."""
    look = look or FigureStyle()
    box = plan(first_map(shown), shown, look).places[0].box
    left, top, width, height = (round(part * look.dpi) for part in box)
    return pixels(shown, look)[top : top + height, left : left + width]
