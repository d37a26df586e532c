"""What a model is to everybody outside this room, what only some can do, and what of it is recorded. Knows no torch.

No caller asks of which kind a model is: `isinstance` says what it can do, and before it is opened its reference does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attnviz.errors import InvalidSelection
from attnviz.specs import KeepKind

WINDOW = 320  # texts that `classify` has in memory at a time: few enough to share them out evenly

if TYPE_CHECKING:
    import numpy as np

    from attnviz.document import Document
    from attnviz.models.attention import OutputWeights
    from attnviz.models.tokenizer import Encoding
    from attnviz.records import AttentionMaps
    from attnviz.records.answers import AnswerInfo, Prediction
    from attnviz.records.attention_trace import VerifiedTrace
    from attnviz.records.attribution import CoverTest


@dataclass(frozen=True)
class LayersAndHeads:
    """Which are recorded, by the model's own numbers: of the others nothing is kept. None: all of them.

    Raises InvalidSelection for anything but numbers from 0.
    """

    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    value_norms: bool = field(default=True, compare=False)  # False where only measures are wanted, which read none

    def __post_init__(self) -> None:
        for name, chosen in (("layers", self.layers), ("heads", self.heads)):
            if chosen is None:
                continue
            given = [chosen] if isinstance(chosen, int) else list(chosen)
            if not given or not all(type(each) is int and each >= 0 for each in given):
                raise InvalidSelection(f"{name}={chosen!r} chooses none", hint="Give numbers from 0, such as [0, 3].")
            object.__setattr__(self, name, tuple(sorted(set(given))))

    def layers_of(self, n_layers: int, what: str) -> tuple[int, ...]:
        """Return the chosen ones of a model. Raises InvalidSelection for one that it does not have."""
        return _check_numbers(self.layers, n_layers, "layer", what)

    def heads_of(self, n_heads: int, what: str) -> tuple[int, ...]:
        """Return the chosen ones of a model, or of one call. Raises InvalidSelection for one that it does not have."""
        return _check_numbers(self.heads, n_heads, "head", what)

    def n_maps(self, n_layers: int, n_heads: int) -> int:
        """Count the heads, in all, whose weights are kept."""
        n_chosen_layers = n_layers if self.layers is None else len(self.layers)
        return n_chosen_layers * (n_heads if self.heads is None else len(self.heads))


EVERY = LayersAndHeads()
MEASURED = LayersAndHeads(value_norms=False)  # all of them, to be measured


def _check_numbers(chosen: Sequence[int] | None, number: int, noun: str, what: str) -> tuple[int, ...]:
    if chosen is None:
        return tuple(range(number))
    if chosen[-1] >= number:
        raise InvalidSelection(f"no {noun} {chosen[-1]} in {what}", hint=f"It has {noun}s 0 to {number - 1}.")
    return tuple(chosen)


@runtime_checkable
class AttentionModel(Protocol):
    """A model that is ready: text in, AttentionMaps out."""

    @property
    def name(self) -> str:
        """Return the model's name in titles and records."""

    @property
    def revision(self) -> str:
        """Return which weights these are: a sha256, or the seed of random ones."""

    @property
    def trained(self) -> bool | None:
        """Tell whether the model is trained; None where nothing says so, as of third-party weights."""

    @property
    def n_layers(self) -> int:
        """Count the layers."""

    @property
    def n_heads(self) -> int:
        """Count the heads of a layer."""

    @property
    def d_model(self) -> int:
        """Return the width of the hidden states."""

    @property
    def n_parameters(self) -> int:
        """Count the learned numbers of the model."""

    @property
    def n_attention_parameters(self) -> int | None:
        """Count the learned numbers in the projections of attention; None where that is not known."""

    def encode(self, text: str, choice: LayersAndHeads = EVERY) -> object:
        """Return what the model will read.

        Raises InvalidText for a text without tokens, TooLarge where the weights of the chosen heads have no room,
        before anything large is allocated.
        """

    def map_size(self, text: str) -> tuple[int, int]:
        """Return how many queries and keys the text's maps will have. Raises as `encode` does."""

    def attention(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Attend over one text, of all layers and heads or of some.

        Raises as `encode` does, InvalidSelection for a layer or head that there is not.
        """

    def attend_factored(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Record what the weights are worked out from in their place.

        Raises as `attention` does, InvalidOption for a model whose q and k are unknown.
        """

    def list_ids(self) -> tuple[int, ...]:
        """List those of its vocabulary that are no special tokens, in order."""

    def find_max_ids(self) -> int | None:
        """Return how many ids it reads at a time beside its markers; None for no limit."""

    def attention_of_ids(self, ids: Sequence[int], text_name: str = "ids") -> AttentionMaps:
        """Attend over tokens that are no text's, between the markers that it puts around one. Raises TooLarge."""

    def list_projections(self) -> list[OutputWeights]:
        """List the linear layers that read the heads of each layer, as far as there are some."""

    def with_first_weights(self, seed: int) -> AttentionModel:
        """Return the same architecture and tokenizer, its weights as training begins with them.

        One without attention parameters has none to draw.
        """


@runtime_checkable
class Classifies(AttentionModel, Protocol):
    """A model that was trained to tell texts apart, or to give them numbers."""

    @property
    def answers(self) -> AnswerInfo:
        """Return what the model answers with."""

    @property
    def max_tokens(self) -> int | None:
        """Return the length of the longest text that the model was made to read, in tokens; None for no limit."""

    @property
    def keep(self) -> KeepKind:
        """Return which part of a longer text the model was made to read."""

    @property
    def folder(self) -> Path | None:
        """Return the model's folder, with the metrics of its training if any; None for a third-party model."""

    def limit_tokens(self, max_tokens: int | None, keep: KeepKind) -> Classifies:
        """Return the same model with another limit, for its attention and its answers alike."""

    def classify(self, documents: Sequence[Document]) -> Iterator[Prediction]:
        """Return one prediction per text, in order. Raises InvalidText for a text without tokens, by its name."""


@runtime_checkable
class Ablatable(Classifies, Protocol):
    """A classifier whose heads can be put out of action one by one."""

    def mean_outputs(self, texts: Iterable[str]) -> np.ndarray:
        """Return [layer, d_model]: what heads give on average over all tokens of these, for `ablate`."""

    def ablate(
        self, text: str, other: str, kinds: Sequence[str], means: np.ndarray | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the probability of each label, by kind [head, label] without each head: see `answers_without_heads`.

        `means`, which the kind "mean" needs, are those of `mean_outputs`. Raises as `encode` does.
        """

    def answer_with_heads(self, text: str, layer: int, kept: np.ndarray) -> np.ndarray:
        """Return [answer, label]: probabilities where of one layer only some heads give anything. Raises as `encode`.

        `kept` [answer, head] says which, for each answer; heads of other layers give what they give.
        """


@runtime_checkable
class Continues(AttentionModel, Protocol):
    """A decoder, of which it is known how well it foresees each next token, with all of its heads or without some."""

    def losses(self, ids: Sequence[int]) -> np.ndarray:
        """Return [token]: nats that each token but the first costs behind those before it."""

    def without_heads(self, heads: Sequence[tuple[int, int]]) -> AbstractContextManager[None]:
        """Let heads give zeros meanwhile: pairs of a layer, counted from 0, and a head.

        Raises InvalidModel where heads cannot be left out.
        """

    def read_ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text as the model reads it. Raises as `encode` does."""


@runtime_checkable
class Generates(AttentionModel, Protocol):
    """A model that goes on with a text. Its maps are of the text and of what it wrote, but for the last token.

    The query at position i chose the token at position i + 1; the last token was chosen and never read.
    """

    def generate(self, text: str) -> object:
        """Return what the model has read once it has written. Raises as `encode` does."""


@runtime_checkable
class Coverable(AttentionModel, Protocol):
    """A model of images, parts of which can be covered."""

    def test_cover(self, text: str, look: Any, queries: Sequence[int]) -> CoverTest | None:
        """Measure what an answer loses where the patches are covered that a look gives most, and where others are."""


@runtime_checkable
class Traceable(AttentionModel, Protocol):
    """A model whose attention can be worked out by hand from its parameters."""

    def encode(self, text: str, choice: LayersAndHeads = EVERY) -> Encoding:
        """Return the tokens that will attend."""

    def trace(self, text: str, text_name: str, layer: int, query: int) -> VerifiedTrace:
        """Return one query's arithmetic in one layer, held against what the model makes of it.

        Raises ExecutionError where the two do not come to the same.
        """
