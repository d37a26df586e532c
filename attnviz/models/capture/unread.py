"""What attended while a capture was open, or may have, and was not handed over: where, and in words."""

from __future__ import annotations

from collections.abc import Sequence

from attnviz.display import list_first
from attnviz.models.capture.by_hand import SoftmaxTracker

WHAT = "the attention in "
MAX_NAMED = 4  # places in a sentence
READ = "scaled_dot_product_attention, flex_attention, nn.MultiheadAttention and softmax(…) @ value can be recorded"
NO_SOFTMAX = (
    f"{READ}. No softmax ran here: a model such as Mamba has none, and other libraries are not seen. "
    "attnviz.from_attentions takes weights of NumPy, say."
)
UNUSED = (
    f"{READ}. {{ran}} ran here, and none was multiplied with values as it was: attention in pieces, such as "
    "Longformer's, cannot be put together. attnviz.from_attentions takes weights that the model gives."
)


class Unread:
    """Places by kind, each as it came."""

    def __init__(self, following: SoftmaxTracker) -> None:
        self._following = following
        self.places_read: set[str] = set()  # of attentions that were handed over
        self.scripted: list[str] = []  # modules that ran in which no attention was seen
        self.no_softmax: list[str] = []  # where states were weighed by what no softmax gave
        self.kernels: list[str] = []  # that attended and keep their weights
        self.without_numbers: list[str] = []  # where attentions, or softmaxes, ran of which nothing could be read

    @property
    def unclear(self) -> Sequence[str]:
        """Where products of weights were left out, because their heads could not be told from their batch."""
        return self._following.unclear

    def describe_none(self) -> str:
        """Say why nothing was handed over."""
        n_softmaxes = self._following.n_softmaxes
        ran = "1 softmax" if n_softmaxes == 1 else f"{n_softmaxes} softmaxes"
        return " ".join(self.describe()) or (UNUSED.format(ran=ran) if n_softmaxes else NO_SOFTMAX)

    def describe(self) -> tuple[str, ...]:
        """Say in a sentence each what attended, or may have, and was not handed over."""
        changed = list(self._following.changed.values())
        found = (
            (changed, "attention whose weights were changed before the values"),
            (
                self._following.find_unused(self.places_read),
                "softmaxes over products of states that were not multiplied with values as they were",
            ),
            (self.unclear, "attention with heads and batch on one axis, which cannot be told apart"),
            (self.no_softmax, "what attends without a softmax, and so has no weights that sum to 1"),
            (self.kernels, "attention in kernels that keep their weights"),
            (self.scripted, "traced or scripted modules in which no attention was seen"),
        )
        sentences = [f"Not in here: {what}: {_list_places(places)}." for places, what in found if places]
        if self.without_numbers:
            sentences.append(f"Not in here: attention {self.without_numbers[0]}, whose tensors hold no numbers.")
        return tuple(sentences)


def _list_places(places: Sequence[str]) -> str:
    """Write several places once each: "a.0 (linear), a.1 (linear) and 3 more"."""
    return list_first([place.removeprefix(WHAT) for place in dict.fromkeys(places)], MAX_NAMED)
