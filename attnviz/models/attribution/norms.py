"""Lengths of what the values of a pass become, for models of others: `value_norms` of each attention that is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attnviz.models.attention import Norms, value_norms
from attnviz.models.attribution.functions import PRODUCTS, factors
from attnviz.models.attribution.module_attention import module_attention
from attnviz.models.capture.captured import Kernel, to_batch_heads


def projection_of(
    heads: Float[Tensor, "*axes head query d_value"], function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Float[Tensor, "d_model head d_value"] | None:
    """The weight of a linear layer that reads just what an attention gave, its heads side by side; None of all else."""
    if function is functional.linear:
        state, weight = args[0], args[1] if len(args) > 1 else kwargs["weight"]
    elif function is torch.addmm and len(args) == 3:
        state, weight = args[1], args[2].T
    else:
        return None
    n_batch, n_heads, n_queries, d_value = (heads := to_batch_heads(heads)).shape
    if state.numel() != heads.numel() or state.shape[-1] != n_heads * d_value:
        return None
    same = torch.equal(state.reshape(n_batch, n_queries, n_heads, d_value), heads.transpose(1, 2))
    return torch.as_tensor(weight.reshape(len(weight), n_heads, d_value)) if same else None


class NormsOfCalls(TorchFunctionMode):
    """Of each attention of a pass in its order, whichever kernel computes it; None where no projection came behind it.

    A projection is known by its input: the very numbers that an attention gave, its heads side by side.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open: list[tuple[Tensor, Tensor]] = []  # value and output of attentions, or of any products
        self._found: dict[int, list[Norms]] = {}
        self._n_calls = 0

    @property
    def calls(self) -> list[list[Norms]]:
        """Of each call whose projection was found, in order: the norms of each text of the batch."""
        return [self._found[place] for place in sorted(self._found)]

    def __torch_function__(
        self, function: Kernel, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            if function is functional.multi_head_attention_forward:
                found = module_attention(function, args, kwargs)
                heads = found.output_weight.view(len(found.output_weight), found.weights.shape[1], -1)
                self._keep([value_norms(of_text, heads) for of_text in found.value])
            elif function is functional.scaled_dot_product_attention:
                self._open_up(args[2] if len(args) > 2 else kwargs["value"], result)
            elif function in PRODUCTS:
                self._open_up(factors(function, args, kwargs)[1], result)
            else:
                self._project(function, args, kwargs)
        return result

    def _open_up(self, value: object, result: Tensor) -> None:
        """What may be attention: the last two are remembered, since scores are a product, too."""
        if isinstance(value, Tensor) and value.ndim == 4 and result.ndim == 4:
            self._open = [*self._open[-1:], (value, result)]

    def _keep(self, norms: list[Norms]) -> None:
        self._found[self._n_calls] = norms
        self._n_calls += 1

    def _project(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        for value, output in self._open:
            projection = projection_of(output, function, args, kwargs)
            if projection is None:
                continue
            values, n_heads = to_batch_heads(value), output.shape[1]
            repeats = n_heads // values.shape[1] if n_heads % max(1, values.shape[1]) == 0 else 0
            if repeats and len(values) == len(output):
                self._keep([value_norms(of_text.repeat_interleave(repeats, dim=0), projection) for of_text in values])
            self._open = []
            return
