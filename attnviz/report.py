"""What to show, not how: a title and blocks. Views make reports, renderers draw them; neither knows the other.

Every string in a report is already safe to show (control characters escaped, long tokens cut): see
`attnviz.display`. Only `Report.data` holds texts and tokens as they are, for machines.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64

from attnviz.shapes import Cells, Grey, PerRow, Shown
from attnviz.specs import FigureKind, ThemeName
from attnviz.words import Language, load_table


@dataclass(frozen=True)
class ScaleFamily:
    """What all scales of one kind have in common. Every renderer reads this, and the page gets it as data."""

    is_multiple: bool = False  # colours show each value as a multiple of its row's equal share, see `Heatmap.shade`
    is_logarithmic: bool = False  # steps of colour are factors
    is_signed: bool = False  # values are differences, from -high over 0 to high
    has_ends: bool = False  # the colour bar names its two ends
    colours: Literal["lift", "sequential", "diverging"] = "sequential"


MAX_LISTED = 2  # rows of a calculation on a first screen: the strongest, and what it has to beat
ALL_KEYS = "All keys: --table full."
SCALES = {
    "lift": ScaleFamily(is_multiple=True, is_logarithmic=True, colours="lift"),
    "fixed": ScaleFamily(),
    "shared": ScaleFamily(has_ends=True),
    "log": ScaleFamily(is_logarithmic=True),
    "diverging": ScaleFamily(is_signed=True, colours="diverging"),
}


@dataclass(frozen=True)
class Scale:
    """How values become colours: one range for all maps of a report that have none of their own."""

    kind: str  # one of SCALES
    low: float
    high: float
    label: str  # what the colour bar says
    doublings: bool = False  # of a difference: values are log₂ of a ratio
    is_bounded: bool = False  # no value can be larger than `high`

    @property
    def family(self) -> ScaleFamily:
        """Return what all scales of its kind have in common."""
        return SCALES[self.kind]


@dataclass(frozen=True, eq=False)
class WeightFactors:
    """The factors of a head's weights: weight_ij = exp(scale · q_i · k_j + bias[j - i] - log_sum_exp_i).

    `bias` has a number for each distance from -D to D; keys farther away have that of the farthest. A query attends to
    the keys from `window[0]` before it to `window[1]` behind it (None: to all), but for those not `attendable`.
    """

    query: Float32[np.ndarray, "query d_head"]
    key: Float32[np.ndarray, "key d_head"]
    log_sum_exp: Float32[np.ndarray, " query"]
    scale: float
    bias: Float32[np.ndarray, " distance"] | None
    window: tuple[int | None, int | None]
    attendable: Bool[np.ndarray, " key"] | None  # None: every key
    equal: PerRow  # of each query, see `Heatmap.equal_share`
    rows: tuple[str, ...]  # labels; the position of each is its index
    columns: tuple[str, ...]


def name_map(layer: int, head: int | str) -> str:
    """Name the map of a head, by its number, or that of a layer's heads together, such as their mean."""
    return f"layer-{layer}-{head}" if isinstance(head, str) else f"layer-{layer}-head-{head}"


@dataclass(frozen=True, eq=False)
class Heatmap:
    """One map of one head. `allowed` is False where attention is not allowed: drawn unlike zero.

    `rows` and `columns` are labels without positions: a token's position is its index, unless some are left out and
    the positions of the others are given.
    """

    name: str  # file stem, such as "layer-0-head-3", see `name_map`
    title: str  # such as "layer 0, head 3"
    values: Cells
    allowed: Shown
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_axis: str = "query (attends)"
    column_axis: str = "key (is attended to)"
    scale: Scale | None = None  # None: the report's
    row_positions: tuple[int, ...] = ()
    column_positions: tuple[int, ...] = ()
    row_texts: tuple[str, ...] = ()  # what rows are, in full: a page has room for it beside the map
    equal: PerRow | None = None  # see `equal_share`; None: 1/n, n being the row's allowed cells
    backdrop: Grey | None = None  # an image over which the cells lie
    block: int = 1  # rows, and columns, that a cell stands for: it is the mean of the weights there
    factors: WeightFactors | None = None  # of all tokens, for those who look closer than the cells
    asked: int | None = None  # the column of the token that all rows are of, if it is among the columns
    note: str = ""  # what the head is known for, such as "next token": below its title where several stand together
    footnote: str = ""

    def __post_init__(self) -> None:
        for labels, positions in (("rows", "row_positions"), ("columns", "column_positions")):
            if not getattr(self, positions):
                object.__setattr__(self, positions, tuple(range(len(getattr(self, labels)))))

    @property
    def has_queries(self) -> bool:
        """Tell whether rows are the queries of a text, in whatever language that is said."""
        return self.row_axis in load_table()["report.query_axis"].values()

    @property
    def has_keys(self) -> bool:
        """Tell whether columns are its keys, likewise."""
        return self.column_axis in load_table()["report.key_axis"].values()

    @property
    def is_of_pairs(self) -> bool:
        """Tell whether cells say something of two things, as how alike two heads are: neither attends to the other.

        Each pair has one cell. Those of the other half are not allowed, and stay blank.
        """
        return self.row_axis == self.column_axis

    @cached_property
    def equal_share(self) -> PerRow:
        """Return what each allowed cell of a row holds if all hold the same: 1/n, or of what is counted of the row."""
        if self.equal is not None:
            return self.equal
        return np.asarray(1 / np.maximum(self.allowed.sum(axis=1), 1), dtype=np.float32)

    def shade(self, scale: Scale) -> Cells:
        """Return the number that the colour of each cell shows: a multiple of an equal share, or the value itself."""
        if not scale.family.is_multiple:
            return self.values
        return np.asarray(self.values / self.equal_share[:, None])


@dataclass(frozen=True)
class EdgeNames:
    """What rows and columns of maps are called, and each of them."""

    row_axis: str  # such as "layer"
    column_axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class HeatmapGrid:
    """Several maps of the same tokens side by side under one colour bar, in rows of `n_columns`.

    `reflows`: fewer in a row say the same, so that a narrow figure may have them.
    `edges`: what stands beside the rows and above the columns of maps in place of their titles.
    `small`: each map has room for a few cells only, so that they stand close together and no token is labelled.
    """

    name: str
    title: str
    maps: tuple[Heatmap, ...]
    n_columns: int
    scale: Scale | None = None  # None: the report's; of its maps, none has its own
    reflows: bool = False
    edges: EdgeNames | None = None
    small: bool = False
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # by what heads may look at: of each map
    footnote: str = ""


ChartKind = Literal["line", "box", "point"]


@dataclass(frozen=True)
class Chart:
    """One pair of axes: a table, and how its columns are shown. Figures and pages draw it by the same columns.

    Every table has columns "x" and "y"; a row without a finite number in both is left out, and breaks a line. It may
    have others. Rows of one "group" look alike, and in a picture all groups of one name do. An interval goes from "low"
    to "high". Of a chart of points a "label" stands beside its point where there is room, and in any case where it
    "leads"; a "letter" stands in it.

    A box is one x of the table: many numbers become quartiles, few are points.
    """

    kind: ChartKind
    title: str
    x_axis: str
    y_axis: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    names: tuple[str, ...] = ()  # of the places 0, 1, … along x; (): there are numbers
    groups: tuple[str, ...] = ()  # in the order of their colours; (): as they come
    quiet: tuple[str, ...] = ()  # groups that others are held against, drawn in grey
    at: tuple[float, str] | None = None  # where along x a vertical line stands, and what for
    y_range: tuple[float, float] | None = None  # of charts that are compared; None: as the numbers want it

    def column(self, name: str) -> tuple[Any, ...]:
        """Return the values of a column, () where there is none of this name."""
        return tuple(row[self.columns.index(name)] for row in self.rows) if name in self.columns else ()


class EdgeStrip(NamedTuple):
    """A vector above or below those of the rows, such as the query above the keys."""

    label: str
    components: Float64[np.ndarray, " component"]


@dataclass(frozen=True, eq=False)
class CalculationStep:
    """One step of a calculation: what it gives for each row; NaN: nothing.

    Numbers and bars have one component. Of a strip each component is a coloured cell.
    """

    title: str  # in plain words
    formula: tuple[str, ...]  # line by line
    look: Literal["strip", "number", "bar"]
    values: Float64[np.ndarray, "row component"]
    sign: str = ""  # between the step before and this one, such as "→"
    most: float = 1.0  # the largest number, up or down: of the darkest colours, of the longest bar
    above: EdgeStrip | None = None
    below: EdgeStrip | None = None


@dataclass(frozen=True, eq=False)
class Calculation:
    """The steps of a calculation side by side, each with what it gives for the same rows."""

    name: str
    title: str
    rows: tuple[str, ...]
    steps: tuple[CalculationStep, ...]
    asked: int | None = None  # the row of the token that all of it is for
    has_rest: bool = False  # the last row stands for all others together
    notes: tuple[str, ...] = ()

    def tabulate(self) -> "Table":
        """Return the steps that have one number for each row as a table."""
        steps = [step for step in self.steps if step.look != "strip"]
        columns = (Column("key"), *(Column(", ".join(step.formula), digits=4) for step in steps))
        numbers = np.hstack([step.values for step in steps]).tolist()
        rows = (
            (name, *("…" if isnan(each) else each for each in row))
            for name, row in zip(self.rows, numbers, strict=True)
        )
        alone = numbers[:-1] if self.has_rest else numbers
        strongest = sorted(range(len(alone)), key=lambda row: -alone[row][-1])[:MAX_LISTED]
        return Table(self.name, self.title, "facts", columns, tuple(rows), first=tuple(strongest), more=ALL_KEYS)


@dataclass(frozen=True)
class Charts:
    """Charts of one kind side by side as one picture."""

    name: str
    title: str
    charts: tuple[Chart, ...]
    n_columns: int | None = None  # in rows of so many; None: one row


EdgeKind = Literal["for", "against", "looks", "because"]


class GraphNode(NamedTuple):
    """Who takes part: a head as it looks from a token, an MLP as it wrote at one, a word, a place, or the answer."""

    name: str
    level: int  # nodes of one stand in a row; what is written leads from lower rows to higher ones
    row: str  # what that row is called, such as "layer 18"
    said: str = ""  # what is to be said of it
    token: int | None = None  # among those of the graph
    weights: tuple[float, ...] = ()  # of a head, the row of its map: how much it gives each token of the graph
    note: str = ""  # beside its name, such as what it writes
    lane: float = 0.5  # 0 to 1, from the left to the right: where it stands in its row if there is room; of words, too


class GraphEdge(NamedTuple):
    """Who wrote what another reads. `knock_out` is a number of the reader before and after the writer is removed."""

    source: int  # nodes by their places
    target: int
    kind: EdgeKind
    share: float  # 0 to 1: its thickness
    said: str
    knock_out: tuple[float, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Who wrote what to whom, above the words of a text. Words that take part are nodes of the lowest level."""

    name: str
    tokens: tuple[str, ...]  # labels
    positions: tuple[int, ...]  # of these in the text, of which a long one is not shown whole
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    legend: Mapping[EdgeKind, str]  # what edges of each kind mean
    title: str = ""

    @property
    def rows(self) -> list[list[int]]:
        """List the nodes of each level but the words, the highest first, from the left to the right."""
        found: dict[int, list[int]] = {}
        for place, node in sorted(enumerate(self.nodes), key=lambda of: of[1].lane):
            if node.row or node.token is None:
                found.setdefault(node.level, []).append(place)
        return [found[level] for level in sorted(found, reverse=True)]

    def find_ports(self, edge: GraphEdge) -> tuple[float, float]:
        """Return where an edge leaves its source and meets its target, 0 to 1 along their sides."""

        def find_port(end: int, other: int) -> float:
            beside = [each for each in self.edges if each[end] == edge[end]]
            beside.sort(key=lambda each: self.nodes[each[:2][other]].lane)
            return (beside.index(edge) + 1) / (len(beside) + 1)

        return find_port(0, 1), find_port(1, 0)


@dataclass(frozen=True)
class Column:
    """One column of a table. Numbers are shown with `digits` after the point; text is shown as it is."""

    header: str
    unit: str = ""
    digits: int = 3
    minor: bool = False  # the first to be left out where there is no room


Cell = str | int | float
Row = tuple[Cell, ...]


class LazyRows(Sequence[Row]):
    """Rows of a table that are computed when they are first read, which may be never."""

    def __init__(self, make: Callable[[], Iterable[Row]]) -> None:
        self._make = make

    @cached_property
    def _rows(self) -> tuple[Row, ...]:
        return tuple(self._make())

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True)
class Table:
    """`role` says which question it answers: what all others stand for (the first screen shows no other), one line per
    head, one line per query, facts of another kind, or the same fact of several things, a column each.

    A "top" table is named after its map, `layer-0-head-3-top`, and each row begins with the query's position and label.
    Where there are many heads, the maps have none.

    `links` says for each row where its first cell leads: a path with forward slashes, relative to the file that the
    report is written to, not yet encoded; "" for a row that leads nowhere. What is no such path is not followed.
    """

    name: str
    title: str
    role: Literal["answer", "heads", "top", "facts", "compared"]
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    links: tuple[str, ...] = ()
    first: tuple[int, ...] = ()  # the rows that are listed where there is no room for all; (): all
    more: str = ""  # what lists the others
    thumbs: tuple[str, ...] = ()  # for each row a picture on a page, as a data: address; "" for none
    is_detail: bool = False  # a screen is too small for it

    def __post_init__(self) -> None:
        assert not self.links or len(self.links) == len(self.rows), "a link for each row, or none at all"


@dataclass(frozen=True)
class Note:
    """One sentence that has to be read with the rest."""

    text: str
    leads: bool = False  # it is what the report has to say, and stands before the numbers
    is_detail: bool = False  # the answer does without it


Picture = Heatmap | HeatmapGrid | Charts | Calculation | Graph
Block = Picture | Table | Note


# All heads of a model over many texts, to be looked at one by one: tables, as lists of rows by the names of columns.
#   "measures": numbers of each head ("title", "unit", "about", "values"), half of their 95 % intervals ("halves", []
#       where there are none), and what to hold them against, NaN where that is not known: what attention gives that
#       favours no key ("equal"), and the largest of any head of random models ("chance"). "axes" are the two that a
#       reader sees first.
#   "heads": "layer", "head"; the patterns that it was found to follow, each with how strongly ("names", such as
#       [("previous token", "0.93")]), of which "letters" has a letter each; shares of attention on keys, from as far
#       before the query to as far after it ("curve"; "equal" of the atlas for attention that favours no key); words
#       that receive most, × an equal share, and times in the texts ("words"); what was tested of it ("facts"); and rows
#       of attention ("moments"), cut to some tokens of a text: "kind", "text" (its place among "texts"), "query" and
#       "keys" (positions), "weights", "n_keys" (that the query may attend to), "to_first", "effective_keys".
#   "texts": stretches of them, token by token: "title", "positions", "tokens", each after a space where the text has
#       room before it; "options" open it again, "" where nothing does.
#   "first": the head to begin with, "18.6".
#   "commands": questions, and what answers them; {options}, {head} and {query} are filled in.
Atlas = dict[str, Any]


@dataclass(frozen=True)
class TextAnswer:
    """What a model answers to a text, and what becomes of it without one word or one head.

    Numbers are probabilities, or those of a model that answers with a number.
    """

    label: str
    against: str  # the other one of two labels, or ""
    value: float
    is_probability: bool
    is_clear: bool  # at least twice as probable as any other
    words: tuple[float, ...]  # of each token: how much of the value goes with it; below 0: how much it takes away
    heads: Mapping[str, float]  # by the names of maps: the value without this head


@dataclass(frozen=True)
class RenderedFrom:
    """What `attnviz render` draws the same report from."""

    record: str  # the name of the file beside the report's
    heads: str  # options that choose those of the report, as they are written in a shell
    options: str  # others


@dataclass(frozen=True, eq=False)
class Pointing:
    """What heads give each part of an image from each of its places, for a page that follows who points at one.

    A part is `block` × `block` patches, at the edges what there is of them. Parts are counted row by row. What goes
    to a part is the sum over its patches, and what comes from one the mean.
    """

    block: int
    looks: Mapping[str, Cells]  # by the names of maps: [part that looks, part that is looked at]
    # Of each part that looks: what a whole part would hold if all keys held alike, by the names of maps, and the tokens
    # beside its patches that get most, with their mean shares.
    equal: Mapping[str, PerRow]
    beside: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Report:
    """One thing to show. `facts` go into each file's metadata; `data` is the same content for machines."""

    title: str
    subtitle: str  # model and text, trained or not: what every picture has to say
    blocks: tuple[Block, ...]
    scale: Scale = Scale("fixed", 0.0, 1.0, "attention weight")
    facts: tuple[tuple[str, str], ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)
    scales: tuple[Scale, ...] = ()  # others on which a reader may want to see its maps
    render: RenderedFrom | None = None  # the record that it shows, for who wants part of it as a file
    focus: tuple[Heatmap, ...] = ()  # what to look at first, where there is room for few maps; titles say why
    panels: tuple[Heatmap, ...] = ()  # maps that are in pictures of several only, as they are called alone
    atlas: Atlas | None = None  # what a page shows instead of charts
    screen: tuple[tuple[int, int], ...] = ()  # layers and heads with which a page begins, beside the sentence itself
    hint: tuple[str, ...] = ()  # beside the screen, line by line: what heads are named by
    answer: TextAnswer | None = None  # to the text, where it was measured
    kept: tuple[str, ...] = ()  # tokens that are named in sentences: they stay in every language
    max_lines: int | None = None  # of a terminal's first screen; None: as many as there are
    point: Callable[[], Pointing] | None = None  # works out what a page follows, which other formats do without

    @property
    def pictures(self) -> Iterator[Picture]:
        """Return the blocks that are pictures, in order."""
        return (block for block in self.blocks if isinstance(block, Picture))

    @property
    def tables(self) -> Iterator[Table]:
        """Return the blocks that are tables, in order."""
        return (block for block in self.blocks if isinstance(block, Table))

    @property
    def listed(self) -> list[Table]:
        """List the tables, but for strongest keys, and for an answer where heads have a table that holds it."""
        has_heads = any(table.role == "heads" for table in self.tables)
        return [table for table in self.tables if table.role not in ("top", "answer" if has_heads else "top")]

    @property
    def notes(self) -> Iterator[Note]:
        """Return the blocks that are notes, in order."""
        return (block for block in self.blocks if isinstance(block, Note))


@dataclass(frozen=True)
class FigureStyle:
    """Every choice of a figure that changes its bytes and not what it says."""

    cmap: str = "auto"  # as the scale wants it
    dpi: int = 150
    annotate: bool = False
    kind: FigureKind = "map"
    theme: ThemeName = "paper"
    font_size: float | None = None  # points, of the names of axes; None: the theme's
    width: float | None = None  # inches; None: as wide as the maps want
    header: bool = True  # title and subtitle
    transparent: bool = False
    svg_text: bool = False  # texts stay texts, for programs that have the fonts
    lang: Language = "en"
