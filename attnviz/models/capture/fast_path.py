"""Modules of torch's that compute in another, fused way where nobody looks at their functions. Knows no attention."""

from __future__ import annotations

import torch
from torch import nn

FAST = (nn.TransformerEncoder, nn.TransformerEncoderLayer)


def has_fast_path(module: nn.Module) -> bool:
    """Whether torch would fuse its layers, which it does not where functions are watched.

    Torch does not fuse a layer that has hooks, or whose parts have. An encoder some of whose parts have hooks counts as
    not fused, so that nobody runs those again: its layers without hooks are fused one by one.
    """
    if type(module) not in FAST or module.training:
        return False
    if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in module.parameters()):
        return False
    if type(module) is FAST[1]:
        return not any(map(_has_hooks, module.modules()))
    layers = module.get_submodule("layers").children()
    return all(type(layer) is FAST[1] for layer in layers) and not any(
        _has_hooks(part) for part in module.modules() if part is not module
    )


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)
