"""Which heads wrote a model's answer, and why they looked where they did. Knows the table, and nothing of models.

A row is a look: why a query of a head looks at a key, who wrote it, and what the weight is without that writer.
`writers` and `leads` say how far a writer raises the score of the key over those of the others, in the mean, of the
writers that do so most. `named` is the first of those that pass: without it the weight falls by half at least, and
further than by nine tenths of `controls` of its kind: weights without others of its kind, or with another word or place
instead. None: it is of many hands, or no writer was tried (`n_writers` is 0), in layer 0 and where the score leads no
further than by chance. Who is named, or else the first of `writers`, is of `kind` and `written_in` a layer, and
without it the weight is `weight_without`; `source` is the token that it took it from, if it is a named head. `lead` is
how far the score is over the mean of the others, `weights` are those of the query on every token, and `n_passing` of
the `n_writers` pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attnviz.records import Provenance, Tokens
from attnviz.records.attribution import Target

if TYPE_CHECKING:  # Arrow takes a tenth of a second
    from attnviz.table.numbers import Numbers

Look = Mapping[str, Any]
Looks = Sequence[Look]
KEYS = "rank", "step"


class HeadName(NamedTuple):
    """A head by its layer and its number in it, both from 0."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}"


class Writer(NamedTuple):
    """Who writes into the residual stream. Of "word", `layer` counts the first MLPs that are folded into it.

    "place" writes nothing there: it is what the place of a key gives to its score, by rotation or by a bias.
    """

    kind: Literal["word", "mlp", "head", "place"]
    layer: int
    head: int = 0

    def __str__(self) -> str:
        names = {"word": "the word itself", "mlp": f"MLP {self.layer}", "place": "the place"}
        return names.get(self.kind, f"{self.layer}.{self.head}")


AnswerForm = Literal["token", "masked token", "label", "labels", "score"]


@dataclass(frozen=True)
class Explanation:
    """The answer, the heads that wrote most of it, and what everything else gave. All of it sums to `logit`.

    `looks` are of each `rank` the head's own, and with the next `step` that of the head that wrote what it looked for.
    The first has more columns: what the head has `written` for the answer, most of it from the key (`from_source`: of
    all queries together, and this query took most of it), what of that is in the answer's `own` logit (the rest is in
    that of the rival), and what the logit, or the difference of two, becomes without the head, less what it is
    (`removal`).
    """

    tokens: Tokens
    target: Target
    provenance: Provenance
    n_layers: int
    logit: float  # by how much the answer's exceeds that of its rival
    total: float  # what all parts sum to
    looks: Numbers
    by_kind: tuple[tuple[str, float], ...]
    rival: float | None = None  # its probability, where there is one
    form: AnswerForm = "token"
    n_queries: int = 1  # at which something is read that goes into the answer

    @property
    def heads(self) -> list[Looks]:
        """Return the rows of each head, the one that wrote most first."""
        return [of.rows() for _, of in self.looks.group("rank")]
