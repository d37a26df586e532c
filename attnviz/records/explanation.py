"""Which heads wrote a model's answer, and why they looked where they did. Knows numpy, and nothing of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from attnviz.records import Provenance, Tokens
from attnviz.records.attribution import Target


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


@dataclass(frozen=True)
class Look:
    """Why a query of a head looks at a key: who wrote it, and what the weight is without that writer.

    `shares` say how far a writer raises the score of the key over those of the others, in the mean, of the writers that
    do so most. `named` is the first of those that pass: without it the weight falls by half at least, and
    further than by nine tenths of `controls` of its kind. None: it is of many hands, or
    no writer was tried (`n_writers` is 0), in layer 0 and where the score leads no further than by chance.
    """

    head: HeadName
    query: int
    key: int
    weight: float
    lead: float  # of the score of the key over the mean of the others
    shares: tuple[tuple[Writer, float], ...] = ()
    named: Writer | None = None
    source: int | None = None  # the token that the named writer took it from, if it is a head
    weight_without: float | None = None  # who is named, or else the first of `shares`
    controls: tuple[float, ...] = ()  # weights without others of its kind, or with another word or place instead
    n_passing: int = 0
    n_writers: int = 0  # that were tried
    weights: tuple[float, ...] = ()  # of the query on every token, that on the key among them


@dataclass(frozen=True)
class Contribution:
    """What a head wrote for the answer, most of it from one token, and by how much its removal changes the logit.

    `source` is the token from which all queries together took most, and the first of `looks` that of the query that
    took most of it.
    """

    head: HeadName
    written: float
    source: int
    from_source: float
    own: float  # what of `written` is in the answer's own logit; the rest is in that of the rival
    removal: float  # what the logit, or the difference of two, becomes without the head, less what it is
    looks: tuple[Look, ...]  # the head's own, then that of the head that wrote what it looked for


AnswerForm = Literal["token", "masked token", "label", "labels", "score"]


@dataclass(frozen=True)
class Explanation:
    """The answer, the heads that wrote most of it, and what everything else gave. All of it sums to `logit`."""

    tokens: Tokens
    target: Target
    provenance: Provenance
    n_layers: int
    logit: float  # by how much the answer's exceeds that of its rival
    total: float  # what all parts sum to
    contributions: tuple[Contribution, ...]
    by_kind: tuple[tuple[str, float], ...]
    rival: float | None = None  # its probability, where there is one
    form: AnswerForm = "token"
    n_queries: int = 1  # at which something is read that goes into the answer
