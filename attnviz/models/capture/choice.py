"""Which layers and heads are captured: the others are passed by before anything of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.errors import InvalidSelection
from attnviz.models.capture.paths import NUMBER


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

    def may_hold(self, path: str) -> bool:
        """Whether a module may be of a chosen layer: one without a number is, as layers may share it."""
        numbers = NUMBER.findall(path)
        return self.layers is None or not numbers or any(int(number) in self.layers for number in numbers)

    def heads_of(self, n_heads: int, what: str) -> tuple[int, ...]:
        """The chosen ones of a call. Raises InvalidSelection for one that it does not have."""
        if self.heads is None:
            return tuple(range(n_heads))
        if self.heads[-1] >= n_heads:
            raise InvalidSelection(f"no head {self.heads[-1]} in {what}", hint=f"It has heads 0 to {n_heads - 1}.")
        return tuple(self.heads)
