"""What becomes of an answer where a part of an image is covered. Knows nothing of how it was measured."""

from dataclasses import dataclass
from typing import Literal

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
