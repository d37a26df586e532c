"""Which layers and heads are recorded: of the others nothing is kept. Knows no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.errors import InvalidSelection


@dataclass(frozen=True)
class LayersAndHeads:
    """By the model's own numbers. None: all of them. Raises InvalidSelection for anything but numbers from 0."""

    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def __post_init__(self) -> None:
        for name, chosen in (("layers", self.layers), ("heads", self.heads)):
            if chosen is None:
                continue
            given = [chosen] if isinstance(chosen, int) else list(chosen)
            if not given or not all(type(each) is int and each >= 0 for each in given):
                raise InvalidSelection(f"{name}={chosen!r} chooses none", hint="Give numbers from 0, such as [0, 3].")
            object.__setattr__(self, name, tuple(sorted(set(given))))

    def layers_of(self, n_layers: int, what: str) -> tuple[int, ...]:
        """The chosen ones of a model. Raises InvalidSelection for one that it does not have."""
        return _of(self.layers, n_layers, "layer", what)

    def heads_of(self, n_heads: int, what: str) -> tuple[int, ...]:
        """The chosen ones of a model, or of one call. Raises InvalidSelection for one that it does not have."""
        return _of(self.heads, n_heads, "head", what)

    def n_maps(self, n_layers: int, n_heads: int) -> int:
        """Of how many heads in all weights are kept."""
        n_chosen_layers = n_layers if self.layers is None else len(self.layers)
        return n_chosen_layers * (n_heads if self.heads is None else len(self.heads))


EVERY = LayersAndHeads()


def _of(chosen: Sequence[int] | None, number: int, noun: str, what: str) -> tuple[int, ...]:
    if chosen is None:
        return tuple(range(number))
    if chosen[-1] >= number:
        raise InvalidSelection(f"no {noun} {chosen[-1]} in {what}", hint=f"It has {noun}s 0 to {number - 1}.")
    return tuple(chosen)
