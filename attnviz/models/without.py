"""A model without some of its heads: what they give is not projected, or in its place their mean over some texts is.

The weights of the output projection are changed, not the pass, so that every kernel, capture and explanation sees one
and the same model. A projection is known by its input: the very numbers that an attention gave. Knows no kind of model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from attnviz.errors import InvalidModel, InvalidOption, InvalidSelection, InvalidText
from attnviz.models.attribution.functions import PRODUCTS
from attnviz.models.attribution.norms import projection_of
from attnviz.models.capture.captured import Kernel
from attnviz.selection import select_pairs

MAX_TEXTS = 32  # whose tokens a mean is over


class OutputWeights(NamedTuple):
    """The linear layer that reads the heads of one layer, side by side."""

    module: nn.Module
    n_heads: int
    by_rows: bool = False  # whether a row of its weight, and not a column, belongs to a number that it reads

    @property
    def weight(self) -> Float[Tensor, "d_model heads"]:
        """The weight of the layer, to be written to."""
        found = self.module.weight
        assert isinstance(found, Tensor)
        return found.T if self.by_rows else found

    def select(self, numbers: Float[Tensor, "*axes heads"], head: int) -> Float[Tensor, "*axes d_value"]:
        """Return the part of all heads' numbers, or of the weight, that is a head's, to be written to."""
        d_value = numbers.shape[-1] // self.n_heads
        return numbers[..., head * d_value : (head + 1) * d_value]


class ProjectionSearch(TorchFunctionMode):
    """While it is open, find the output projection of each attention of a pass, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[OutputWeights] = []
        self._mixed: list[Tensor] = []  # what attentions gave, or any products: the last two
        self._at_work: list[nn.Module] = []

    def run(self, work: Callable[[], object]) -> list[OutputWeights]:
        """Find those of one pass."""
        with (
            register_module_forward_pre_hook(lambda module, _: self._at_work.append(module)),
            register_module_forward_hook(self._leave),
            self,
        ):
            work()
        return self.found

    def _leave(self, *_: object) -> None:
        self._at_work.pop()

    def __torch_function__(
        self, function: Kernel, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            if function is functional.scaled_dot_product_attention or function in PRODUCTS:
                if result.ndim == 4:
                    self._mixed = [*self._mixed[-1:], result]
                return result
            for mixed in self._mixed:
                if projection_of(mixed, function, args, kwargs) is not None and self._at_work:
                    self.found.append(OutputWeights(self._at_work[-1], mixed.shape[1], function is torch.addmm))
                    self._mixed = []
                    break
        return result


def remove_heads(
    projections: Sequence[OutputWeights],
    n_layers: int,
    written: Sequence[str],
    name: str,
    passes: Iterable[Callable[[], object]] | None = None,
) -> None:
    """Remove heads, for good. `passes`: one for each text that the mean is over; None: nothing stands for them.

    Raises InvalidSelection for a head that there is not, InvalidModel where heads have no projection of their own.
    """
    modules = {id(each.module) for each in projections if isinstance(getattr(each.module, "weight", None), Tensor)}
    if len(projections) != n_layers or len(modules) != n_layers:
        raise InvalidModel(
            f"no head can be left out of {name}: not every layer projects what its heads give by weights of its own",
            hint="Leave out --without.",
        )
    pairs = select_pairs(written, range(n_layers), range(min(each.n_heads for each in projections)))
    if any(head >= projections[layer].n_heads for layer, head in pairs):
        raise InvalidSelection("the mean over heads is not a head", hint="Name heads by their numbers: --without 0.3.")
    means = None if passes is None else _average_inputs(projections, passes)
    with torch.no_grad():
        for layer, head in pairs:
            projection = projections[layer]
            part = projection.select(projection.weight, head)
            if means is not None:
                _add_to_bias(projection.module, part @ projection.select(means[layer], head))
            part.zero_()


def _add_to_bias(module: nn.Module, constant: Float[Tensor, " d_model"]) -> None:
    bias = module.bias
    module.bias = nn.Parameter(bias + constant if isinstance(bias, Tensor) else constant, requires_grad=False)


def _average_inputs(
    projections: Sequence[OutputWeights], passes: Iterable[Callable[[], object]]
) -> list[Float[Tensor, " heads"]]:
    """Return the mean over all tokens of what each projection reads: its heads side by side."""
    totals: list[Tensor | None] = [None] * len(projections)
    n_tokens = [0] * len(projections)

    def add(layer: int, _: nn.Module, given: tuple[Tensor, ...]) -> None:
        states = given[0].detach().flatten(0, -2).double()
        total = totals[layer]
        totals[layer] = states.sum(dim=0) if total is None else total + states.sum(dim=0)
        n_tokens[layer] += len(states)

    with ExitStack() as stack:
        for layer, each in enumerate(projections):
            stack.enter_context(each.module.register_forward_pre_hook(partial(add, layer)))
        for run in passes:
            with suppress(InvalidText):  # one without tokens
                run()
    if not all(n_tokens):
        raise InvalidOption("--without-mean is over texts at hand, and there are none", hint="Leave it out.")
    return [
        (total / number).to(each.weight.dtype)
        for total, number, each in zip(totals, n_tokens, projections, strict=True)
        if total is not None
    ]
