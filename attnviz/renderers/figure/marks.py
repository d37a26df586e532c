"""One chart on matplotlib's axes, drawn by seaborn from its table. Lengths are inches, text sizes points.

seaborn brings pandas and takes a second: this module is imported only where a chart is drawn.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from attnviz.renderers.figure.layout import LABEL_PAD, POINT, TICK, Labels
from attnviz.renderers.figure.style import COLOURS, HAIRLINE, MAX_NUMBER, Sizes, Theme
from attnviz.renderers.figure.text import drawable, extent
from attnviz.report import Chart

with warnings.catch_warnings(), mpl.rc_context():
    warnings.simplefilter("ignore")
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
    quiet = [
        name for name in names if name in {"", *(each for chart in charts for each in chart.quiet)} and len(names) > 1
    ]
    letters = {
        name: letter
        for chart in charts
        for name, letter in zip(chart.column("group"), chart.column("letter"), strict=False)
    }
    groups = {name: GroupStyle(theme.grey, DASHES[1], "") for name in quiet}
    for number, name in enumerate(name for name in names if name not in quiet):
        round_, colour = divmod(number, len(COLOURS))
        groups[name] = GroupStyle(theme.find_ink(COLOURS[colour]), DASHES[round_ % len(DASHES)], letters.get(name, ""))
    return groups


def list_legend(charts: Sequence[Chart], groups: Groups, theme: Theme) -> list[tuple[str, Artist]]:
    """List the names that are drawn with a sample of each, unless there is only one without a name."""
    found: dict[str, Artist] = {}
    for chart in charts:
        present = {*chart.column("group")}
        for name, (colour, dashes, letter) in groups.items():
            if name not in present:
                continue
            marker: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": LETTERED if letter else DOT}
            look = {"marker": "", "linestyle": (0, dashes or ())} if chart.kind == "line" else marker
            box = Patch(facecolor=(*to_rgb(colour), 0.4), edgecolor=colour, linewidth=0.8)
            handle = box if chart.kind == "box" else Line2D([], [], color=colour, **look)
            if name or (chart.kind == "box" and len(groups) > 1):
                found[f"{letter}: {name}" if letter else name] = handle
        if chart.at and chart.at[1] and abs(chart.at[0]) <= MAX_NUMBER and len(read_table(chart)):
            found[chart.at[1]] = Line2D([], [], color=theme.grey, **AT)
    return list(found.items())


def read_table(chart: Chart, whole: bool = False) -> pd.DataFrame:
    """Return the rows that can be drawn, or all; no number to draw is NaN. "run" counts the gaps of a group."""
    table = pd.DataFrame(list(chart.rows), columns=list(chart.columns), dtype=object).reindex(
        columns=[*WORDS, *NUMBERS]
    )
    table[list(WORDS)] = table[list(WORDS)].astype(object).fillna("")
    numbers = table[list(NUMBERS)].astype(float)
    table[list(NUMBERS)] = numbers.where(numbers.abs() <= MAX_NUMBER)
    missing = table[["x", "y"]].isna().any(axis=1)
    table["run"] = missing.groupby(table["group"]).cumsum()
    if chart.kind == "box":
        numbers_of = {name: number for number, name in enumerate(dict.fromkeys(table["group"]))}
        table["x"] += APART * table["group"].map(numbers_of)
    return table if whole else table[~missing]


def find_slot(chart: Chart, width: float) -> float:
    """Return the inches from place to place, of axes so wide."""
    return min(width / count_places(chart), MAX_SLOT)


def count_places(chart: Chart) -> float:
    """Return how many places there are along x, with those that groups and ends leave free."""
    gaps = len(set(chart.column("group"))) - 1 if chart.kind == "box" else 0
    return len(chart.names) - 1 + APART * gaps + 2 * EDGE


def list_caveats(sized: Sequence[tuple[Chart, tuple[float, float]]], sizes: Sizes) -> Iterator[str]:
    """List what charts of about these sizes cannot show by themselves."""
    kinds, tables = {chart.kind for chart, _ in sized}, [read_table(chart, whole=True) for chart, _ in sized]
    if "box" in kinds:
        counts = np.concatenate([table.groupby("x")["y"].count() for table in tables])
        if (counts >= MIN_VALUES).any():
            yield "boxes: the middle half of the numbers and their median; lines reach the smallest and the largest"
        if ((counts > 0) & (counts < MIN_VALUES)).any():
            yield f"of fewer than {MIN_VALUES} numbers each is a point, and the line is their median"
    if lost := sum(int(table[["x", "y"]].isna().any(axis=1).sum()) for table in tables):
        yield f"{lost} number{' is' if lost == 1 else 's are'} not drawn: not finite, or too large"
    points = [(read_table(chart), size) for chart, size in sized if chart.kind == "point"]
    close = sum(
        int((table["label"] != "").sum()) - len(place_labels(table, *size, sizes.small)) for table, size in points
    )
    if close:
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


class Marks(NamedTuple):
    """One chart and the axes that it is drawn on."""

    axes: Axes
    panel: Panel
    theme: Theme
    sizes: Sizes

    def draw(self, groups: Groups) -> None:
        """Draw the table; say where there is nothing to draw."""
        axes, chart, theme = self.axes, self.panel.chart, self.theme
        table = read_table(chart)
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
            palette = {name: group.colour for name, group in groups.items()}
            look: dict[str, Any] = {"data": table, "x": "x", "y": "y", "hue": "group", "palette": palette}
            look |= {"ax": axes, "legend": False}
            {"line": self._draw_lines, "box": self._draw_boxes, "point": self._draw_points}[chart.kind](
                table, look, groups
            )
            known = table.dropna(subset=["low", "high"])
            bars: dict[str, Any] = {"colors": known["group"].map(palette), "linewidth": 1.0, "alpha": 0.6, "zorder": 2}
            axes.vlines(known["x"], known["low"], known["high"], **bars)
            self._set_axes(table)
        if chart.names:
            self._name_places()

    def _set_axes(self, table: pd.DataFrame) -> None:
        axes, chart, theme = self.axes, self.panel.chart, self.theme
        if chart.at and abs(chart.at[0]) <= MAX_NUMBER:
            axes.axvline(chart.at[0], color=theme.grey, **AT)
        if chart.y_range is not None:
            low, high = chart.y_range
            beyond = MARGINS[1] * (high - low)
            axes.set_ylim(low - beyond, high + beyond)
        if not chart.names:
            low, high = axes.get_xlim()
            is_whole = table["x"].mod(1).eq(0).groupby(table["group"]).all().any()
            if chart.kind == "line" and is_whole and 1 < high - low <= MAX_WHOLE:
                axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
            axes.ticklabel_format(axis="x", useOffset=False)
        axes.ticklabel_format(axis="y", useOffset=False)

    def _name_places(self) -> None:
        chart, width = self.panel.chart, self.panel.size[0]
        at = np.arange(len(chart.names), dtype=float)
        if chart.kind == "box":
            for place, x in set(zip(chart.column("x"), read_table(chart, whole=True)["x"], strict=True)):
                at[place] = x
        middle, half = (at[0] + at[-1]) / 2, width / find_slot(chart, width) / 2
        self.axes.set_xlim(middle - half, middle + half)
        labels, axis = self.panel.labels, self.axes.xaxis
        axis.set_ticks(labels.choose(at.tolist()), [drawable(name) for name in labels.choose(chart.names)])
        axis.set_tick_params(pad=LABEL_PAD, labelsize=labels.size)
        for text in axis.get_ticklabels() if labels.rotated else ():
            text.set(**ROTATED)

    def _draw_lines(self, table: pd.DataFrame, look: Mapping[str, Any], groups: Groups) -> None:
        """Draw lines with gaps, and points that stand alone or are few."""
        dashes = {name: group.dashes for name, group in groups.items()}
        sns.lineplot(
            **look, style="group", dashes=dashes, units="run", estimator=None, sort=False, linewidth=1.2, zorder=2
        )
        few = table.groupby("group")["x"].transform("size") <= FEW
        alone = table.groupby(["group", "run"])["x"].transform("size") == 1
        self._draw_dots(table[few | alone], look, MARKED)

    def _draw_dots(self, table: pd.DataFrame, look: Mapping[str, Any], across: float) -> None:
        edge: dict[str, Any] = {"edgecolor": self.theme.ground, "linewidth": 0.4, "zorder": 3}
        if len(table):
            sns.scatterplot(**{**look, "data": table}, s=across**2, **edge)

    def _draw_boxes(self, table: pd.DataFrame, look: Mapping[str, Any], groups: Groups) -> None:
        """Draw many numbers as a box of their middle half with lines to the ends, few as points and their median."""
        values = table.groupby("x")["y"]
        many = values.transform("size") >= MIN_VALUES
        median: dict[str, Any] = {"color": self.theme.ink, "linewidth": 1.2}
        for name, rows in table[many].groupby("group", sort=False):
            colour = groups[str(name)].colour
            own: dict[str, Any] = {"color": colour, "linecolor": colour, "saturation": 1.0, "medianprops": median}
            own |= {"whis": (0, 100), "width": BROAD, "linewidth": 0.8, "showcaps": False, "native_scale": True}
            sns.boxplot(rows, x="x", y="y", ax=self.axes, **own)
        for box in self.axes.patches:
            box.set_facecolor((*to_rgb(box.get_edgecolor()), 0.4))
        edge: dict[str, Any] = {"size": DOT, "edgecolor": self.theme.ground, "linewidth": 0.4, "warn_thresh": 1.0}
        if not many.all():
            sns.swarmplot(**{**look, "data": table[~many]}, native_scale=True, dodge=False, **edge)
        middles = values.median()[values.size() < MIN_VALUES]
        self.axes.hlines(middles, middles.index - BROAD / 2, middles.index + BROAD / 2, **median, zorder=4)

    def _draw_points(self, table: pd.DataFrame, look: Mapping[str, Any], groups: Groups) -> None:
        """Draw small points, and lettered ones over them, some of them called by name."""
        lettered = table["letter"] != ""
        self._draw_dots(table[~lettered], look, MARKED if self.panel.chart.names else PLAIN)
        self._draw_dots(table[lettered], look, LETTERED)
        letter: dict[str, Any] = {"size": 0.7 * LETTERED, "weight": "bold", **CENTRED}
        row: Any
        for row in table[lettered].itertuples():
            self.axes.text(row.x, row.y, row.letter, color=self.theme.ground, zorder=4, **letter)
        if self.panel.chart.names:
            self.axes.axhline(0.0, color=self.theme.ink, linewidth=1.0, zorder=1.5)
            return
        behind = {"facecolor": self.theme.ground, "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
        label: dict[str, Any] = {"size": self.sizes.small, "zorder": 5, "bbox": behind, **CENTRED}
        for n, at in place_labels(table, *self.panel.size, self.sizes.small).items():
            row = next(table.iloc[[n]].itertuples())
            at_point: dict[str, Any] = {"xy": (row.x, row.y), "xytext": tuple(at), "textcoords": "offset points"}
            self.axes.annotate(drawable(row.label), **at_point, color=groups[row.group].colour, **label)
        (left, bottom), (right, top) = _find_limits(table[["x", "y"]].to_numpy())
        self.axes.set(xlim=(left, right), ylim=(bottom, top))
