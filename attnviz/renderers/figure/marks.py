"""One chart on matplotlib's axes, drawn by seaborn from its table. Lengths are inches, text sizes points.

seaborn brings pandas and takes a second: this module is imported only where a chart is drawn.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from attnviz.renderers.figure.layout import LABEL_PAD, PAD, POINT, TICK, Labels
from attnviz.renderers.figure.style import COLOURS, HAIRLINE, MAX_NUMBER, Sizes, Theme
from attnviz.renderers.figure.text import drawable, extent
from attnviz.report import Chart

with warnings.catch_warnings(action="ignore"), mpl.rc_context():
    import pandas as pd
    import seaborn as sns

WORDS, NUMBERS = ("group", "label", "letter"), ("x", "y", "low", "high", "leads")
DASHES = ("", (4, 2), (1, 1.5))  # the next once all colours are taken
FEW = 12  # points of a line that each count, and are marked
MIN_VALUES = 30  # numbers that make a box: quartiles of fewer would show what nobody knows
SLOT, MAX_SLOT = 0.3, 0.6  # inches from place to place: wished, and at most
APART, EDGE = 0.8, 0.6  # places: between two groups of boxes, and from either end of an axis to the nearest place
BROAD = 0.6  # of a box, in places
MARGINS = np.array([0.03, 0.06])  # of what is drawn, on either side
DOT, MARKED, PLAIN, LETTERED, BESIDE = 3.6, 4.5, 3.2, 8.5, 1.5  # points across, and to the label
CENTRED: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
ROTATED: dict[str, Any] = {"rotation": 90, "rotation_mode": "anchor", "ha": "right", "va": "center_baseline"}
BOX: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.6}
AT: dict[str, Any] = {"linewidth": 0.8, "dashes": (3, 2), "zorder": 1.5}
MAX_WHOLE = 1e6  # a range beyond is no longer one of things that are counted


class GroupStyle(NamedTuple):
    """How all rows of one name look."""

    colour: str
    dashes: Any  # of seaborn
    letter: str


Groups = Mapping[str, GroupStyle]


def find_groups(charts: Sequence[Chart], theme: Theme) -> Groups:
    """Give each name its colour, and its dashes once all colours are taken; rows of no name are grey."""
    names = dict.fromkeys(name for chart in charts for name in (*chart.groups, *chart.column("group")))
    quiet = {"", *(name for chart in charts for name in chart.quiet)} if len(names) > 1 else set()
    letters = dict[str, str]()
    for chart in charts:
        letters |= zip(chart.column("group"), chart.column("letter"), strict=False)
    groups = {name: GroupStyle(theme.grey, DASHES[1], "") for name in names if name in quiet}
    for number, name in enumerate(name for name in names if name not in quiet):
        round_, colour = divmod(number, len(COLOURS))
        groups[name] = GroupStyle(theme.find_ink(COLOURS[colour]), DASHES[round_ % len(DASHES)], letters.get(name, ""))
    return groups


def list_legend(charts: Sequence[Chart], groups: Groups, theme: Theme) -> list[tuple[str, Artist]]:
    """List the names that are drawn with a sample of each, unless there is only one without a name."""
    found: dict[str, Artist] = {}
    for kind, present in ((chart.kind, {*chart.column("group")}) for chart in charts):
        for name, (colour, dashes, letter) in groups.items():
            if name not in present or not (name or (kind == "box" and len(groups) > 1)):
                continue
            look: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": LETTERED if letter else DOT}
            look = {"linestyle": (0, dashes or ())} if kind == "line" else look
            handle = (
                Patch(facecolor=colour, edgecolor=theme.grey, **BOX)
                if kind == "box"
                else Line2D([], [], color=colour, **look)
            )
            found[f"{letter}: {name}" if letter else name] = handle
    for chart in charts:
        if chart.at and chart.at[1] and abs(chart.at[0]) <= MAX_NUMBER and len(read_table(chart)):
            found[chart.at[1]] = Line2D([], [], color=theme.grey, **AT)
    return list(found.items())


@lru_cache(maxsize=16)
def read_table(chart: Chart, whole: bool = False) -> pd.DataFrame:
    """Return the rows that can be drawn, or all; no number to draw is NaN. "run" counts the gaps of a group.

    It is to be read only: the next who asks for the same chart, and a picture asks four times, has the same table.
    """
    table = pd.DataFrame(list(chart.rows), columns=list(chart.columns), dtype=object).reindex(
        columns=[*WORDS, *NUMBERS]
    )
    table[list(WORDS)] = table[list(WORDS)].astype(object).fillna("")
    numbers = table[list(NUMBERS)].astype(float)
    table[list(NUMBERS)] = numbers.where(numbers.abs() <= MAX_NUMBER)
    missing = table[["x", "y"]].isna().any(axis=1)
    table["run"] = missing.groupby(table["group"]).cumsum()
    if chart.kind == "box":
        table["x"] += APART * pd.factorize(table["group"])[0]
    return table if whole else table[~missing]


def find_slot(chart: Chart, width: float) -> float:
    """Return how far it is from place to place, of axes so wide, both in points."""
    return min(width / count_places(chart), MAX_SLOT / POINT)


def count_places(chart: Chart) -> float:
    """Return how many places there are along x, with those that groups and ends leave free."""
    gaps = len(set(chart.column("group"))) - 1 if chart.kind == "box" else 0
    return len(chart.names) - 1 + APART * gaps + 2 * EDGE


def list_caveats(charts: Sequence[Chart], size: tuple[float, float], sizes: Sizes) -> Iterator[str]:
    """List what charts of about this size cannot show by themselves."""
    tables = [read_table(chart, whole=True) for chart in charts]
    if any(chart.kind == "box" for chart in charts):
        counts = np.concatenate([table.groupby("x")["y"].count() for table in tables])
        if (counts >= MIN_VALUES).any():
            yield "boxes: the middle half of the numbers and their median; lines reach the smallest and the largest"
        if ((counts > 0) & (counts < MIN_VALUES)).any():
            yield f"of fewer than {MIN_VALUES} numbers each is a point, and the line is their median"
    if lost := sum(int(table[["x", "y"]].isna().any(axis=1).sum()) for table in tables):
        yield f"{lost} number{' is' if lost == 1 else 's are'} not drawn: not finite, or too large"
    points = [read_table(chart) for chart in charts if chart.kind == "point"]
    labelled = sum(len(place_labels(table, *size, sizes.small)) for table in points)
    if close := sum(int((table["label"] != "").sum()) for table in points) - labelled:
        yield f"{close} point{' is' if close == 1 else 's are'} too close to others to be labelled"


def place_labels(table: pd.DataFrame, width: float, height: float, size: float) -> dict[int, np.ndarray]:
    """Return for each row with room for its label where that stands: its middle, in points from the point's own one.

    The axes are about so wide and high, and `size` is that of the text. The first to be placed are those that lead,
    which have one in any case, and then those farthest from the middle of all points.
    """
    if table.empty:
        return {}
    numbers, room = table[["x", "y"]].to_numpy(), np.array([width, height]) / POINT
    low, high = _find_limits(numbers)
    at = (numbers - low) / (high - low) * room
    halves = np.where(table["letter"] == "", PLAIN, LETTERED)[:, None] / 2
    taken = [*np.hstack([at - halves, at + halves])]
    far = np.hypot(*((at - np.median(at, axis=0)) / room).T)
    found: dict[int, np.ndarray] = {}

    def is_free(box: np.ndarray) -> bool:  # its lower left corner and its upper right one: within the axes, on no other
        overlaps = (box[:2] < np.array(taken)[:, 2:]).all(axis=1) & (box[2:] > np.array(taken)[:, :2]).all(axis=1)
        return bool((box[:2] >= 0).all() and (box[2:] <= room).all() and not overlaps.any())

    for n in sorted(np.flatnonzero(table["label"] != ""), key=lambda n: (table["leads"].iloc[n] != 1, -far[n])):
        half = np.array([extent(table["label"].iloc[n], size).width, size]) / 2
        sides = [(halves[n] + half + BESIDE) * side for side in np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])]
        boxes = [np.hstack([at[n] + side - half, at[n] + side + half]) for side in sides]
        free = [k for k, box in enumerate(boxes) if is_free(box)]
        if free or table["leads"].iloc[n] == 1:
            chosen = free[0] if free else 0
            taken.append(boxes[chosen])
            found[int(n)] = sides[chosen]
    return found


def _find_limits(numbers: np.ndarray) -> np.ndarray:
    """Return where axes begin and end: a little beyond the points."""
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    beyond = np.where(high > low, MARGINS * (high - low), np.maximum(1.0, np.abs(high)) * 0.05)
    return np.stack([low - beyond, high + beyond])


class Panel(NamedTuple):
    """One chart and its names, broken into lines; `labels` are those of the places along its x axis."""

    chart: Chart
    title: tuple[str, ...]
    x_axis: tuple[str, ...]
    y_axis: tuple[str, ...]
    labels: Labels
    size: tuple[float, float]  # of the axes, about
    groups: Groups
    theme: Theme
    sizes: Sizes

    def draw(self, axes: Axes) -> None:
        """Draw the table, and name axes and places; say where there is nothing to draw."""
        chart, theme, table = self.chart, self.theme, read_table(self.chart)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=TICK / POINT, width=HAIRLINE, pad=2, labelsize=self.sizes.axis)
        axes.grid(visible=True, axis="y" if chart.names else "both", color=theme.grid, linewidth=HAIRLINE)
        axes.set_axisbelow(True)
        axes.margins(*MARGINS)
        if table.empty:
            axes.set(xticks=[], yticks=[])
            middle: dict[str, Any] = {"ha": "center", "va": "center", "size": self.sizes.small, "color": theme.grey}
            axes.text(0.5, 0.5, "no numbers", transform=axes.transAxes, **middle)
        else:
            palette = {name: group.colour for name, group in self.groups.items()}
            look: dict[str, Any] = {"x": "x", "y": "y", "hue": "group", "palette": palette, "ax": axes, "legend": False}
            {"line": self._draw_lines, "box": self._draw_boxes, "point": self._draw_points}[chart.kind](table, look)
            known = table.dropna(subset=["low", "high"])
            bars: dict[str, Any] = {"colors": known["group"].map(palette), "linewidth": 1.0, "alpha": 0.6, "zorder": 2}
            axes.vlines(known["x"], known["low"], known["high"], **bars)
            self._set_axes(axes, table)
        if chart.names:
            self._name_places(axes)
        text: dict[str, Any] = {"size": self.sizes.axis, "color": theme.grey}
        axes.set_title(join_lines(self.title), size=self.sizes.axis, pad=PAD / POINT)
        axes.set_xlabel(join_lines(self.x_axis), labelpad=PAD / POINT, **text)
        axes.set_ylabel(join_lines(self.y_axis), labelpad=PAD / POINT, **text)

    def _set_axes(self, axes: Axes, table: pd.DataFrame) -> None:
        """Mark a place along x, and choose where y ends and which ticks are written."""
        chart = self.chart
        if chart.at and abs(chart.at[0]) <= MAX_NUMBER:
            axes.axvline(chart.at[0], color=self.theme.grey, **AT)
        if chart.y_range is not None:
            low, high = chart.y_range
            beyond = MARGINS[1] * (high - low)
            axes.set_ylim(low - beyond, high + beyond)
        if not chart.names:
            low, high = axes.get_xlim()
            is_whole = table["x"].mod(1).eq(0).groupby(table["group"]).all().any()
            if chart.kind == "line" and is_whole and 1 < high - low <= MAX_WHOLE:
                axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))

    def _name_places(self, axes: Axes) -> None:
        chart, width = self.chart, self.size[0] / POINT
        at = np.arange(len(chart.names), dtype=float)
        if chart.kind == "box":
            at[[*chart.column("x")]] = read_table(chart, whole=True)["x"]
        middle, half = (at[0] + at[-1]) / 2, width / find_slot(chart, width) / 2
        axes.set_xlim(middle - half, middle + half)
        axes.xaxis.set_ticks(self.labels.choose(at.tolist()), [*map(drawable, self.labels.choose(chart.names))])
        axes.xaxis.set_tick_params(pad=LABEL_PAD, labelsize=self.labels.size)
        for text in axes.get_xticklabels() if self.labels.rotated else ():
            text.set(**ROTATED)

    def _draw_lines(self, table: pd.DataFrame, look: Mapping[str, Any]) -> None:
        """Draw lines with gaps, and points that stand alone or are few."""
        dashes = {name: group.dashes for name, group in self.groups.items()}
        as_it_comes: dict[str, Any] = {"units": "run", "estimator": None, "sort": False}
        sns.lineplot(table, **look, **as_it_comes, style="group", dashes=dashes, linewidth=1.2, zorder=2)
        few = table.groupby("group")["x"].transform("size") <= FEW
        alone = table.groupby(["group", "run"])["x"].transform("size") == 1
        self._draw_dots(table[few | alone], look, MARKED)

    def _draw_dots(self, table: pd.DataFrame, look: Mapping[str, Any], across: float) -> None:
        edge: dict[str, Any] = {"edgecolor": self.theme.ground, "linewidth": 0.4, "zorder": 3}
        if len(table):
            sns.scatterplot(table, **look, s=across**2, **edge)

    def _draw_boxes(self, table: pd.DataFrame, look: Mapping[str, Any]) -> None:
        """Draw many numbers as a box of their middle half with lines to the ends, few as points and their median."""
        values = table.groupby("x")["y"]
        many = values.transform("size") >= MIN_VALUES
        median: dict[str, Any] = {"color": self.theme.ink, "linewidth": 1.2}
        alike: dict[str, Any] = {**look, "native_scale": True, "dodge": False}
        box: dict[str, Any] = {"boxprops": BOX, "medianprops": median, "linecolor": self.theme.grey}
        if many.any():
            sns.boxplot(table[many], **alike, **box, saturation=1.0, whis=(0, 100), width=BROAD, showcaps=False)
        edge: dict[str, Any] = {"size": DOT, "edgecolor": self.theme.ground, "linewidth": 0.4, "warn_thresh": 1.0}
        # Which of two points stands to the left hangs on which is higher: of two that differ by what processors round
        # otherwise none is, so that a picture is the same on each. A point moves by less than a hundredth of a pixel.
        if not many.all():
            few, step = table[~many], 2.0 ** np.floor(np.log2(np.ptp(table["y"]) or 1.0)) / 2**14
            sns.swarmplot(few.assign(y=(few["y"] / step).round() * step), **alike, **edge)
        middles = values.median()[values.size() < MIN_VALUES]
        look["ax"].hlines(middles, middles.index - BROAD / 2, middles.index + BROAD / 2, **median, zorder=4)

    def _draw_points(self, table: pd.DataFrame, look: Mapping[str, Any]) -> None:
        """Draw small points, and lettered ones over them, some of them called by name."""
        axes, lettered = look["ax"], table["letter"] != ""
        self._draw_dots(table[~lettered], look, MARKED if self.chart.names else PLAIN)
        self._draw_dots(table[lettered], look, LETTERED)
        letter: dict[str, Any] = {"size": 0.7 * LETTERED, "weight": "bold", **CENTRED}
        row: Any
        for row in table[lettered].itertuples():
            axes.text(row.x, row.y, row.letter, color=self.theme.ground, zorder=4, **letter)
        if self.chart.names:
            axes.axhline(0.0, color=self.theme.ink, linewidth=1.0, zorder=1.5)
            return
        behind = {"facecolor": self.theme.ground, "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
        label: dict[str, Any] = {"size": self.sizes.small, "zorder": 5, "bbox": behind, **CENTRED}
        for n, at in place_labels(table, *self.size, self.sizes.small).items():
            row = next(table.iloc[[n]].itertuples())
            at_point: dict[str, Any] = {"xy": (row.x, row.y), "xytext": tuple(at), "textcoords": "offset points"}
            axes.annotate(drawable(row.label), **at_point, color=self.groups[row.group].colour, **label)
        (left, bottom), (right, top) = _find_limits(table[["x", "y"]].to_numpy())
        axes.set(xlim=(left, right), ylim=(bottom, top))


def join_lines(lines: Sequence[str]) -> str:
    """Join lines of text to one with line breaks, as matplotlib takes it."""
    return "\n".join(map(drawable, lines))
