"""Some of the values that were attended to, by which a key of a cache is known again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models.capture.captured import to_batch_heads

Values: TypeAlias = Float[np.ndarray, "batch key few"]
N_VALUES = 4  # of the first head, that tell one key of a cache from another


def some_values(value: Any, shape: Sequence[int]) -> Values | None:
    """Some numbers of each key, where the axes of values are those that a kernel has."""
    if not isinstance(value, Tensor) or value.is_nested or value.ndim < 3:
        return None
    with torch.no_grad(), torch._C.DisableTorchFunction():
        by_row = (
            value.reshape(len(value), -1, *value.shape[-2:]) if len(value) == shape[0] > 0 else to_batch_heads(value)
        )
        some = by_row[:, 0, :, :N_VALUES]
        fits = some.shape[:2] == (shape[0], shape[3])
        return np.asarray(some.detach().float().clone().cpu().numpy()) if fits else None
