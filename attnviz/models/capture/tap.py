"""Every attention that PyTorch computes in this thread while a capture is open, seen at one place: the dispatcher.

At the dispatcher every way to write attention has become a few operators, whoever wrote it: code, a scripted, traced or
exported program, or a kernel. They run as themselves and are looked at behind: `follow` keeps whose each number is,
`attending` knows attention by its rule, `fused` reads kernels. Nothing that goes wrong in looking ends a pass.

`Operators` is the mode that sees them, one after another.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import HigherOrderOperator
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from attnviz.errors import AttnvizError
from attnviz.models.capture.attending import Rule
from attnviz.models.capture.call import Call, Keeper
from attnviz.models.capture.captured import is_kernel
from attnviz.models.capture.factored import Factoring
from attnviz.models.capture.follow import Follower, Operation, list_tensors
from attnviz.models.capture.ids import NOTHING, Known, Store, collapse
from attnviz.models.capture.modules_at_work import ModulesAtWork
from attnviz.models.capture.unread import STANDING_FOR_OTHERS, Unread, why_unreadable
from attnviz.models.protocols import EVERY, LayersAndHeads

COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd  # of operators that are made of others


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is open, each operator that is not made of other operators comes by `run`."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Tell torch not to look after compiling at each operator: importing what compiles takes seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = {} if kwargs is None else dict(kwargs)
        name, is_composite = _name(func)
        if is_composite and not self.takes_whole(name, args):
            with self:  # in inference mode what is made of other operators comes whole
                return func._op_dk(COMPOSITE, *args, **kwargs)
        return self.run(name, func, args, kwargs)

    def takes_whole(self, name: str, args: Sequence[Any]) -> bool:
        """Tell whether an operator that is made of other operators is to come by `run` itself."""
        return False

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator, which subclasses do in a way of their own. In place or not, it has one name."""
        return func(*args, **kwargs)


@cache
def _name(func: Any) -> tuple[str, bool]:
    """Return the name of an operator, and whether it is made of other operators."""
    if isinstance(func, HigherOrderOperator):
        return str(func.__name__), False
    space, _, name = func._schema.name.partition("::")
    name = name if space == "aten" else f"{space}::{name}"
    # torch has some of these in Python, too, whose last bits are others: what is written in C++ runs.
    is_composite = space == "aten" and torch._C._dispatch_has_kernel(func.name())
    is_composite = is_composite and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), COMPOSITE)
    return str(name if name.startswith("_") else name.rstrip("_")), is_composite


PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "_addmm_activation", "vdot"}
ON_CONSTANTS = {"_local_scalar_dense", "equal"}  # programs ask them of their constants, which come as numbers
SOFTMAXES = {"_softmax", "_safe_softmax"}
_looking = threading.local()

# torch's switches are those of the process: of captures in several threads the last one turns them back.
_TURNING, _TURN_BACK, _AT_WORK = threading.Lock(), ExitStack(), list[None]()


@contextmanager
def capture(
    take: Callable[[Call], None],
    choice: LayersAndHeads = EVERY,
    *,
    factored: bool = False,
) -> "Iterator[Capture]":
    """Hand every attention that this thread computes to `take`, right when it is made. Nothing is kept here.

    `factored`: with q, k and log-sum-exp in the place of the weights. Calls of one head are all handed over, whatever
    the choice, since the numbers in their paths may be those of heads: some are chosen when parts are joined.

    Raises InvalidRecord when the block ends, where the weights do not give the output of a call, where the model is in
    training mode and drops some, or where factors are asked for and it is not made of them.
    """
    watching = Capture(take, choice, factored)
    with ExitStack() as stack:
        if "torch._dynamo" in sys.modules:  # else nothing is compiled, and importing it takes seconds
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.callback(register_module_forward_pre_hook(watching.enter).remove)
        stack.callback(register_module_forward_hook(watching.leave, always_call=True).remove)
        stack.enter_context(_set_switches())
        stack.enter_context(watching)
        yield watching
    if watching.failure is not None:
        raise watching.failure


@contextmanager
def _set_switches() -> Iterator[None]:
    """Let attention run as its operators: torch's own modules by their parts, flex_attention without being compiled.

    In evaluation nn.MultiheadAttention and nn.TransformerEncoderLayer are one operator each, the fast path, whose
    weights nobody could hold against anything. Without it the last bits of their output differ; records say so.
    Causal biases are tensors of a class of their own, which torch cannot make while a dispatch mode is open, unless it
    looks away.
    """
    with _TURNING:
        _AT_WORK.append(None)
        for owner, switch, turned in (
            (torch.backends.mha, "_is_fastpath_enabled", False),
            (sys.modules.get("torch.nn.attention.flex_attention"), "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True),
            (getattr(sys.modules.get("torch.nn.attention.bias"), "CausalBias", None), "__new__", _make_unseen),
        ):
            if owner is not None:
                _TURN_BACK.callback(setattr, owner, switch, getattr(owner, switch))
                setattr(owner, switch, turned)
    try:
        yield
    finally:
        with _TURNING:
            _AT_WORK.pop()
            if not _AT_WORK:
                _TURN_BACK.close()


def _make_unseen(kind: type[Tensor], *_: Any) -> Tensor:
    with _disable_current_modes():
        return torch.Tensor.__new__(kind)


class Capture(Operators):
    """The operators, and the modules at work."""

    def __init__(self, take: Callable[[Call], None], choice: LayersAndHeads, factored: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._thread = threading.get_ident()
        self.store, self.unread = Store(), Unread()
        self.at_work = ModulesAtWork(self.store)
        self.failure: AttnvizError | None = None
        self._rule = Rule(Keeper(take, choice, self.at_work, Factoring(choice) if factored else None), self._note)
        self._follower = Follower(self.store, self._note)

    def _note(self, what: str, kind: str = "mixing") -> None:
        place = self.at_work.find_path()[0] or "this block"
        self.unread.places[kind].append(f"{place} ({what})" if what else place)

    def enter(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        """Enter a module. torch hands no named arguments to hooks of all modules: they are those of its caller."""
        if threading.get_ident() != self._thread:
            self.unread.places["threads"] = [type(module).__name__]
        elif torch._C._current_graph_task_id() == -1:
            named = {} if self.at_work.calls else sys._getframe(1).f_locals.get("kwargs")
            self._do("a module", self.at_work.enter, module, given, named if isinstance(named, dict) else {})

    def leave(self, module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        """Leave a module, perhaps with an exception."""
        if threading.get_ident() == self._thread:
            if isinstance(module, nn.RNNBase):
                self._do("a module", self._follow_recurrence, module, given, output)
            self._do("a module", self.at_work.leave, module)

    def _follow_recurrence(self, module: nn.RNNBase, given: tuple[Any, ...], output: Any) -> None:
        """Give a state for each token the id of that token, and note that it comes of others, too.

        The last states of a text are of no token: what goes on from them, as a decoder, is called by what it reads.
        """
        found, known = list(list_tensors((output,))), self.store.get(next(list_tensors(given), None)) or NOTHING
        for last in found[1:]:
            self.store.put(last, (self.store.get(last) or NOTHING)._replace(ids=None))
        if known.ids is not None and found and found[0].shape[:-1] == known.ids.shape[:-1]:
            ids = known.ids[..., :1].expand(found[0].shape)
            self.store.put(found[0], Known(ids, known.after, since=known.since))
            if self.store.varies(known.ids, int(module.batch_first and found[0].ndim == 3)):
                self._note("sums of different tokens")

    def _do(self, what: str, look: Callable[..., None], *given: Any) -> None:
        """Look at something. What goes wrong in that does not end the pass, and no capture sees it."""
        _looking.on, before = True, getattr(_looking, "on", False)
        try:
            look(*given)
        except AttnvizError as error:
            self.failure = self.failure or error
        except Exception as error:
            self.unread.places["failed"].append(f"{what} ({type(error).__name__})")
        finally:
            _looking.on = before

    def takes_whole(self, name: str, args: Sequence[Any]) -> bool:
        """Tell whether an operator is followed as it is, and its parts need not be seen."""
        return self._follower.takes_whole(name, args) or any(tensor.is_nested for tensor in list_tensors(args))

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator as it is, and look at it behind."""
        if name in ON_CONSTANTS and not isinstance(args[0], Tensor):
            return args[0] if len(args) == 1 else args[0] == args[1]
        result = func(*args, **kwargs)
        # What the look itself runs is none of the model's, and what a backward pass runs is no forward pass.
        if getattr(_looking, "on", False) or torch._C._current_graph_task_id() != -1:
            return result
        with _disable_current_modes() if torch._C._len_torch_dispatch_stack() else nullcontext():
            self._do(name, self._look, name, func, args, kwargs, result)
        return result

    def _look(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> None:
        tensors = list(list_tensors((*args, *kwargs.values())))
        if not tensors:
            return
        attends, is_softmax = is_kernel(name), name in SOFTMAXES
        is_strange = tensors[0].is_meta or tensors[0].is_nested or type(tensors[0]).__name__ in STANDING_FOR_OTHERS
        if (is_strange or attends or is_softmax) and (why := why_unreadable(tensors)):
            self.unread.places["empty"] += [why] if attends or is_softmax else []
            return
        known = [self.store.get(tensor) for tensor in tensors]
        of = Operation(name, func, args, kwargs, result, tensors, list(list_tensors((result,))), known)
        self._follower.begin(of)
        # A kernel is attention, a product or a sum may be, and all else only moves, mixes or keeps the ids of tokens.
        if attends:
            self._rule.attend_in_kernel(of)
        elif name in PRODUCTS and len(tensors) > 1:
            self._rule.multiply(of)
        elif not (name in ("sum", "mean") and self._rule.sum_up(of)) and not (name == "mul" and self._rule.weigh(of)):
            self._follower.follow(of)
            # A cut while no module is at work is that of a cache [text, head, word, d] between two passes, which loses
            # words: candidates that assisted decoding or prompt lookup tried and the model did not choose. Those of the
            # last pass are followed by no others in their places, so that nothing else tells them from the answer.
            ids = (self.store.get(args[0]) or NOTHING).ids if name == "slice" and not self.at_work.calls else None
            if ids is not None and ids.ndim == 4 and len(args) > 3 and args[1] == 2:
                self.store.taken_back.update(collapse(ids[:, :, args[3] :]).flatten().tolist())
        if is_softmax:
            self.unread.n_softmaxes += 1
            self._rule.soften(of)
