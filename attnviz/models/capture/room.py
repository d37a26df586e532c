"""Room for the weights of layers one behind the other, so that a record of them is that memory and no copy of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

MIN_WEIGHTS = 2**16  # of a layer: fewer are copied in no time


class LayersRoom:
    """Memory of layers that are called alike and have one shape. What is not written to takes none."""

    def __init__(self) -> None:
        self._free: dict[tuple[str, tuple[int, ...]], list[np.ndarray]] = {}
        self._last = np.empty(0, dtype=np.float32)

    def take(self, name: str, n_layers: int, shape: Sequence[int]) -> Float32[Tensor, "batch head query key"]:
        """Room for one layer of `n_layers`, behind the one before."""
        if math.prod(shape) < MIN_WEIGHTS:
            return torch.empty(*shape)
        free = self._free.setdefault((name, tuple(shape)), [])
        if not free:
            free += reversed(_empty(n_layers, shape))
        self._last = free.pop()
        return torch.from_numpy(self._last)

    def as_array(self, weights: Float32[Tensor, "batch head query key"]) -> Float32[np.ndarray, "batch head query key"]:
        """The same numbers; where they lie in the room that was taken last, as part of all its layers."""
        found = weights.detach().cpu().numpy()
        same = found.shape == self._last.shape and found.ctypes.data == self._last.ctypes.data
        return self._last if same else found


def _empty(n_layers: int, shape: Sequence[int]) -> list[np.ndarray]:
    try:
        return list(np.empty((n_layers, *shape), dtype=np.float32))
    except MemoryError:  # of so many layers; there may be fewer
        return list(np.empty((1, *shape), dtype=np.float32))


def side_by_side(layers: Sequence[np.ndarray]) -> np.ndarray | None:
    """Arrays as one with an axis in front, without a copy, where they lie one behind the other."""
    whole, first = layers[0].base, layers[0]
    if not isinstance(whole, np.ndarray) or whole.shape[1:] != first.shape or not first.nbytes:
        return None
    begin = (first.ctypes.data - whole.ctypes.data) // first.nbytes
    places = [whole.ctypes.data + (begin + place) * first.nbytes for place in range(len(layers))]
    together = all(
        layer.base is whole and layer.ctypes.data == place for layer, place in zip(layers, places, strict=True)
    )
    return whole[begin : begin + len(layers)] if together else None
