"""What to show, not how: a title and blocks. Views make reports, renderers draw them; neither knows the other.

Every string in a report is already safe to show (control characters written out, long tokens cut): see
`attnviz.views.labels`. Only `Report.data` holds texts and tokens as they are, for machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from attnviz.shapes import Cells, Shown


@dataclass(frozen=True)
class Scale:
    """From values to colours: one range for all maps of a report."""

    kind: Literal["fixed", "shared", "log"]
    low: float
    high: float
    label: str  # what the colour bar says


@dataclass(frozen=True, eq=False)
class Heatmap:
    """One map of one head. `allowed` is False where attention is not allowed: drawn unlike zero.

    `rows` and `columns` are labels without positions: a token's position is its index.
    """

    name: str  # file stem, such as "layer-0-head-3"
    title: str  # such as "layer 0, head 3"
    values: Cells
    allowed: Shown
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_axis: str = "query (attends)"
    column_axis: str = "key (is attended to)"


@dataclass(frozen=True, eq=False)
class Panels:
    """Several maps of the same tokens side by side under one colour bar, in rows of `n_columns`."""

    name: str
    title: str
    maps: tuple[Heatmap, ...]
    n_columns: int


@dataclass(frozen=True)
class Line:
    """One line of a chart: points in the order of x."""

    name: str  # such as "training", "held out"
    x: tuple[float, ...]
    y: tuple[float, ...]
    marked: bool = False  # each point is drawn with a marker: few points that each count


@dataclass(frozen=True)
class Curve:
    """One chart: lines over one pair of axes. A number that is not finite is a gap."""

    title: str
    x_axis: str
    y_axis: str
    lines: tuple[Line, ...]
    at: float | None = None  # where on the x axis a vertical line stands, such as the epoch that was kept
    at_label: str = ""


@dataclass(frozen=True, eq=False)
class Curves:
    """Charts side by side as one picture. Lines of one name are the same thing, and look the same, in all of them."""

    name: str
    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Column:
    """One column of a table. Numbers are shown with `digits` after the point; text is shown as it is."""

    header: str
    unit: str = ""
    digits: int = 3


@dataclass(frozen=True)
class Table:
    """`role` says which question it answers: one line per head, one line per query, or facts of another kind.

    A "top" table is named after its map, `layer-0-head-3-top`, and each row begins with the query's position and label.
    """

    name: str
    title: str
    role: Literal["heads", "top", "facts"]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | int | float, ...], ...]


@dataclass(frozen=True)
class Note:
    """One sentence that has to be read with the rest."""

    text: str


Picture = Heatmap | Panels | Curves
Block = Picture | Table | Note


@dataclass(frozen=True, eq=False)
class Report:
    """One thing to show. `facts` go into each file's metadata; `data` is the same content for machines."""

    title: str
    subtitle: str  # model and text, trained or not: what every picture has to say
    blocks: tuple[Block, ...]
    scale: Scale = Scale("fixed", 0.0, 1.0, "attention weight")
    facts: tuple[tuple[str, str], ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)

    @property
    def pictures(self) -> Iterator[Picture]:
        return (block for block in self.blocks if isinstance(block, Picture))

    @property
    def tables(self) -> Iterator[Table]:
        return (block for block in self.blocks if isinstance(block, Table))

    @property
    def notes(self) -> Iterator[Note]:
        return (block for block in self.blocks if isinstance(block, Note))


@dataclass(frozen=True)
class Look:
    """Every choice of a figure that changes its bytes and not what it says."""

    cmap: str = "viridis"
    dpi: int = 150
    annotate: bool = False
