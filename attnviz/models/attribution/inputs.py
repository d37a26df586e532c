"""The vectors of a text's words, as what a gradient is taken with respect to. Knows torch and no model.

A model reads ids, and the vectors that `functional.embedding` looks up for them are put in by hand: no model has to
offer a way to read vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attnviz.errors import InvalidModel
from attnviz.models.capture.captured import Kernel

Change = Callable[[Tensor], Tensor]


class WordInputs(TorchFunctionMode):
    """While it is open, the vectors looked up in `words` have a gradient. `change` makes others of them."""

    def __init__(self, words: Tensor, change: Change | None = None) -> None:
        super().__init__()
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

    def __torch_function__(
        self, function: Kernel, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is functional.embedding and (args[1] if len(args) > 1 else kwargs["weight"]) is self._words:
            vectors = function(*args, **kwargs).detach()
            if self._change is not None:
                vectors = self._change(vectors)
            self._found.append(vectors if vectors.requires_grad else vectors.requires_grad_())
            return self._found[-1]
        return self.compute(function, args, kwargs)

    def compute(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Any other function, which subclasses compute in a way of their own."""
        return function(*args, **kwargs)
