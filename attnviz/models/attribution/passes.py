"""Passes of a model whose word vectors have a gradient, or are others.

A model reads ids, and the vectors that are looked up for them get a gradient, or others are put in their place: no
model has to offer a way to read vectors. Knows torch and no model, and works under every kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from attnviz.errors import InvalidModel
from attnviz.models.attribution.operators import Operators

Change = Callable[[Tensor], Tensor]


class WordInputs(Operators):
    """While it is open, the vectors looked up in `words` have a gradient. `change` makes others of them."""

    def __init__(self, words: Tensor, change: Change | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._words, self._change = words, change
        self._found: list[Tensor] = []

    @property
    def vectors(self) -> Tensor:
        """[text, token, d]. Raises InvalidModel for a model that looks its words up twice, or not at all."""
        if len(self._found) != 1:
            raise InvalidModel(
                f"the words are looked up {len(self._found)} times in one pass, where one is explained",
                hint="Explained are encoders and decoders that read one text; of encoder-decoders none is.",
            )
        return self._found[0]

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator. What it gives for words is a leaf of the graph, unless they were changed."""
        result = super().run(name, func, args, kwargs)
        if name == "embedding" and args[0] is self._words:
            result = result if self._change is None else self._change(result)
            self._found.append(result if result.requires_grad else result.requires_grad_())
        return result
