"""A forward pass in which what normalises, weighs and gates is held: it gives the same numbers, and is linear in words.

Held are the scale of layer norm, the weights of softmax and the gate of an activation such as GELU; of a product of two
states each gets half (Ali et al. 2022, arXiv:2202.07304; AttnLRP, Achtibat et al. 2024, arXiv:2402.05602). Then
gradient × input, and what constants such as biases give, add up to the output. Without it, layer norm cancels most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from attnviz.models.attribution.functions import ADDING, SOFTMAXES
from attnviz.models.attribution.module_attention import module_attention
from attnviz.models.attribution.passes import WordInputs
from attnviz.models.capture.captured import Kernel

ACTIVATIONS = ("torch.nn.modules.activation", "transformers.activations")  # where modules of them are
NO_GATE = (nn.Softmax, nn.LogSoftmax, nn.MultiheadAttention)
# By their names, since torch has each as a function, as a method and in place.
GATED = {"gelu", "relu", "silu", "mish", "elu", "selu", "leaky_relu", "relu6", "hardswish", "tanh", "erf", "pow"}
HELD = {"rsqrt", "sqrt", "reciprocal", "sigmoid", "norm"}  # scales and gates, multiplied with a state
SUMS = {"add", "add_", "sub", "sub_", "__radd__", "__rsub__"}
PRODUCTS = {"mul", "mul_", "multiply", "matmul", "bmm", "__rmul__", "__matmul__", "einsum"}
QUOTIENTS = {"div", "div_", "true_divide", "__truediv__"}
LINEAR = {  # what is as linear as it is without any help
    *("view", "reshape", "transpose", "permute", "contiguous", "flatten", "unflatten", "squeeze", "unsqueeze"),
    *("expand", "__get__", "__getitem__", "__setitem__", "__len__", "size", "dim", "numel", "to", "type_as"),
    *("float", "double", "cat", "stack", "split", "chunk", "unbind", "repeat", "repeat_interleave", "expand_as"),
    *("view_as", "index_select", "gather", "narrow", "roll", "flip", "sum", "mean", "neg", "clone", "dropout"),
    *("conv1d", "masked_fill", "where", "detach", "is_floating_point", "stride", "__bool__", "t", "movedim"),
    *("swapaxes", "var", "isinf", "any", "embedding", "requires_grad_", "layer_norm", "linear", "addmm", "baddbmm"),
    *("softmax", "clamp_min", "as_tensor"),
}


class HeldPass(WordInputs):
    """One pass of a model. `constants` is complete once the gradient has been taken."""

    def __init__(self, words: Tensor, root: nn.Module) -> None:
        super().__init__(words)
        self.constants = 0.0  # what biases, positions and other numbers that no word brings give
        self.not_held: list[str] = []  # functions that are not linear in words, and where
        self._names = {id(module): name for name, module in root.named_modules()}
        self._at_work: list[nn.Module] = []

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """While they are there, activations that are modules of their own are gated as a whole."""
        with (
            register_module_forward_pre_hook(lambda module, _: self._at_work.append(module)),
            register_module_forward_hook(self._leave),
        ):
            yield

    def compute(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The function's own numbers, held."""
        rule, name = RULES.get(function), str(getattr(function, "__name__", ""))
        if rule is not None:
            return rule(self, function, args, kwargs)
        if not any(map(_varies, [*_flat(args), *_flat(kwargs.values())])):
            return function(*args, **kwargs)
        if name in GATED:
            return self.gate(args[0], function(*args, **kwargs))
        if name in HELD:
            return function(*args, **kwargs).detach()
        if name in SUMS:
            return self._sum(function, args, kwargs, name)
        if name in PRODUCTS:
            return _product(function, args, kwargs)
        if name in QUOTIENTS:
            return function(*(args[0], *(each.detach() if _varies(each) else each for each in args[1:])), **kwargs)
        result = function(*args, **kwargs)
        if name not in LINEAR and any(map(_varies, _flat((result,)))) and not any(map(_is_activation, self._at_work)):
            self._note(name)
        return result

    def constant(self, result: Tensor, part: Any) -> Tensor:
        """`result`, into which `part` went that no word brings."""
        if _varies(result) and part is not None:
            numbers = torch.as_tensor(part).detach()
            result.register_hook(partial(self._count, numbers))  # type: ignore[no-untyped-call]
        return result

    def _count(self, numbers: Tensor, gradient: Tensor) -> None:
        self.constants += float((gradient.cpu().double() * numbers.cpu().double()).sum())

    def gate(self, state: Tensor, result: Tensor) -> Tensor:
        """An activation as its argument times a gate, result / argument, that is held."""
        with torch.no_grad():
            share = torch.where(state == 0, 0.0, result / state)
            rest = result - state * share  # 0 but for an activation of 0 that is not 0
        held = state * share
        return self.constant(held + rest, rest) if bool(rest.any()) else held

    def _sum(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> Tensor:
        result: Tensor = function(*args, **kwargs)
        first, second = args[0], args[1] if len(args) > 1 else kwargs["other"]
        if _varies(first) and _varies(second):
            return result
        # first - second, or of __rsub__ second - first
        sign = {"sub": 1.0, "__rs": -1.0}.get(name[:3] if name[0] != "_" else name[:4], 0.0)
        sign = (-sign if _varies(first) else sign) or 1.0
        constant = second if _varies(first) else first
        return self.constant(result, torch.as_tensor(constant) * sign * kwargs.get("alpha", 1))

    def _leave(self, module: nn.Module, given: tuple[Any, ...], output: Any) -> Any:
        while self._at_work and self._at_work.pop() is not module:
            pass
        if not _is_activation(module) or len(given) != 1 or not isinstance(output, Tensor) or not _varies(given[0]):
            return None
        return self.gate(given[0], output.detach()) if output.shape == given[0].shape else None

    def _note(self, name: str) -> None:
        where = next((self._names[id(each)] for each in reversed(self._at_work) if self._names.get(id(each))), "")
        said = f"{name} in {where}" if where else name
        if said not in self.not_held:
            self.not_held.append(said)


def _varies(given: Any) -> bool:
    """Whether a tensor comes from the words; parameters are frozen."""
    return isinstance(given, Tensor) and given.requires_grad


def _flat(given: Any) -> Iterator[Any]:
    for each in given:
        if isinstance(each, list | tuple):
            yield from _flat(each)
        else:
            yield each


def _is_activation(module: nn.Module) -> bool:
    return type(module).__module__.startswith(ACTIVATIONS) and not isinstance(module, NO_GATE)


def _product(function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    """Half of it by way of either factor, where both come from the words."""
    varying = [place for place, each in enumerate(args) if _varies(each)]
    if len(varying) < 2:
        result: Tensor = function(*args, **kwargs)
        return result
    parts = [
        function(*(each.detach() if other != place and _varies(each) else each for other, each in enumerate(args)))
        for place in varying
    ]
    total: Tensor = torch.stack(parts).sum(dim=0) / len(parts)
    return total


def _layer_norm(held: HeldPass, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    names = ("input", "normalized_shape", "weight", "bias", "eps")
    asked = {"weight": None, "bias": None, "eps": 1e-5, **dict(zip(names, args, strict=False)), **kwargs}
    state, axes = asked["input"], tuple(range(-len(asked["normalized_shape"]), 0))
    centred = state - state.mean(dim=axes, keepdim=True)
    scale = (state.var(dim=axes, unbiased=False, keepdim=True) + asked["eps"]).rsqrt().detach()
    return _affine(held, centred * scale, asked["weight"], asked["bias"])


def _rms_norm(held: HeldPass, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    names = ("input", "normalized_shape", "weight", "eps")
    asked = {"weight": None, "eps": None, **dict(zip(names, args, strict=False)), **kwargs}
    state, axes = asked["input"], tuple(range(-len(asked["normalized_shape"]), 0))
    eps = torch.finfo(state.dtype).eps if asked["eps"] is None else asked["eps"]
    scale = (state.square().mean(dim=axes, keepdim=True) + eps).rsqrt().detach()
    return _affine(held, state * scale, asked["weight"], None)


def _affine(held: HeldPass, state: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    state = state if weight is None else state * weight
    return state if bias is None else held.constant(state + bias, bias)


def _linear(held: HeldPass, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    return held.constant(function(*args, **kwargs), bias)


def _adding_product(held: HeldPass, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    return held.constant(function(*args, **kwargs), args[0] if not _varies(args[0]) else None)


def _dot_product(held: HeldPass, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The kernel's own output, from the values alone."""
    given = {**dict(zip(("query", "key", "value", "attn_mask"), args, strict=False)), **kwargs}
    rest = args[4:]
    sides = (given.pop("query").detach(), given.pop("key").detach(), given.pop("value"), given.pop("attn_mask", None))
    return function(*sides, *rest, **given)


def _multi_head(held: HeldPass, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """torch's module: from the values alone, under the weights that it has."""
    found = module_attention(function, args, kwargs)
    mixed = found.mix_values()
    if found.value_bias is not None:  # rows of weights sum to 1
        held.constant(found.value, found.value_bias)
    return held.constant(found.project(mixed), found.output_bias), found.answered


Rule = Callable[[HeldPass, Kernel, Sequence[Any], Mapping[str, Any]], Any]
RULES: dict[Kernel, Rule] = {
    functional.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    functional.linear: _linear,
    functional.scaled_dot_product_attention: _dot_product,
    functional.multi_head_attention_forward: _multi_head,
    torch.addmm: _adding_product,
    **dict.fromkeys(ADDING, _adding_product),
    **dict.fromkeys(SOFTMAXES, lambda held, function, args, kwargs: function(*args, **kwargs).detach()),
}
if hasattr(functional, "rms_norm"):
    RULES[functional.rms_norm] = _rms_norm
