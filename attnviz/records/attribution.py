"""How much each token of one text did for one answer of a model. Knows numpy, and nothing of models and pictures.

`Cover` is what becomes of an answer where a part of an image is covered.
`Explanation` is which heads wrote a model's answer, and why they looked where they did. It knows the table.

A row of it is a look: why a query of a head looks at a key, who wrote it, and what the weight is without that writer.
`writers` and `leads` say how far a writer raises the score of the key over those of the others, in the mean, of the
writers that do so most. `named` is the first of those that pass: without it the weight falls by half at least, and
further than by nine tenths of `controls` of its kind: weights without others of its kind, or with another word or place
instead. None: it is of many hands, or no writer was tried (`n_writers` is 0), in layer 0 and where the score leads no
further than by chance. Who is named, or else the first of `writers`, is of `kind` and `written_in` a layer, and
without it the weight is `weight_without`; `source` is the token that it took it from, if it is a named head. `lead` is
how far the score is over the mean of the others, `weights` are those of the query on every token, and `n_passing` of
the `n_writers` pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float64

from attnviz.errors import InvalidRecord
from attnviz.records import Provenance, Tokens

if TYPE_CHECKING:
    from attnviz.table.numbers import Numbers


Scores = Float64[np.ndarray, " token"]
AnswerForm = Literal["token", "masked token", "label", "labels", "score"]
TOLERANCE = 1e-4  # by how much parts may miss the logit, as a share of the largest of 1, the logit and `others`


@dataclass(frozen=True)
class Target:
    """What of a model's answer is explained: a logit, or by how much it exceeds another, or a regressor's number."""

    name: str  # "positive", or a token, or "score"
    against: str = ""  # the answer whose logit is subtracted; "": none
    probability: float | None = None  # of the answer
    score: float | None = None  # in its place, of a regressor
    rival: tuple[str, float] | None = None  # which answer it competes with, and how probable that is
    form: AnswerForm = "token"

    @property
    def value(self) -> float:
        """Return the probability, or the score."""
        found = self.probability if self.score is None else self.score
        assert found is not None
        return found


@dataclass(frozen=True)
class Question:
    """Which answer is to be explained."""

    target: str | None = None  # a label, or the next token; None: what the model answers
    against: str | None = None  # likewise; None: of two labels the other one, else none
    seed: int = 0  # of random scores
    option: str = "target"  # by which `target` is asked for


@dataclass(frozen=True, eq=False)
class MethodScores:
    """A signed score per token: above 0 speaks for the target, below 0 against it.

    Where the scores of a method add up, `total` is what they and `others` (shares that belong to no token, by what they
    are of) add up to.
    """

    scores: Scores
    n_passes: int  # forward passes that it took, a backward pass counted as two
    total: float | None = None
    others: tuple[tuple[str, float], ...] = ()
    signed: bool = True  # False: the scores are sizes and take no sides
    not_held: tuple[str, ...] = ()  # why they may not add up


@dataclass(frozen=True, eq=False, kw_only=True)
class Attribution(MethodScores):
    """The same, and of what they are. Raises InvalidRecord where a number is not finite or they do not add up."""

    method: str
    tokens: Tokens
    target: Target
    provenance: Provenance

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.tokens),) or not np.isfinite(self.scores).all():
            raise InvalidRecord(f"{self.method} gives no finite score for each of {len(self.tokens)} tokens")
        shares = [share for _, share in self.others]
        found, total = float(self.scores.sum()) + sum(shares), self.total
        # Written so that NaN is wrong too.
        if total is not None and not abs(total - found) <= TOLERANCE * max(1.0, *map(abs, (total, *shares))):
            raise InvalidRecord(f"{self.method} adds up to {found:.6g}, and the logit is {self.total:.6g}")


LossKind = Literal["words", "label", "output"]


@dataclass(frozen=True)
class CoverTest:
    """What an answer loses where the patches that are looked at most are covered, and where as many others are.

    Of words it is nats of their log probability, of a label its logit; of the output of a model without an answer it is
    how far that moves, as a share of its length.
    """

    kind: LossKind
    answer: str  # the words that were written, or the label; "" of an output
    n_patches: int  # that are covered at a time
    shown: float  # where they are those that are looked at most
    elsewhere: tuple[float, ...]  # where they are others, for each draw

    @property
    def is_reason(self) -> bool:
        """Check whether more is lost than in any draw. By chance that is so in one of as many tests, and one."""
        return self.shown > max(self.elsewhere)


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
    looks: "Numbers"
    by_kind: tuple[tuple[str, float], ...]
    n_queries: int = 1  # at which something is read that goes into the answer

    @property
    def heads(self) -> list[Looks]:
        """Return the rows of each head, the one that wrote most first."""
        return [of.rows() for _, of in self.looks.group("rank")]
