"""Weights as they lie in a file: embeddings in fewer bits, all else in float32. Knows tensors and no files."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from attnviz.specs.train import StorageKind

MAX_INT8 = 127  # of int8, symmetric around 0
SCALE = ".scale"  # beside a matrix of int8: what a one stands for in each of its rows


def packed(weights: Mapping[str, Tensor], embeddings: frozenset[str], storage: StorageKind) -> dict[str, Tensor]:
    """The weights named in `embeddings` in `storage`; int8 is rounded to 127 steps either side of 0, a scale per row.

    Whole numbers take four bytes where they fit.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        tensor = tensor.detach().cpu().contiguous()
        if tensor.dtype == torch.int64:
            fits = bool((tensor.abs() <= torch.iinfo(torch.int32).max).all())
            found[name] = tensor.int() if fits else tensor
        elif name not in embeddings or storage == "float32":
            found[name] = tensor
        elif storage == "float16":
            found[name] = tensor.half()
        else:
            largest = tensor.abs().amax(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
            scale = (largest / MAX_INT8).bfloat16()  # of float32's range, in half the bytes
            found[name] = (tensor / scale.float()).round().clamp(-MAX_INT8, MAX_INT8).to(torch.int8)
            found[name + SCALE] = scale
    return found


def unpacked(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What `packed` took, but for rounding. Raises KeyError for int8 without a scale."""
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name, tensor in found.items():
        if tensor.dtype == torch.int8:
            found[name] = tensor.float() * tensors[name + SCALE].float()
        elif tensor.dtype == torch.int32:
            found[name] = tensor.long()
        elif tensor.is_floating_point():
            found[name] = tensor.float()
    return found
