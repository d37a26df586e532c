"""One pass of a decoder seen layer by layer: what each head and each MLP writes into the residual stream.

Nothing here knows a family of models. A layer is a numbered module; its attention is the kernel that it calls, the
output projection the linear layer that reads what the kernel gave, and its MLP the module whose output is what remains
of what the layer adds. Where something remains, the model is refused: parts that miss their sum would be guesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import InvalidModel
from attnviz.models.attribution.held import HeldPass
from attnviz.models.capture.captured import Kernel, to_batch_heads
from attnviz.models.capture.kernels import dot_product, read_arguments
from attnviz.models.capture.norms import projection_of

TOLERANCE = 1e-5  # by how much parts may miss their sum, as a share of its largest number
FORMS = "Decoders in the form of Llama, Qwen, Mistral, GPT-2 or GPT-NeoX can be."
NO_KERNEL = "a layer of it does not attend by scaled_dot_product_attention, as with soft-caps, sinks or code of its own"
NO_PROJECTION = "what the heads of a layer give is changed before it is projected"
NOT_A_SUM = "a layer of it adds something else than its heads and its MLP, as norms in the middle do"

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Attention(NamedTuple):
    """What a kernel read and gave. `query` and `key` are in the graph."""

    query: Float[Tensor, "1 head token d_head"]
    key: Float[Tensor, "1 group token d_head"]
    scale: float
    bias: Float[Tensor, "head token token"] | None  # what is added to scores, such as by distance
    value: Float[Tensor, "group token d_value"]
    weights: Float[Tensor, "head token token"]
    attendable: Bool[Tensor, "token token"]
    mixed: Float[Tensor, "head token d_value"]  # weights · value


class OutputProjection(NamedTuple):
    """How what heads give becomes what they write: by a linear layer, `module`."""

    weight: Float[Tensor, "d_model head d_value"]
    bias: Float[Tensor, " d_model"] | None
    module: nn.Module
    written: Float[Tensor, "token d_model"]  # by all heads


@dataclass(frozen=True, eq=False)
class DecoderBlock:
    """One layer at work. `state` is what it read, a leaf of the graph that queries and keys are computed in."""

    module: nn.Module
    given: Arguments  # what the module was called with
    state: Float[Tensor, "1 token d_model"]
    attention: Attention
    projection: OutputProjection
    mlp: Float[Tensor, "token d_model"]

    @property
    def n_heads(self) -> int:
        """How many heads of queries the layer has."""
        return len(self.attention.mixed)

    def group_of(self, head: int, of: Float[Tensor, "group token d"]) -> int:
        """Return which of the keys or values a head shares with others."""
        return head // (self.n_heads // len(of))

    def write(self, head: int) -> Float[Tensor, "token d_model"]:
        """Return what a head writes into the stream."""
        return self.attention.mixed[head] @ self.projection.weight[:, head].detach().T

    def call_with(self, state: Float[Tensor, "1 token d_model"]) -> Arguments:
        """Return what the module is called with to read another state."""
        return _replace_state(self.given, state)


class StreamPass(HeldPass):
    """One pass in which norms are held and layers are taken apart. `blocks` are the layers in their order.

    Raises InvalidModel where a layer adds something else than its heads and its MLP.
    """

    def __init__(self, words: Tensor, root: nn.Module, name: str) -> None:
        super().__init__(words, root)
        self.blocks: list[DecoderBlock] = []
        self.final = torch.empty(0)  # what the last norm reads, a leaf
        self._name, self._root = name, root
        self._layer: tuple[Arguments, Tensor] | None = None  # what the layer at work was called with, and its state
        self._attention: Attention | None = None
        self._projection: OutputProjection | None = None
        self._outputs: list[Tensor] = []  # of the modules in the layer at work
        self._constants: Float64[np.ndarray, " token"] = np.zeros(0)

    def take_constants(self) -> Float64[np.ndarray, " token"]:
        """Return what biases gave at each token in the gradients since this was last called."""
        found, self._constants = self._constants, np.zeros(self.final.shape[1])
        return found

    def _count(self, numbers: Tensor, gradient: Tensor) -> None:
        given, n_tokens = (gradient.cpu().double() * numbers.cpu().double()), len(self._constants)
        if given.ndim == 4:  # heads stand before or behind tokens
            by_token = given.sum(dim=(0, 2, 3) if given.shape[2] != n_tokens else (0, 1, 3))
        else:
            by_token = given.reshape(n_tokens, -1).sum(dim=1)
        self._constants += by_token.numpy()

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """Watch the layers and the modules in them, and gate activations as `HeldPass` does."""
        with super().hooks(), ExitStack() as stack:
            for layer in find_layers(self._root):
                stack.enter_context(layer.register_forward_pre_hook(self._enter, with_kwargs=True))
                for each in layer.modules():
                    if each is not layer:
                        stack.enter_context(each.register_forward_hook(self._keep))
                stack.enter_context(layer.register_forward_hook(self._close))
            yield

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        given = args[0] if args else kwargs.get("hidden_states")
        if not isinstance(given, Tensor) or given.ndim != 3 or len(given) != 1:
            raise self._refuse("a layer of it reads something else than the states of tokens")
        if self.blocks and not torch.equal(given, self.final):
            raise self._refuse("something is added between two of its layers")
        state = given.detach().requires_grad_()
        changed = _replace_state((args, kwargs), state)
        self._layer, self._attention, self._projection = (changed, state), None, None
        self._outputs.clear()
        return changed

    def _keep(self, module: nn.Module, given: Any, output: Any) -> None:
        found = output[0] if isinstance(output, tuple) and output else output
        if self._layer is not None and isinstance(found, Tensor) and found.numel() == self._layer[1].numel():
            self._outputs.append(found.detach())

    def compute(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Keep what attention reads and how it is projected; the numbers stay the function's own."""
        if self._layer is None:
            return super().compute(function, args, kwargs)
        if function is functional.scaled_dot_product_attention:
            return self._attend(args, kwargs)
        result = super().compute(function, args, kwargs)
        if self._attention is not None and self._projection is None:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                weight = projection_of(self._attention.mixed, function, args, kwargs)
                if weight is not None:
                    bias = args[0] if function is torch.addmm else args[2] if len(args) > 2 else kwargs.get("bias")
                    written = result.detach().reshape(self._layer[1].shape)[0]
                    self._projection = OutputProjection(weight, bias, self._at_work[-1], written)
        return result

    def _attend(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
        asked, kernel = read_arguments(args, kwargs), functional.scaled_dot_product_attention
        n_tokens = self._layer[1].shape[1] if self._layer else 0
        lengths = asked.query.shape[-2], asked.key.shape[-2]
        if self._attention is not None or lengths != (n_tokens, n_tokens):
            raise self._refuse("a layer of it attends more than once, or to others than its tokens")
        output, seen = dot_product(kernel, args, kwargs, f"a layer of {self._name}")
        mask, bias = asked.attn_mask, None
        if mask is not None and mask.dtype != torch.bool:
            bias = to_batch_heads(mask.detach())[0].masked_fill(~seen.attendable[0], 0).expand_as(seen.weights[0])
        self._attention = Attention(
            query=asked.query,
            key=asked.key,
            scale=asked.query.shape[-1] ** -0.5 if asked.scale is None else asked.scale,
            bias=bias,
            value=asked.value.detach()[0],
            weights=seen.weights[0].detach(),
            attendable=seen.attendable[0],
            mixed=output.detach()[0],
        )
        torch.set_grad_enabled(False)  # nothing behind queries and keys is read, and an MLP's graph is large
        return output.detach()

    def _close(self, module: nn.Module, given: Any, output: Any) -> Any:
        result = output[0] if isinstance(output, tuple) else output
        assert self._layer is not None
        arguments, state = self._layer
        if self._attention is None or self._projection is None:
            raise self._refuse(NO_KERNEL if self._attention is None else NO_PROJECTION)
        mlp = self._find_mlp(state.detach()[0], self._projection.written, result.detach()[0])
        torch.set_grad_enabled(True)
        self.blocks.append(DecoderBlock(module, arguments, state, self._attention, self._projection, mlp))
        self._layer, self.final = None, result.detach().requires_grad_()
        return (self.final, *output[1:]) if isinstance(output, tuple) else self.final

    def _find_mlp(
        self,
        before: Float[Tensor, "token d_model"],
        written: Float[Tensor, "token d_model"],
        after: Float[Tensor, "token d_model"],
    ) -> Float[Tensor, "token d_model"]:
        """Find what is left of a layer when its heads are taken away: nothing, or the output of one module."""
        left = after - before - written
        largest = torch.stack([each.abs().amax(dim=1) for each in (before, written, after)]).amax(dim=0)
        for found in (torch.zeros_like(left), *reversed(self._outputs)):
            mlp = found.reshape(left.shape)
            if bool(((mlp - left).abs() <= TOLERANCE * largest.unsqueeze(1)).all()):  # written so that NaN fits nothing
                return mlp
        raise self._refuse(NOT_A_SUM)

    def _refuse(self, why: str) -> InvalidModel:
        return InvalidModel(f"{self._name} cannot be taken apart: {why}", hint=FORMS)


def find_layers(root: nn.Module) -> list[nn.Module]:
    """Find the outermost modules that are numbered in a list, each once."""
    found: dict[str, nn.Module] = {}
    for name, module in root.named_modules():
        around, _, number = name.rpartition(".")
        is_inside = any(name.startswith(f"{outer}.") for outer in found)
        if number.isdecimal() and not is_inside and isinstance(root.get_submodule(around), nn.ModuleList):
            found[name] = module
    return list(found.values())


def _replace_state(given: Arguments, state: Tensor) -> Arguments:
    args, kwargs = given
    return ((state, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": state})
