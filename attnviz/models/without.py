"""A model without some of its heads: what they give is not projected.

The weights of the output projection are changed, not the pass, so that every kernel, capture and explanation sees one
and the same model. A projection is known by its input: the very numbers that an attention gave. Knows no kind of model.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attnviz.errors import InvalidModel, InvalidSelection, InvalidText
from attnviz.models.attribution.operators import AttendingCall, attending
from attnviz.models.protocols import AttentionModel
from attnviz.selection import select_pairs
from attnviz.specs import ModelOptions


class OutputWeights(NamedTuple):
    """The linear layer that reads the heads of one layer, side by side."""

    module: nn.Module
    n_heads: int
    by_rows: bool = False  # whether a row of its weight, and not a column, belongs to a number that it reads

    @property
    def weight(self) -> Float[Tensor, "d_model heads"]:
        """Return the weight of the layer, to be written to."""
        found = self.module.weight
        assert isinstance(found, Tensor)
        return found.T if self.by_rows else found

    def select(self, numbers: Float[Tensor, "*axes heads"], head: int) -> Float[Tensor, "*axes d_value"]:
        """Return the part of all heads' numbers, or of the weight, that is a head's, to be written to."""
        d_value = numbers.shape[-1] // self.n_heads
        return numbers[..., head * d_value : (head + 1) * d_value]


def find_projections(root: nn.Module, run: Callable[[], object]) -> list[OutputWeights]:
    """Find the output projection of each attention of one pass, in order: a layer whose weight reads what it gave."""
    weights = [(module, getattr(module, "weight", None)) for module in root.modules()]
    owners = {weight.data_ptr(): (module, weight.stride()) for module, weight in weights if isinstance(weight, Tensor)}
    found: list[OutputWeights] = []

    def keep(attention: AttendingCall) -> None:
        read_by = attention.read_by
        if read_by is not None and read_by.data_ptr() in owners:
            module, strides = owners[read_by.data_ptr()]
            found.append(OutputWeights(module, attention.n_heads, read_by.stride() == strides))

    with attending(projected=keep):
        run()
    return found


class Projecting(AttentionModel, Protocol):
    """A model that knows its output projections."""

    def list_projections(self) -> list[OutputWeights]:
        """List the linear layers that read the heads of each layer, as far as there are some."""


def remove_heads(model: Projecting, spec: ModelOptions) -> None:
    """Remove the heads that options name, for good.

    Raises InvalidSelection for a head that there is not, InvalidModel where heads have no projection of their own.
    """
    projections, n_layers, name = model.list_projections(), model.n_layers, model.name.removesuffix(spec.removal)
    modules = {id(each.module) for each in projections if isinstance(getattr(each.module, "weight", None), Tensor)}
    if len(projections) != n_layers or len(modules) != n_layers:
        raise InvalidModel(
            f"no head can be left out of {name}: not every layer projects what its heads give by weights of its own",
            hint="Leave out --without.",
        )
    pairs = select_pairs(spec.without, range(n_layers), range(min(each.n_heads for each in projections)))
    if any(head >= projections[layer].n_heads for layer, head in pairs):
        raise InvalidSelection("the mean over heads is not a head", hint="Name heads by their numbers: --without 0.3.")
    with torch.no_grad():
        for layer, head in pairs:
            projections[layer].select(projections[layer].weight, head).zero_()


@contextmanager
def silence_heads(projections: Sequence[OutputWeights], heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Let these heads, pairs of a layer and a head, give zeros at every token until the context is left."""
    with ExitStack() as stack:
        for layer, head in heads:

            def silence(states: Tensor, projection: OutputWeights = projections[layer], head: int = head) -> Tensor:
                changed = states.clone()
                projection.select(changed, head).zero_()
                return changed

            stack.enter_context(change_heads(projections[layer].module, silence))
        yield


def change_heads(projection: nn.Module, change: Callable[[Tensor], Tensor]) -> RemovableHandle:
    """Let a projection read something else than its heads [… token, heads], until the handle is removed."""
    return projection.register_forward_pre_hook(lambda _, given: (change(given[0]), *given[1:]))


def average_heads(
    projections: Sequence[nn.Module], passes: Iterable[Callable[[], object]]
) -> list[Float64[Tensor, " heads"]]:
    """Return the mean over all tokens of some passes of what each projection reads: its heads side by side.

    The same passes in the same order give the same bits. There is at least one with tokens.
    """
    totals: list[Any] = [0.0] * len(projections)
    n_tokens = 0

    def add(layer: int, states: Tensor) -> Tensor:
        nonlocal n_tokens
        states_of_tokens = states.detach().flatten(0, -2).double()
        totals[layer] = totals[layer] + states_of_tokens.sum(dim=0)
        n_tokens += len(states_of_tokens) if layer == 0 else 0
        return states

    with ExitStack() as stack:
        for layer, each in enumerate(projections):
            stack.enter_context(change_heads(each, partial(add, layer)))
        for run in passes:
            with suppress(InvalidText):  # one without tokens
                run()
    return [total / n_tokens for total in totals]
