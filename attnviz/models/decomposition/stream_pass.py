"""One pass of a model seen layer by layer: what each head and each MLP writes into the residual stream.

Nothing here knows a family of models. A layer is a numbered module; its attention is the function that it calls, the
output projection the linear layer that reads what the kernel gave, and its MLP the module whose output is what remains
of what the layer adds. Of a layer whose last word is a norm, as in BERT, what heads give is added and normed, then what
the MLP gives. Where something else remains, the model is refused: parts that miss their sum would be guesses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from attnviz.errors import InvalidModel
from attnviz.models.attribution.held import HeldPass
from attnviz.models.attribution.operators import LINEAR, reads_heads
from attnviz.models.capture.captured import Asked, recompute
from attnviz.models.decomposition import blocks
from attnviz.models.decomposition.blocks import Arguments, Attention, OutputProjection, StreamBlock

TOLERANCE = 1e-5  # by how much parts may miss their sum, as a share of its largest number
FORMS = "Decoders in the form of Llama, Qwen, Mistral, GPT-2 or GPT-NeoX can be; encoders in that of BERT and ours."
NO_KERNEL = "a layer of it does not attend by scaled_dot_product_attention, as with soft-caps, sinks or code of its own"
NO_PROJECTION = "what the heads of a layer give is changed before it is projected"
NOT_A_SUM = "a layer of it adds something else than its heads and its MLP, as norms in the middle do"


class StreamPass(HeldPass):  # type: ignore[no-untyped-call]
    """One pass in which norms are held and layers are taken apart. `blocks` are the layers in their order.

    Raises InvalidModel where a layer adds something else than its heads and its MLP.
    """

    def __init__(self, words: Tensor, root: nn.Module, name: str) -> None:
        super().__init__(words, root)
        self.blocks: list[StreamBlock] = []
        self.final = torch.empty(0)  # what the last norm reads, a leaf
        self._name, self._root = name, root
        self._layer: tuple[Arguments, Tensor] | None = None  # what the layer at work was called with, and its state
        self._attention: Attention | None = None
        self._projection: OutputProjection | None = None
        self._norms: list[blocks.StreamNorm] = []  # behind the attention of the layer at work
        self._reversed: tuple[Tensor, Tensor] | None = None  # queries as they were, and from the last to the first
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
        elif given.shape[-2] == n_tokens:
            by_token = given.reshape(n_tokens, -1).sum(dim=1)
        else:  # behind the mean over tokens, or of one of them: of no token more than of another
            by_token = given.sum().expand(n_tokens) / n_tokens
        self._constants += by_token.numpy()

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """Watch the layers and the modules in them, and gate activations as `HeldPass` does."""
        with super().hooks(), Kernels(self._attend), ExitStack() as stack:
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
        if any(block.module is module for block in self.blocks):
            raise self._refuse("its layers share one module, so that no head is of one layer alone")
        # Each layer reads a leaf of its own. A gradient ends there: what earlier layers wrote is known as a vector, and
        # no path leads through what they read in turn. For the sum to be whole, a layer has to read just what the one
        # before it gave, which is why anything else was refused above.
        state = given.detach().requires_grad_()
        changed = blocks.replace_state((args, kwargs), state)
        self._layer, self._attention, self._projection = (changed, state), None, None
        self._outputs.clear()
        self._norms.clear()
        return changed

    def _keep(self, module: nn.Module, given: Any, output: Any) -> None:
        found = output[0] if isinstance(output, tuple) and output else output
        if self._layer is not None and isinstance(found, Tensor) and found.numel() == self._layer[1].numel():
            self._outputs.append(found.detach())

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Keep how what heads give is projected, and norms behind it; the numbers stay the operator's own."""
        result = super().run(name, func, args, kwargs)
        if self._layer is None:
            return result
        # In a layer three things come in this order: the kernel, the linear operator that reads what its heads gave,
        # and norms behind that, if the stream has any.
        if self._attention is None:
            if name == "flip" and result.ndim == 4:
                self._reversed = args[0], result
        elif self._projection is None:
            mixed = self._attention.mixed
            with _disable_current_modes():
                if name in LINEAR and reads_heads(args[-2], mixed[None]):
                    weight, bias = args[-1].T.unflatten(1, (len(mixed), -1)), args[0] if len(args) > 2 else None
                    written = result.detach().reshape(self._layer[1].shape)[0]
                    self._projection = OutputProjection(weight, bias, self._at_work[-1], written)
        elif name == "native_layer_norm" and (norm := blocks.StreamNorm.from_operator(args, result[0])) is not None:
            self._norms.append(norm)
        return result

    def _attend(self, asked: Asked) -> Tensor:
        kernel = functional.scaled_dot_product_attention
        if self._layer is None:
            return torch.as_tensor(kernel(**vars(asked)))
        if self._reversed is not None and asked.query is not self._reversed[1]:
            self._reversed = None
        if self._reversed is not None:  # our encoders hand queries over from the last to the first
            query, mask = self._reversed[0], asked.attn_mask  # read first: the mask's flip comes by `run`, too
            asked = replace(asked, query=query, attn_mask=None if mask is None else mask.flip(-2))
        n_tokens = self._layer[1].shape[1]
        lengths = asked.query.shape[-2], asked.key.shape[-2]
        if self._attention is not None or asked.query.ndim != 4 or lengths != (n_tokens, n_tokens):
            raise self._refuse("a layer of it attends more than once, or to others than its tokens")
        output, what = torch.as_tensor(kernel(**vars(asked))), f"a layer of {self._name}"
        with torch.no_grad(), torch._C.DisableTorchFunction(), torch.autocast(output.device.type, enabled=False):
            weights, attendable, _ = recompute(asked, output, what)
        mask, bias = asked.attn_mask, None
        if mask is not None and mask.dtype != torch.bool:
            bias = mask.detach().expand_as(weights)[0].masked_fill(~attendable[0], 0)
        self._attention = Attention(
            query=asked.query,
            key=asked.key,
            scale=asked.query.shape[-1] ** -0.5 if asked.scale is None else asked.scale,
            bias=bias,
            value=asked.value.detach()[0],
            weights=weights[0].detach(),
            attendable=attendable[0],
            mixed=output.detach()[0],
        )
        torch.set_grad_enabled(False)  # nothing behind queries and keys is read, and an MLP's graph is large
        return output.detach().flip(-2) if self._reversed is not None else output.detach()

    def _close(self, module: nn.Module, given: Any, output: Any) -> Any:
        result = output[0] if isinstance(output, tuple) else output
        assert self._layer is not None
        arguments, state = self._layer
        if self._attention is None or self._projection is None:
            raise self._refuse(NO_KERNEL if self._attention is None else NO_PROJECTION)
        before, after, norms = state.detach()[0], result.detach()[0], None
        written = self._projection.written
        if self._norms and torch.equal(self._norms[-1].given, after):
            norms = self._norms[0], self._norms[-1]
            if not _is_close(norms[0].read, before + written, before, written):
                raise self._refuse(NOT_A_SUM)
            before, written, after = norms[0].given, torch.zeros_like(written), norms[1].read
        # What the layer added is known, and what its heads wrote. The MLP is found by what it has to be: the module,
        # the last first, whose output is what is left. So no name of any module has to be known, and a layer in which
        # something else is added has no such module. Where nothing is left there is no MLP.
        left = after - before - written  # nothing, or the output of one module
        outputs = (each.reshape(left.shape) for each in (torch.zeros_like(left), *reversed(self._outputs)))
        mlp = next((each for each in outputs if _is_close(each, left, before, written, after)), None)
        if mlp is None:
            raise self._refuse(NOT_A_SUM)
        torch.set_grad_enabled(True)
        self.blocks.append(StreamBlock(module, arguments, state, self._attention, self._projection, mlp, norms))
        self._layer, self._reversed, self.final = None, None, result.detach().requires_grad_()
        return (self.final, *output[1:]) if isinstance(output, tuple) else self.final

    def _refuse(self, why: str) -> InvalidModel:
        return InvalidModel(f"{self._name} cannot be taken apart: {why}", hint=FORMS)


class Kernels(TorchFunctionMode):
    """While it is open, `attend` stands for scaled_dot_product_attention.

    The one function that is looked at above the dispatcher. Below, q and k are no more: where keys are shared by heads
    or no kernel fits, a pass with gradients runs as products of matrices that were scaled, repeated and turned before.
    """

    def __init__(self, attend: Callable[[Asked], Tensor]) -> None:
        super().__init__()
        self._attend = attend

    def __torch_function__(
        self, function: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is functional.scaled_dot_product_attention:
            return self._attend(Asked(*args, **kwargs))
        return function(*args, **kwargs)


def _is_close(found: Tensor, wanted: Tensor, *parts: Float[Tensor, "token d_model"]) -> bool:
    """Tell whether they differ by no more than a share of the largest number of the parts at each token; NaN does."""
    largest = torch.stack([each.abs().amax(dim=1) for each in parts]).amax(dim=0)
    return bool(((found - wanted).abs() <= TOLERANCE * largest.unsqueeze(1)).all())


def find_layers(root: nn.Module) -> list[nn.Module]:
    """Find the outermost modules that are numbered in a list, each once."""
    found: dict[str, nn.Module] = {}
    for name, module in root.named_modules():
        around, _, number = name.rpartition(".")
        is_inside = any(name.startswith(f"{outer}.") for outer in found)
        if number.isdecimal() and not is_inside and isinstance(root.get_submodule(around), nn.ModuleList):
            found[name] = module
    return list(found.values())
