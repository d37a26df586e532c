"""Small modules of the structures that people publish, of states of 16 numbers."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor, nn

from attnviz.records import AttentionMaps
from tests.models.captures import SDPA, drawn

STATES = drawn(0, 1, 5, 16)
Mix = Callable[[Tensor, Tensor, Tensor], Tensor]


def by_softmax(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend as it is written out by hand."""
    return (query @ key.mT / 2).softmax(-1) @ value


class Module(nn.Module):
    """What is done with parts: a function of the module and of what it is given."""

    def __init__(self, forward: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.does = forward
        for name, part in parts.items():
            setattr(self, name, part)
        self.eval()

    def forward(self, *given: Any) -> Any:
        return self.does(self, *given)


def called(maps: Iterable[AttentionMaps]) -> str:
    """What the tokens of each record are called, with those of queries before those of keys where they differ."""
    sides = [["".join(side.pieces) for side in (one.queries, one.keys)] for one in maps]
    return " ".join(asking if asking == asked else f"{asking}/{asked}" for asking, asked in sides)


def linears(**sizes: int) -> dict[str, nn.Linear]:
    """Maps of states by name, to so many numbers."""
    return {name: nn.Linear(16, size) for name, size in sizes.items()}


class Attention(nn.Module):
    """Heads that mix what [batch head token d_head] are given, as they are told; by the kernel unless told."""

    def __init__(self, n_heads: int = 4, mix: Mix = SDPA) -> None:
        super().__init__()
        self.n_heads, self.mix, self.both = n_heads, mix, nn.Linear(16, 48)

    def forward(self, states: Tensor) -> Tensor:
        parts = self.both(states).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        return self.mix(*parts).transpose(1, 2).flatten(-2)


class Stack(nn.Module):
    """Layers on residual states; of a layer that is a list, a norm and what it is for."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, states: Tensor) -> Tensor:
        for layer in self.layers:
            states = states + (layer[1](layer[0](states)) if isinstance(layer, nn.ModuleList) else layer(states))
        return states
