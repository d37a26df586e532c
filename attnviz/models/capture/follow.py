"""What becomes of ids as operators run: each is looked at when it has run, and the same is done to the ids.

Most operators need no rule: what has the shape of what it was made of, number by number, has its ids. Those that order,
choose, join or lay out numbers anew are run on the ids themselves. What adds tokens up makes new ones of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnviz.models.capture.ids import NOBODY, Ids, Known, Softmax, Store, is_learned, mark_changed, reshape, varies

VIEWS = {
    *("view", "_unsafe_view", "_reshape_alias", "expand", "transpose", "permute", "t", "movedim", "squeeze"),
    *("unsqueeze", "slice", "select", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "chunk"),
    *("unbind", "roll", "flip", "repeat", "unfold", "diagonal", "narrow", "index", "index_select", "gather"),
    *("constant_pad_nd", "masked_select", "take_along_dim", "_conj", "view_as_real", "view_as_complex"),
    *("rot90", "im2col", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"),
}
NOISE = "noise"  # the place of random numbers that dropout multiplies with
KEEPING = {"view", "_unsafe_view", "_reshape_alias", "expand", "select"}  # the last axis, where it has as many numbers
SHAPED = {"view", "_unsafe_view", "_reshape_alias"}
REPEATING = {"repeat", "index", "index_select", *SHAPED}  # rows, where one was laid out several times before
COPIES = {"clone", "_to_copy", "detach", "alias", "contiguous", "lift_fresh", "native_dropout", "nan_to_num", "dropout"}
COPIES |= {"copy", "masked_fill", "masked_fill_", "detach_", "positive", "_pin_memory"}
WRITES = {"index_copy", "index_put", "_index_put_impl", "scatter", "slice_scatter", "select_scatter", "masked_scatter"}
REDUCTIONS = {
    *("mean", "sum", "amax", "amin", "max", "min", "prod", "norm", "linalg_vector_norm", "std", "var", "var_mean"),
    *("logsumexp", "nansum", "median", "std_mean", "any", "all"),
}
SORTS = {"sort", "topk", "kthvalue"}
RUNNING = {"cumsum": "cumulative sum", "cumprod": "cumulative product", "logcumsumexp": "cumulative sum"}
EDGES = {"scatter_add", "index_add", "scatter_reduce", "index_reduce", "segment_reduce"}


class Operation(NamedTuple):
    """An operator that ran."""

    name: str  # without what marks those that change their first argument: "add" also for aten::add_
    function: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]
    result: Any
    tensors: list[Tensor]  # that it was given


def list_tensors(given: Sequence[Any]) -> Iterator[Tensor]:
    """Yield the tensors among some arguments, and those in their lists."""
    for each in given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, tuple | list):
            yield from list_tensors(each)


class Follower:
    """The ids of one recording. `note(kind)` is told of what mixes tokens without weights that sum to 1."""

    def __init__(self, store: Store, note: Callable[[str], None]) -> None:
        self.store, self._note = store, note
        self._written: dict[int, tuple[weakref.ref[Tensor], weakref.ref[Tensor], Any]] = {}

    def follow(self, of: Operation) -> None:
        """Keep what is known of a result."""
        if of.name.endswith("_like") or of.name.startswith("new_"):
            return None
        known = [self.store.get(tensor) for tensor in of.tensors]
        if of.name in VIEWS:
            return self._view(of, known[0] if known else None)
        if of.name in ("_nested_tensor_from_mask", "to_padded_tensor"):
            return self._nest(of, known[0])
        if of.name == "copy" and of.function._schema.name.endswith("_"):
            return self._write_back(of.args[0], known[1])
        if not any(known) and of.name not in SOURCES:
            if of.name == "bernoulli":
                share = 1 - float(of.args[1] if len(of.args) > 1 and isinstance(of.args[1], float) else 0.5)
                self.store.put(of.result, Known(None, 0, Softmax((), None, None, NOISE, dropped=share)))
            return None
        after, ids = 0, [None if each is None else each.ids for each in known]
        for each in known:
            after |= 0 if each is None else each.after
        rule = RULES.get(of.name)
        found = self._combine(ids, _shape(of.result)) if rule is None else rule(self, of, ids)
        columns = [each.columns for each in known if each is not None and each.columns is not None]
        one = columns[0] if columns else None
        softmaxes = [each.softmax for each in known if each is not None and each.softmax is not None]
        softmax = self._change(of, softmaxes) if softmaxes else None
        whole = any(tensor.is_floating_point() for tensor in of.tensors)
        self.mark(of.result, Known(found, after, softmax, one), whole=whole)
        return None

    def _change(self, of: Operation, softmaxes: Sequence[Softmax]) -> Softmax:
        """What is known of numbers of a softmax behind an operator. Dropout multiplies them with random numbers."""
        noise = [each for each in softmaxes if each.place == NOISE]
        softmax = next((each for each in softmaxes if each.place != NOISE), softmaxes[0])
        if of.name == "native_dropout" and of.args[2]:
            return softmax._replace(dropped=float(of.args[1]))
        if noise and len(noise) < len(softmaxes):
            return softmax._replace(dropped=noise[0].dropped)
        return softmax if of.name in COPIES or noise else mark_changed(softmax, of.name) or softmax

    def mark(self, result: Any, known: Known, whole: bool = False) -> None:
        """Keep what is known of the tensors of a result that hold states, or numbers of words where nothing did."""
        ids, columns = known.ids, known.columns
        for tensor in (result,) if isinstance(result, Tensor) else list_tensors(result if _several(result) else ()):
            if tensor.is_nested or not (
                tensor.is_floating_point() or tensor.is_complex() or (tensor.dtype == torch.int64 and not whole)
            ):
                continue
            own = ids if ids is not None and ids.shape == tensor.shape else None
            across = columns if columns is not None and columns.shape == tensor.shape else None
            self.store.put(tensor, Known(own, known.after, known.softmax, across))

    def _nest(self, of: Operation, known: Known | None) -> None:
        """Texts of several lengths keep the ids that they have with padding."""
        if known is not None and known.ids is not None:
            n = known.ids.shape[1] if of.result.is_nested else of.result.shape[1]
            self.store.put(of.result, known._replace(ids=known.ids[:, :n]))

    def _view(self, of: Operation, known: Known | None) -> None:
        source = of.args[0]
        if of.name in ("slice", "select") and not is_learned(source):
            place = id(of.result)  # what is written there is written into the whole
            part, whole = weakref.ref(of.result), weakref.ref(source)
            self._written[place] = part, whole, (of.function, of.args[1:], of.kwargs)
            if len(self._written) > 64:
                self._written.pop(next(iter(self._written)))
        if known is None:
            if not is_learned(source) or not isinstance(of.result, Tensor):
                return
            nobody = torch.full((), NOBODY).expand(of.result.shape)
            self.store.put(of.result, Known(nobody))
            return
        ids = None if known.ids is None else self._through(of, known.ids)
        if of.name in REPEATING and isinstance(ids, Tensor) and ids.ndim == 2 and of.result.dtype == torch.int64:
            firsts = ids[:, 0]  # texts that a model reads several times, as beams, are texts of their own
            ids = self.store.seed(ids.shape) if len(torch.unique(firsts)) < len(firsts) else ids
        softmax, columns = known.softmax, known.columns
        columns = None if columns is None or not isinstance(of.result, Tensor) else self._through(of, columns)
        if softmax is not None:
            allowed = None if softmax.allowed is None else self._through(of, softmax.allowed)
            keeps = of.name == "slice" or (
                of.name in KEEPING and softmax.axis == -1 and of.result.shape[-1] == source.shape[-1]
            )
            cut = of.name == "slice" and _cuts(of, softmax.axis)
            if of.name == "slice" and not cut and _shortens(of, softmax.axis):
                softmax = mark_changed(softmax, "slice") or softmax
            if of.name in SHAPED and of.result.ndim > len(softmax.shape) and of.result.shape[-2:] == softmax.shape[-2:]:
                softmax = softmax._replace(shape=tuple(of.result.shape))
            softmax = softmax._replace(
                axis=softmax.axis if keeps else None,
                is_cut=softmax.is_cut or cut,
                allowed=allowed if isinstance(allowed, Tensor) else None,
            )
        results = [of.result] if isinstance(of.result, Tensor) else of.result
        several = [ids] * len(results) if ids is None else ids if _several(ids) else [ids]
        for result, of_result in zip(results, several, strict=True):
            self.store.put(result, Known(of_result, known.after, softmax, columns))

    def _through(self, of: Operation, shadow: Tensor) -> Any:
        """Run the operator on ids."""
        if of.name in SHAPED:
            return reshape(shadow, of.result.shape)
        if of.name == "constant_pad_nd":
            return torch.constant_pad_nd(shadow, of.args[1], NOBODY if shadow.dtype == torch.int64 else 0)
        if of.name == "im2col":  # which takes no whole numbers
            return of.function(shadow.double(), *of.args[1:]).long() if shadow.dtype == torch.int64 else None
        rest = [each.cpu() if isinstance(each, Tensor) else each for each in of.args[1:]]
        if of.name == "index":
            rest = [[each if each is None else each.cpu() for each in of.args[1]]]
        shape = of.result.shape if isinstance(of.result, Tensor) else ()
        if of.name in ("index", "index_select", "roll", "flip") and shadow.ndim > 1 and shadow.stride(-1) == 0:
            try:
                few = of.function(shadow[..., :1], *rest, **of.kwargs)
                return few.expand(shape)
            except (IndexError, RuntimeError):
                pass
        try:
            return of.function(shadow, *rest, **of.kwargs)
        except RuntimeError:
            return reshape(shadow, shape) if shadow.numel() == torch.Size(shape).numel() else None

    def _combine(self, given: Sequence[Ids | None], shape: Sequence[int] | None) -> Ids | None:
        """Of a result made number by number; else one with the rows of what it was made of, as states of tokens."""
        if shape is None:
            return None
        found = None
        for ids in given:
            if ids is None:
                continue
            if not _fits(ids.shape, shape):
                if len(ids.shape) != len(shape) or ids.shape[:-1] != tuple(shape[:-1]) or varies(ids, -1):
                    continue
                ids = ids[..., :1]
            ids = ids.expand(tuple(shape))
            found = ids if found is None else self.store.merge(found, ids)
        return found

    def _write_back(self, target: Tensor, known: Known | None) -> None:
        """Write ids into a part of a tensor, and into the tensors that it is a part of."""
        if known is None or known.ids is None:
            return
        ids = known.ids.expand(target.shape) if _fits(known.ids.shape, target.shape) else None
        if ids is None:
            return
        while True:
            before = self.store.get(target)
            self.store.put(target, Known(ids, known.after | (0 if before is None else before.after)))
            found = self._written.get(id(target))
            whole = None if found is None else found[1]()
            if found is None or whole is None or found[0]() is not target:
                return
            function, rest, named = found[2]
            before = self.store.get(whole)
            base = torch.full(whole.shape, NOBODY) if before is None or before.ids is None else before.ids.clone()
            base = base.contiguous()
            function(base, *rest, **named).copy_(ids)
            target, ids = whole, base

    # --- rules --------------------------------------------------------------------------------------------------------

    def join(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """Tensors behind one another. Of features of the same tokens, these."""
        axis = of.kwargs.get("dim", of.args[1] if len(of.args) > 1 else 0)
        nobody = torch.full((), NOBODY)
        full = [
            nobody.expand(each.shape) if known is None else known for each, known in zip(of.tensors, ids, strict=True)
        ]
        full = [each for each in full if each.numel()]
        is_last = axis in (-1, of.tensors[0].ndim - 1)
        if of.name == "cat" and is_last and of.tensors[0].ndim > 1 and of.result.is_floating_point():
            known = [each[..., :1] for each in ids if each is not None and each.numel() and not varies(each, -1)]
            if known and all(torch.equal(each, known[0]) for each in known):
                return known[0].expand(of.result.shape)
        if of.name == "cat" and not is_last and all(each.ndim > 1 and each.stride(-1) == 0 for each in full) and full:
            few = torch.cat([each[..., :1] for each in full], axis)
            if few.shape[:-1] == of.result.shape[:-1]:
                return few.expand(of.result.shape)
        joined: Ids = getattr(torch, of.name)(full, axis)
        return joined

    def write(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """What was put into a tensor at some places."""
        target = of.args[0]
        base = torch.full(target.shape, NOBODY) if ids[0] is None else ids[0].clone().contiguous()
        given = [self._as_ids(each) for each in of.args[1:]]
        found = of.function(base, *given, **of.kwargs)
        return found if isinstance(found, Tensor) else base

    def _as_ids(self, given: Any) -> Any:
        if isinstance(given, Tensor) and given.is_floating_point():
            known = self.store.get(given)
            ids = None if known is None else known.ids
            return torch.full((), NOBODY).expand(given.shape) if ids is None else ids
        if isinstance(given, float):
            return NOBODY
        return [None if each is None else each.cpu() for each in given] if _several(given) else given

    def choose(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """torch.where."""
        if len(ids) > 2 and ids[1] is not None and ids[2] is not None:
            return torch.where(of.args[0].cpu(), ids[1], ids[2])
        return self._combine(ids, _shape(of.result))

    def reduce(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """What is the same for all that are put together stays; else they become new tokens."""
        shape = _shape(of.result)
        asked = of.args[1] if len(of.args) > 1 else None
        if ids[0] is None or shape is None or isinstance(asked, float | Tensor):
            return self._combine(ids, shape)
        if of.name in ("norm", "linalg_vector_norm") and len(of.args) > 2:
            asked = of.args[2]
        n_axes = ids[0].ndim
        axes: Any = [asked] if isinstance(asked, int) and not isinstance(asked, bool) else asked
        axes = sorted({axis % n_axes for axis in axes}) if _several(axes) and axes else list(range(n_axes))
        few = ids[0]
        is_mixed = any(varies(few, axis) for axis in axes)
        for axis in reversed(axes):
            few = few.select(axis, 0)
        few = self.store.mix(few, ids[0]) if is_mixed else few
        return few.reshape(tuple(shape)) if few.numel() == torch.Size(shape).numel() else None

    def sort(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """Values in another order."""
        if ids[0] is None or not _several(of.result):
            return None
        axis = of.args[2 if of.name != "sort" and len(of.args) > 2 else 1] if len(of.args) > 1 else -1
        axis = of.kwargs.get("dim", -1 if of.name == "topk" and len(of.args) < 3 else axis)
        places = of.result[1].cpu()
        return ids[0].expand(of.args[0].shape).gather(int(axis), places) if places.ndim == ids[0].ndim else None

    def run_up(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """Sums of all numbers so far: of tokens, they mix them."""
        if of.args[0].is_floating_point() and varies(ids[0], of.args[1]):
            self._note(RUNNING[of.name])
        return ids[0]

    def scatter(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """Sums over edges, where different tokens go to one place; experts give each token back to its own."""
        axis, index = (each for each in of.args[1:3])
        states = ids[-1]
        if states is None or axis % of.args[0].ndim or of.args[0].ndim < 2 or varies(states, -1):
            return ids[0]
        index = (index if index.ndim == 1 else index[:, 0]).cpu()
        sources = states[..., 0].reshape(len(index), -1)[:, 0]
        found = torch.full((len(of.args[0]),), NOBODY).index_put((index,), sources)
        if not torch.equal(found[index], sources):
            self._note("sums over edges")
            return ids[0]
        return found.view(-1, *[1] * (of.args[0].ndim - 1)).expand(of.args[0].shape)

    def transform(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """Fourier transforms over tokens."""
        if any(varies(ids[0], axis) for axis in of.args[1]):
            self._note("Fourier transform")
        return self._combine(ids, _shape(of.result))

    def convolve(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """Of as many positions as before, these, else new tokens: patches of an image, stretches of sound."""
        states, weight = of.args[:2]
        if states.ndim < 3:
            return None
        given = ids[0]
        if given is None or varies(given, 1):  # channels come before places
            given = self.store.seed((len(states), *states.shape[2:]))[:, None].expand(states.shape)
            self.store.put(states, Known(given))
        elif weight.shape[2:].numel() > 1 and states.shape[2:] == of.result.shape[2:]:
            self._note("convolution")
        if states.shape[2:] != of.result.shape[2:]:
            given = self.store.seed((len(of.result), *of.result.shape[2:]))[:, None]
        return given.narrow(1, 0, 1).expand(of.result.shape)

    def look_up(self, of: Operation, ids: Sequence[Ids | None]) -> Ids | None:
        """Vectors of words, which are read here first where no module was given them."""
        words = ids[1]
        if words is None or bool((words < 0).any()):
            new = self.store.seed(of.args[1].shape, is_new=words is not None)
            words = new if words is None else torch.where(words < 0, new, words)
            self.store.put(of.args[1], Known(words))
        return words.unsqueeze(-1).expand(of.result.shape)


def _several(given: Any) -> bool:
    return isinstance(given, tuple | list)


def _shape(result: Any) -> torch.Size | None:
    first = result if isinstance(result, Tensor) else next(list_tensors(result), None) if _several(result) else None
    return None if first is None or first.is_nested else first.shape


def _fits(shape: Sequence[int], into: Sequence[int]) -> bool:
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(into), strict=False))


def _shortens(of: Operation, axis: int | None) -> bool:
    return axis is not None and of.result.shape[axis] < of.args[0].shape[axis]


def _cuts(of: Operation, axis: int | None) -> bool:
    """Whether a slice takes the first keys of a softmax and leaves out others."""
    along = of.args[1] if len(of.args) > 1 else 0
    start = of.args[2] if len(of.args) > 2 else 0
    n_axes = of.args[0].ndim
    is_along = axis is not None and along % n_axes == axis % n_axes
    return is_along and not start and of.result.shape[along] < of.args[0].shape[along]


CONVOLUTIONS = ("convolution", "_convolution", "convolution_overrideable")
SOURCES = {"embedding", *CONVOLUTIONS}
Rule = Callable[[Follower, Operation, Sequence["Ids | None"]], "Ids | None"]
RULES: dict[str, Rule] = {
    **dict.fromkeys(("cat", "stack"), Follower.join),
    **dict.fromkeys(WRITES, Follower.write),
    **dict.fromkeys(REDUCTIONS, Follower.reduce),
    **dict.fromkeys(SORTS, Follower.sort),
    **dict.fromkeys(RUNNING, Follower.run_up),
    **dict.fromkeys(EDGES, Follower.scatter),
    **dict.fromkeys(("_fft_r2c", "_fft_c2c", "_fft_c2r"), Follower.transform),
    **dict.fromkeys(CONVOLUTIONS, Follower.convolve),
    "where": Follower.choose,
    "embedding": Follower.look_up,
}
