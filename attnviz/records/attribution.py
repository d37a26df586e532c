"""How much each token of one text did for one answer of a model. Knows numpy, and nothing of models and pictures.

`Cover` is what becomes of an answer where a part of an image is covered.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64

from attnviz.errors import InvalidRecord
from attnviz.records import Provenance, Tokens

Scores = Float64[np.ndarray, " token"]
TOLERANCE = 1e-4  # by how much parts may miss the logit, as a share of the largest of 1, the logit and `others`


@dataclass(frozen=True)
class Target:
    """What of a model's answer is explained: a logit, or by how much it exceeds another, or a regressor's number."""

    name: str  # "positive", or a token, or "score"
    against: str = ""  # the answer whose logit is subtracted; "": none
    probability: float | None = None  # of the answer
    score: float | None = None  # in its place, of a regressor

    @property
    def value(self) -> float:
        """Return the probability, or the score."""
        found = self.probability if self.score is None else self.score
        assert found is not None
        return found

    def __str__(self) -> str:
        return f"{self.name} − {self.against}" if self.against else self.name


@dataclass(frozen=True)
class Question:
    """Which answer is to be explained."""

    target: str | None = None  # a label, or the next token; None: what the model answers
    against: str | None = None  # likewise; None: of two labels the other one, else none
    seed: int = 0  # of random scores
    option: str = "target"  # by which `target` is asked for


@dataclass(frozen=True, eq=False)
class Attribution:
    """A signed score per token: above 0 speaks for the target, below 0 against it.

    Where the scores of a method add up, `total` is what they and `others` (shares that belong to no token, by what they
    are of) add up to. Raises InvalidRecord where a number is not finite or the scores do not add up.
    """

    method: str
    tokens: Tokens
    scores: Scores
    target: Target
    provenance: Provenance
    n_passes: int  # forward passes that it took, a backward pass counted as two
    total: float | None = None
    others: tuple[tuple[str, float], ...] = ()
    signed: bool = True  # False: the scores are sizes and take no sides

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
