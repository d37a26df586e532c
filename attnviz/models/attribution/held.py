"""A forward pass in which what normalises, weighs and gates is held: it gives the same numbers, and is linear in words.

Held are the scale of layer norm, the weights of softmax and the gate of an activation such as GELU; of a product of two
states each gets half (Ali et al. 2022, arXiv:2202.07304; AttnLRP, Achtibat et al. 2024, arXiv:2402.05602). Then
gradient × input, and what constants such as biases give, add up to the output. Without it, layer norm cancels most.

The pass runs as it is, to the last bit but for activations that are modules. Each operator is seen as it runs, and its
rule is hung on the node that autograd makes for it right after: it gives back what the held operator would. Nodes that
nothing of the words goes through, since all that they read is held, are dead: what they give is a constant, and no
gradient goes into them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from attnviz.models.attribution.operators import WordInputs
from attnviz.models.capture.captured import is_kernel
from attnviz.models.capture.follow import list_tensors

Gradients = tuple[Tensor | None, ...]
ACTIVATIONS = ("torch.nn.modules.activation", "transformers.activations")  # where modules of them are
NO_GATE = (nn.Softmax, nn.LogSoftmax, nn.MultiheadAttention)
# Weights, and scales and gates that are multiplied with a state.
HELD = {"_softmax", "_safe_softmax", "rsqrt", "sqrt", "reciprocal", "sigmoid", "linalg_vector_norm", "norm"}


class Ran(NamedTuple):
    """An operator that ran. `varies` says which of its arguments come from the words."""

    name: str
    args: Sequence[Any]
    kwargs: dict[str, Any]
    result: Any
    varies: Sequence[bool]


class HeldPass(WordInputs):  # type: ignore[no-untyped-call]
    """One pass of a model. `constants` is complete once the gradient has been taken."""

    def __init__(self, words: Tensor, root: nn.Module) -> None:
        super().__init__(words)
        self.constants = 0.0  # what biases, positions and other numbers that no word brings give
        self.not_held: list[str] = []  # operators that are not linear in words, and where
        self._names = {id(module): name for name, module in root.named_modules()}
        self._at_work: list[nn.Module] = []
        self._dead: set[Any] = set()
        self._last: Ran | None = None  # whose node is not there yet

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """Watch modules, so that activations that are modules of their own are gated as a whole."""
        with (
            register_module_forward_pre_hook(lambda module, _: self._at_work.append(module)),
            register_module_forward_hook(self._leave),
        ):
            yield

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator as it is, and remember it until its node is there."""
        self.settle()
        varies = [any(map(self._varies, list_tensors((each,)))) for each in args]
        if name in GATED and func._schema.is_mutable:
            args = (args[0].clone(), *args[1:])
        result = super().run(name, func, args, kwargs)
        self._last = Ran(name, args, kwargs, result, varies)
        return result

    def settle(self) -> None:
        """Attach the rule of the operator that ran last to its node in the autograd graph."""
        ran, self._last = self._last, None
        node = None if ran is None else next((each.grad_fn for each in list_tensors((ran.result,))), None)
        if ran is None or node is None:
            return
        if not any(ran.varies):
            self._dead.add(node)
        elif ran.name in HELD:
            self._dead.add(node)
            node.register_hook(lambda given, _: (None,) * len(given))
        elif ran.name in RULES:
            RULES[ran.name](self, node, ran)
        elif is_kernel(ran.name):  # attends by weights that are held: from the values alone
            node.register_hook(lambda given, _: (None, None, *given[2:3], *(None for _ in given[3:])))
        elif any(self._varies(getattr(node, kept)) for kept in dir(node) if kept.startswith("_saved_")):
            # Of a linear operator autograd keeps nothing that it read.
            names = (self._names.get(id(each)) for each in reversed(self._at_work))
            node.register_prehook(partial(self._note, ran.name, next(filter(None, names), "")))

    def count(self, node: Any, numbers: Any) -> None:
        """Count numbers that went into what a node stands for and that no word brings."""
        if numbers is not None:
            constant = torch.as_tensor(numbers).detach()
            node.register_prehook(lambda got: None if got[0] is None else self._count(constant, got[0]))

    def _count(self, numbers: Tensor, gradient: Tensor) -> None:
        self.constants += float((gradient.cpu().double() * numbers.cpu().double()).sum())

    def _varies(self, given: Any) -> bool:
        """Tell whether a tensor comes from the words; parameters are frozen."""
        return isinstance(given, Tensor) and given.requires_grad and given.grad_fn not in self._dead

    def _leave(self, module: nn.Module, given: tuple[Any, ...], output: Any) -> Any:
        self.settle()
        while self._at_work and self._at_work.pop() is not module:
            pass
        is_activation = type(module).__module__.startswith(ACTIVATIONS) and not isinstance(module, NO_GATE)
        if not is_activation or len(given) != 1 or not isinstance(output, Tensor):
            return None
        if not self._varies(given[0]) or output.shape != given[0].shape:
            return None
        share, rest = _find_gate(given[0], output)
        return given[0] * share + rest if bool(rest.any()) else given[0] * share

    def _note(self, name: str, where: str, got: Gradients) -> None:
        said = f"{name} in {where}" if where else name
        if said not in self.not_held and any(each is not None and bool(each.any()) for each in got):
            self.not_held.append(said)


@torch.no_grad()
def _find_gate(state: Tensor, result: Tensor) -> tuple[Tensor, Tensor]:
    """Find what an activation multiplies its argument by, and the rest: 0 but where the activation of 0 is not 0."""
    share = torch.where(state == 0, 0.0, result / state)
    return share, result - state * share


def _gate(held: HeldPass, node: Any, ran: Ran) -> None:
    """Hold an activation's gate, which multiplies its argument."""
    share, rest = _find_gate(ran.args[0], ran.result)
    node.register_hook(lambda given, got: None if got[0] is None else (got[0] * share, *given[1:]))
    if bool(rest.any()):
        held.count(node, rest)


def _add(held: HeldPass, node: Any, ran: Ran) -> None:
    """Count what no word brings to a sum or a difference."""
    alpha = ran.kwargs.get("alpha", 1)
    factors = {"add": (1, alpha), "sub": (1, -alpha), "rsub": (-alpha, 1)}[ran.name]
    for varies, constant, factor in zip(ran.varies[:2], ran.args[:2], factors, strict=True):
        if not varies:
            held.count(node, torch.as_tensor(constant) * factor)


def _multiply(held: HeldPass, node: Any, ran: Ran) -> None:
    """Halve the gradient of each factor of a product where both come from the words; count what is added to it."""
    if len(ran.args) > 2 and not ran.varies[0]:
        held.count(node, ran.args[0])
    if all(ran.varies[-2:]):
        node.register_hook(lambda given, _: (*given[:-2], *(None if each is None else each / 2 for each in given[-2:])))


def _normalise(held: HeldPass, node: Any, ran: Ran) -> None:
    """Hold the scale of a layer norm, or of a root mean square norm."""
    weight, scale, axes = ran.args[2], ran.result[-1], tuple(range(-len(ran.args[1]), 0))
    centred = ran.name == "native_layer_norm"

    def give(given: Gradients, got: Gradients) -> Gradients | None:
        if got[0] is None:
            return None
        scaled = got[0] * scale if weight is None else got[0] * weight * scale
        return (scaled - scaled.mean(dim=axes, keepdim=True) if centred else scaled, *given[1:])

    node.register_hook(give)
    held.count(node, ran.args[3] if centred else None)


# By operators, since torch has each as a function, as a method and in place.
GATED = {"gelu", "relu", "silu", "mish", "elu", "leaky_relu", "hardtanh", "hardswish", "tanh", "erf", "pow"}
RULES: dict[str, Callable[[HeldPass, Any, Ran], None]] = {
    **dict.fromkeys(GATED, _gate),
    **dict.fromkeys(("add", "sub", "rsub"), _add),
    **dict.fromkeys(("mul", "mm", "bmm", "addmm", "baddbmm", "mv", "dot"), _multiply),
    **dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), _normalise),
}
