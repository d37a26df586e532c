"""The heads of an explanation over the sentence, as arcs. Knows records and reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from attnviz.records import Tokens
from attnviz.records.explanation import Contribution, Look
from attnviz.report import Chart, Charts
from attnviz.views.tokens import label_token, name_token

MAX_TOKENS = 32  # of longer texts, only those that take part and their neighbours
WROTE = "had written what those look for"
BY_NUMBER = "heads of a layer stand one above the other, by their numbers"
APART, MAX_APART = 0.08, 0.8  # layers, from a head to the next of its layer
BELOW = 1.5  # layers that are shown below the lowest arc


class Arc(NamedTuple):
    """A head that looks from one token of a sentence at another, and writes to the first what others read."""

    x: int  # the token that it looks from
    y: float  # its layer; heads of one layer stand a little apart
    group: str
    label: str  # such as "18.6"
    key: int  # the token that it looks at
    weight: float
    until: float  # the layer where what it writes is read; above the last one by the answer


def draw_answer(tokens: Tokens, found: Sequence[Contribution], answer: str, n_layers: int) -> Charts:
    """Draw the heads that wrote an answer, and those that wrote what they looked for."""
    arcs: dict[tuple[object, ...], Arc] = {}
    groups = (f"writes against {answer}", f"writes for {answer}", WROTE)  # coloured as below and above 0
    for each in found:
        own, *others = _list_arcs(each.looks, groups[each.written > 0], n_layers)
        for arc in (own._replace(label=f"{own.label} {each.written:+.2f}"), *others):
            arcs.setdefault((arc.label, arc.x, arc.key, arc.until), arc)
    drawn = sorted(arcs.values(), key=lambda arc: arc.group == WROTE)
    said = f"{BY_NUMBER} · +, -: what a head writes for the answer"
    return _draw(tokens, drawn, n_layers, "answer", said, groups)


def draw_cell(tokens: Tokens, looks: Sequence[Look], n_layers: int) -> Charts:
    """Draw one look, and that of the head that wrote what it was for."""
    return _draw(tokens, tuple(_list_arcs(looks, "looks", n_layers)), n_layers)


def _list_arcs(looks: Sequence[Look], group: str, n_layers: int) -> Iterator[Arc]:
    read_at: float = n_layers
    for look in looks:
        height = look.head.layer + min(APART * look.head.head, MAX_APART)
        yield Arc(look.query, height, group, str(look.head), look.key, look.weight, read_at)
        group, read_at = WROTE, height


def _draw(
    tokens: Tokens,
    arcs: Sequence[Arc],
    n_layers: int,
    top: str = "",
    footnote: str = BY_NUMBER,
    groups: tuple[str, ...] = (),
) -> Charts:
    shown, label = list(range(len(tokens))), label_token
    if len(tokens) > MAX_TOKENS:
        ends = {end for arc in arcs for end in (arc.x, arc.key)}
        near = {each + step for each in ends for step in (-1, 0, 1)}
        shown, label = sorted(near & set(shown)), name_token
    places: Mapping[int, int] = {token: place for place, token in enumerate(shown)}
    moved = tuple(arc._replace(x=places[arc.x], key=places[arc.key]) for arc in arcs)
    chart = Chart(
        kind="arc",
        title="",
        x_axis="token",
        y_axis="layer",
        columns=Arc._fields,
        rows=moved,
        names=tuple(label(tokens, token) for token in shown),
        groups=groups,
        y_range=(max(-0.5, min((arc.y for arc in arcs), default=0.0) - BELOW), n_layers + 0.5),
        top=(n_layers, top) if top else None,
        footnote=footnote,
    )
    return Charts("explanation", "heads over the sentence", (chart,))
