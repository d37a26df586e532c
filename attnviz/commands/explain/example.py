"""The example that ships with attnviz, three tokens to be done by hand: its published numbers beside the formula's."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.commands.explain.picture import draw_steps
from attnviz.commands.explain.spec import LabelKind
from attnviz.commands.explain.steps import Steps
from attnviz.records import Tokens
from attnviz.records.attention_trace import AttentionTrace, Head, Vector, trace_head
from attnviz.report import Column, Note, Report, Row, Table
from attnviz.views.captions import choose_title

FILE = Path(__file__).parents[2] / "data" / "worked-example.toml"


@dataclass(frozen=True, eq=False)
class PublishedNumbers:
    """The weights, or the output, of one head: as they are published and as they are worked out."""

    published: tuple[float, ...]
    formula: Vector
    unscaled: Vector  # by the formula without the division by √d_head
    decimals: int  # of the published ones

    @property
    def verdict(self) -> str:
        """What the published numbers follow from. Half-way may be rounded in either way."""
        for verdict, exact in (("yes", self.formula), ("only unscaled", self.unscaled)):
            if (np.abs(np.asarray(self.published) - exact) <= 0.5 * 10.0**-self.decimals + 1e-9).all():
                return verdict
        return "neither way"

    @property
    def cells(self) -> tuple[str, ...]:
        """All three, rounded like the published ones, and the verdict."""
        of_all = (self.published, self.formula.tolist(), self.unscaled.tolist())
        return (*(", ".join(f"{value:.{self.decimals}f}" for value in values) for values in of_all), self.verdict)


@dataclass(frozen=True, eq=False)
class PublishedHead:
    """One head of the example at work."""

    name: str
    trace: AttentionTrace
    weights: PublishedNumbers
    output: PublishedNumbers

    @property
    def head(self) -> Head:
        """Its arithmetic, step by step."""
        return self.trace.heads[0]


def load_example(labels: LabelKind) -> tuple[PublishedHead, ...]:
    """Load the one head of width 4, then the two of width 2."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    pieces = tuple(found["tokens"][labels])
    ends = np.cumsum([len(piece) + 1 for piece in pieces]).tolist()
    offsets = tuple((end - 1 - len(piece), end - 1) for piece, end in zip(pieces, ends, strict=True))
    tokens = Tokens(pieces, offsets, (False,) * len(pieces))
    return tuple(
        _load_head(f"head {place} of {len(found[part])}", given, found, tokens)
        for part in ("single", "multi")
        for place, given in enumerate(found[part])
    )


def _load_head(name: str, given: Mapping[str, Any], found: Mapping[str, Any], tokens: Tokens) -> PublishedHead:
    query, keys, values, states = (
        np.array(numbers, dtype=np.float64)
        for numbers in (given["query"], given["keys"], given["values"], found["embeddings"])
    )
    attendable = np.ones(len(tokens), dtype=bool)
    scaled = trace_head(query, keys, values, attendable)
    unscaled = trace_head(query * math.sqrt(len(query)), keys, values, attendable)  # which the division undoes
    return PublishedHead(
        name,
        AttentionTrace(tokens, found["query"], attendable, states, (scaled,), projection=None),
        PublishedNumbers(tuple(given["weights"]), scaled.weights, unscaled.weights, found["decimals"]),
        PublishedNumbers(tuple(given["output"]), scaled.output, unscaled.output, found["decimals"]),
    )


def example_report(heads: Sequence[PublishedHead], own_title: str | None = None) -> Report:
    """Show which published numbers follow from the formula: a table of all heads, and a picture of the first."""
    first = heads[0]
    labels = ("published", "formula", "unscaled", "follow?")
    rows: list[Row] = [
        (f"{of}, {label}", *cells)
        for of in ("weights", "output")
        for label, *cells in zip(labels, *(getattr(head, of).cells for head in heads), strict=True)
    ]
    steps = Steps(first.trace, first.head, len(first.trace.tokens))
    tokens = first.trace.tokens.pieces
    return Report(
        title=choose_title(own_title, f"Attention by hand: {' '.join(tokens)}"),
        subtitle="Do the published weights follow? "
        + "; ".join(f"{head.name}: {head.weights.verdict}" for head in heads),
        blocks=(
            Table("published", "", "facts", (Column("numbers"), *(Column(head.name) for head in heads)), tuple(rows)),
            Note(
                f"Attention from {tokens[first.trace.query]}, by softmax(q · k / √d_head) v, rounded to "
                f"{first.weights.decimals} digits; unscaled: without / √d_head."
            ),
            draw_steps(steps, "steps-example", first.name, ("q, given", "k, given", "v, given")),
        ),
        facts=(("made by", "attnviz explain --example"),),
        data={
            "tokens": list(tokens),
            "query": first.trace.query,
            "embeddings": first.trace.states,
            "heads": [
                {"name": head.name, **asdict(head.head)}
                | {
                    "judged": {
                        of: asdict(getattr(head, of)) | {"follows": getattr(head, of).verdict}
                        for of in ("weights", "output")
                    }
                }
                for head in heads
            ],
        },
    )
