"""The rule by which attention is known, wherever it is computed.

*A product in which rows that sum to one weigh states of different tokens is attention.* At the dispatcher every way to
write one has become a few operators. Rows that sum to one over experts, channels, earlier layers or classes weigh no
different tokens: the ids say so. Where ids are not known, as of tensors that no module reads, a softmax of a product of
states with states is taken for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnviz.models.capture.captured import ROUNDED, find_allowed
from attnviz.models.capture.follow import Operation
from attnviz.models.capture.ids import (
    NOBODY,
    Ids,
    Known,
    Softmax,
    Store,
    collapse,
    is_learned,
    mark_changed,
    row_of,
    varies,
)

MISSED = 1e-3  # by which a row of weights may miss 1
TINY = 1e-30
LINEAR, UNLIKE = "linear attention", "weights that do not sum to 1"
LEARNED = "what they weigh is learned, and of no token"
PIECES = "pieces"  # of attention, by what is noted


class Seen(NamedTuple):
    """Weights as they were multiplied, and whose they are."""

    weights: Float[Tensor, "row query key"]
    queries: Int[Tensor, "row query"] | None  # None: of no token, such as learned ones
    keys: Int[Tensor, "row key"] | None  # None: not known; then queries are not, either
    allowed: Bool[Tensor, "row query key"] | None
    shape: tuple[int, ...]  # before rows were put together
    dropped: float = 0.0
    is_cut: bool = False
    after: int = 0
    is_untold: bool = False  # whether queries may be tokens, and nothing says which
    follows_softmax: bool = True
    looks_at_keys: bool = True  # whether scores were made of keys
    guess: str = ""  # why this may be no attention over tokens


class Rule:
    """Watches products. `take` is handed the weights of each attention and gives its number; `note` other mixtures."""

    def __init__(self, store: Store, take: Callable[[Seen], int | None], note: Callable[[str], None]) -> None:
        self._store, self._take, self._note = store, take, note
        self._nested: Tensor | None = None  # the last softmax over texts of several lengths
        self._weighed: tuple[Tensor, Tensor, Tensor] | None = None  # the last product element by element

    def soften(self, of: Operation, place: str) -> None:
        """Remember what came out of a softmax."""
        result, axis = of.result, of.args[1] % max(1, of.result.ndim)
        known = self._store.get(of.args[0])
        if not result.numel() or not result.is_floating_point():
            return
        if known is None:
            if result.ndim > 2 and not is_learned(of.args[0]):
                self._note(PIECES)  # scores whose tokens are not known were put together in a way that is not followed
            return
        scores = of.args[0].movedim(axis, -1)
        allowed = None
        if not float(result.amin()) >= TINY:  # else no key was forbidden: of one that is, at most 4e-44 is left
            allowed = find_allowed(scores).movedim(-1, axis)
            allowed = None if bool(allowed.all()) else allowed
        softmax = Softmax(tuple(result.shape), axis - result.ndim, allowed, place)
        self._store.put(result, known._replace(softmax=softmax))

    def look_nested(self, of: Operation) -> None:
        """Look at a softmax over texts of several lengths, and at its product with values: padded to one another."""
        if of.name != "matmul":
            self._nested = of.result
        elif of.tensors[0] is self._nested:
            parts = [each.float() for each in of.tensors[0].unbind()]
            n_queries, n_keys = (max(each.shape[axis] for each in parts) for axis in (-2, -1))
            shape = (len(parts), parts[0].shape[0], n_queries, n_keys)
            weights, allowed = torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)
            for row, each in enumerate(parts):
                weights[row, :, : each.shape[-2], : each.shape[-1]] = each
                allowed[row, :, : each.shape[-2], : each.shape[-1]] = True
            self._take(Seen(weights.flatten(0, 1), None, None, allowed.flatten(0, 1), shape))

    def multiply(self, of: Operation) -> None:
        """Look at a product of matrices."""
        left, right = of.tensors[-2:]
        result = of.result
        if not isinstance(result, Tensor) or not result.is_floating_point():
            return
        if right.ndim == 1:
            right, result = right[:, None], result[..., None]
            self._store.put(right, self._unsqueeze(of.tensors[-1], -1))
        if left.ndim == 1:
            left, result = left[None], result[None]
            self._store.put(left, self._unsqueeze(of.tensors[-2], 0))
        known = self._store.get(left), self._store.get(right)
        if known == (None, None):
            if is_learned(left) or is_learned(right):
                return
            self._store.put(of.result, Known(None))
            return
        found = self._mix(left, right, known, result.shape)
        if result is not of.result:
            found = found._replace(ids=None if found.ids is None else found.ids.reshape(of.result.shape), columns=None)
        self._store.put(of.result, found)

    def _unsqueeze(self, tensor: Tensor, axis: int) -> Known:
        known = self._store.get(tensor) or Known(None)
        return known._replace(ids=None if known.ids is None else known.ids.unsqueeze(axis), softmax=None)

    def _mix(self, left: Tensor, right: Tensor, known: Any, shape: torch.Size) -> Known:
        """What is known of a product."""
        of_left, of_right = (each or Known(None) for each in known)
        one, two = of_left.ids, of_right.ids
        along = varies(one, -1), varies(two, -2)
        after = of_left.after | of_right.after
        if known[0] is not None and self._weighs(left, right, known, -1, along[1]):
            seen = self._see(left, two if two is None else two.mT, of_left)
            seen = seen._replace(guess=LEARNED) if is_nobodys(right, two) else seen
            number = self._take(seen._replace(after=after))
            return Known(self._find_queries(seen, two, shape), self._add(after, number))
        if known[1] is not None and self._weighs(right, left, known[::-1], -2, along[0]):
            turned = of_right._replace(
                ids=None if two is None else two.mT, columns=None if of_right.columns is None else of_right.columns.mT
            )
            seen = self._see(right.mT, one, turned)
            number = self._take(seen._replace(after=after))
            turned_shape = torch.Size((*shape[:-2], shape[-1], shape[-2]))
            new = self._find_queries(seen, None if one is None else one.mT, turned_shape)
            return Known(None if new is None else new.mT, self._add(after, number))
        ids = self._multiply_ids((of_left, of_right), along, shape)
        softmax = of_left.softmax or of_right.softmax
        across: Ids | None = None
        if one is not None and two is not None and not any(along) and not (is_learned(left) or is_learned(right)):
            across = two[..., :1, :].expand(shape)
        return Known(ids, after, None if softmax is None else mark_changed(softmax, "linear"), across)

    def _add(self, after: int, number: int | None) -> int:
        if number is None:
            self._note("convolution with a kernel for each token")
            return after
        return after | 1 << number

    def _find_queries(self, seen: Seen, of_values: Ids | None, shape: torch.Size) -> Ids | None:
        """The ids of what attention gave: of its queries, or new ones that are made of its keys."""
        if seen.queries is None:
            return self._new(of_values, -2, shape)
        return seen.queries.reshape(*shape[:-1], 1).expand(shape)

    def _new(self, ids: Ids | None, axis: int, shape: torch.Size) -> Ids | None:
        """New tokens, a row of the result each, which were made of those along an axis."""
        if ids is None:
            return None
        keys = ids[..., 0].expand(*shape[:-2], ids.shape[axis])
        made = self._store.make(keys.reshape(-1, keys.shape[-1]), shape[-2])
        return made.view(*shape[:-1], 1).expand(shape)

    def _multiply_ids(self, known: Any, along: Any, shape: torch.Size) -> Ids | None:
        """Of what is no attention: rows stay those of the left side; sums over tokens are named."""
        one, two = known[0].ids, known[1].ids
        softmax = next((each.softmax for each in known if each.softmax is not None), None)
        if any(along) and softmax is not None and (along[1] or known[1].softmax is not None):
            self._note(f"changed {softmax.place} ({softmax.changed or 'softmax'})")
        elif all(along):
            self._note(LINEAR)
        if all(along):
            first = self._store.mix(one[..., :1, :1].contiguous())
            return first.expand(shape)
        if along[1]:
            if softmax is None:
                self._note(UNLIKE if one is not None else "a matrix that reads no token")
            is_known = one is not None and bool((one[..., :1] >= 0).any())
            return one[..., :1].expand(shape) if is_known and one is not None else self._new(two, -2, shape)
        if along[0]:
            few = one[..., :1, :] if one.shape[-2] == 1 else one[..., :2, :]
            if few.shape[-2] > 1 and torch.equal(few[..., 0, :], few[..., 1, :]):
                self._note("a matrix over tokens")
            return self._store.mix(one[..., :1].contiguous()).expand(shape)
        kept: Ids | None = None if two is None else two[..., :1, :]
        if one is not None and (two is None or bool((one[..., :1] >= 0).any())):
            kept = one[..., :1]
        return None if kept is None else kept.expand(shape)

    # --- which products are attention ---------------------------------------------------------------------------------

    def _weighs(self, weights: Tensor, values: Tensor, known: Any, axis: int, are_tokens: bool) -> bool:
        """Whether one side of a product holds weights, and the other states of different tokens."""
        of_weights, of_values = known
        softmax: Softmax | None = of_weights.softmax
        ids: Ids | None = None if of_values is None else of_values.ids
        n_keys = weights.shape[axis]
        if is_learned(weights) or not weights.is_floating_point():
            return False
        if is_nobodys(values, ids):  # a memory, or vectors of experts: which of them, numbers do not tell
            return softmax is not None and not softmax.changed and n_keys > 1 and weights.ndim > 2
        if ids is None:
            fits = softmax is None or len(softmax.shape) < 3 or weights.ndim > 2
            if not fits or (softmax is None and of_weights.ids is not None):
                return False
        elif not are_tokens:
            if n_keys > 1 or softmax is None or softmax.changed or not bool((ids >= 0).any()):
                return False
            few = collapse(ids)
            return bool(torch.unique(few).numel() <= torch.unique(row_of(few)).numel())
        return is_distribution(weights, axis, softmax)

    def _see(self, weights: Tensor, of_values: Ids | None, known: Known) -> Seen:
        """Weights [… query key], what is known of them, and ids of the values [… d key]."""
        softmax, of_scores = known.softmax, known.ids
        if of_scores is not None and known.columns is not None and varies(of_scores, -1):
            of_scores = known.columns  # as where two texts read each other by one product
        n_rows = weights.shape[:-2].numel()
        queries = keys = None
        if of_values is not None:
            across = known.columns
            told = across is not None and varies(across, -1) and not varies(across, -2)
            of_keys = across if told and across is not None and bool((across >= 0).any()) else of_values
            keys = of_keys[..., 0, :].expand(*weights.shape[:-2], weights.shape[-1]).reshape(n_rows, -1)
        if of_scores is not None and of_values is not None and not varies(of_scores, -1):
            queries = of_scores[..., 0].expand(weights.shape[:-1]).reshape(n_rows, -1)
            queries = None if bool((queries == NOBODY).all()) else queries
        allowed = None if softmax is None else softmax.allowed
        if allowed is not None:
            if allowed.shape != weights.shape:
                allowed = allowed.mT if allowed.mT.shape == weights.shape else None
            allowed = None if allowed is None else allowed.reshape(n_rows, *weights.shape[-2:])
        shape = weights.shape if softmax is None else softmax.shape
        shape = (*shape[:-1], weights.shape[-1]) if softmax is not None and softmax.is_cut else shape
        if torch.Size(shape).numel() != weights.numel() or sorted(shape[-2:]) != sorted(weights.shape[-2:]):
            shape = weights.shape
        return Seen(
            weights.reshape(n_rows, *weights.shape[-2:]),
            queries,
            keys,
            allowed,
            tuple(shape),
            0.0 if softmax is None else softmax.dropped,
            softmax is not None and softmax.is_cut,
            is_untold=of_scores is None,
            follows_softmax=softmax is not None and not softmax.changed,
            looks_at_keys=known.columns is not None,
        )

    # --- weights times states, summed up ------------------------------------------------------------------------------

    def weigh(self, of: Operation) -> None:
        """Remember a product element by element, which may be summed up."""
        self._weighed = (of.result, *of.tensors) if len(of.tensors) == 2 else None

    def sum_up(self, of: Operation) -> bool:
        """Look at a sum of weights times states. Returns whether it was attention."""
        if self._weighed is None or self._weighed[0] is not of.args[0] or len(of.args) < 2:
            return False
        result, *sides = self._weighed
        axes = sorted({axis % result.ndim for axis in of.args[1]})
        for weights, states in (sides, sides[::-1]):
            known, of_states = self._store.get(weights), self._store.get(states)
            if known is None or is_learned(states) or is_learned(weights):
                continue
            softmax = known.softmax
            wide = _broadcast(weights, result.shape)
            ids = None if of_states is None or of_states.ids is None else _broadcast(of_states.ids, result.shape)
            if softmax is None and ids is None:
                continue
            features = [axis for axis in range(result.ndim) if wide.stride(axis) == 0 and result.shape[axis] > 1]
            if any(axis in axes for axis in features) or not features:
                continue
            rest = [axis for axis in range(result.ndim) if axis not in axes and axis not in features]
            rows = _rows(wide, features, rest, axes)
            keys = None if ids is None else _rows(ids, features, rest, axes)
            if keys is not None and not varies(keys, -1) and not self._one_key(keys, softmax):
                continue
            if not is_distribution(rows, -1, None if softmax is None else softmax._replace(axis=None)):
                continue
            of_weights = None if known.ids is None else _rows(_broadcast(known.ids, result.shape), features, rest, axes)
            new, after = self._take_sum(rows, of_weights, keys, known)
            if new is not None:
                new = new.reshape([result.shape[axis] for axis in rest] + [1] * len(features))
                back = sorted(range(new.ndim), key=lambda place: (rest + features)[place])
                left = [result.shape[axis] for axis in sorted(rest + features)]
                new = new.permute(back).expand(left).reshape(of.result.shape)
            self._store.put(of.result, Known(new, after))
            return True
        return False

    def _one_key(self, keys: Tensor, softmax: Softmax | None) -> bool:
        few = collapse(keys)
        one = torch.unique(few).numel() <= torch.unique(row_of(few)).numel()
        return keys.shape[-1] == 1 and softmax is not None and not softmax.changed and one

    def _take_sum(self, rows: Tensor, ids: Tensor | None, keys: Tensor | None, known: Known) -> tuple[Ids | None, int]:
        """Hand over rows of one query each; return the ids of the sums, and what they come after."""
        queries = None
        if ids is not None and keys is not None and not varies(ids, -1):
            queries = ids[:, :1] if bool((ids[:, :1] >= 0).any()) else None
        dropped = 0.0 if known.softmax is None else known.softmax.dropped
        shape = (len(rows), 1, 1, rows.shape[-1])
        number = self._take(Seen(rows[:, None], queries, keys, None, shape, dropped, after=known.after))
        new = None
        if keys is not None:
            new = (self._store.mix(keys[:, :1].contiguous()) if queries is None else queries)[:, 0]
        return new, self._add(known.after, number)


def is_nobodys(values: Tensor, ids: Ids | None) -> bool:
    """Whether values are learned, and so of no token."""
    return is_learned(values) or (ids is not None and not bool((ids >= 0).any()))


def _broadcast(tensor: Tensor, shape: torch.Size) -> Tensor:
    return tensor.expand(shape)


def _rows(tensor: Tensor, features: list[int], rest: list[int], axes: list[int]) -> Tensor:
    """[row, summed] of a tensor, for the first of its features."""
    for axis in features:
        tensor = tensor.narrow(axis, 0, 1)
    ordered = tensor.permute(*rest, *features, *axes)
    return ordered.reshape(-1, torch.Size([tensor.shape[axis] for axis in axes]).numel())


def is_distribution(weights: Tensor, axis: int, softmax: Softmax | None) -> bool:
    """Whether what is summed over is a distribution, in every row that has any weight."""
    is_plain = softmax is not None and not softmax.changed
    if is_plain and softmax is not None and softmax.axis == axis and not softmax.is_cut and not softmax.dropped:
        return True
    sums = weights.sum(axis, dtype=torch.float32)
    missed = (sums - 1).abs()
    near = missed <= ROUNDED.get(weights.dtype, MISSED)
    if is_plain and softmax is not None:
        if softmax.dropped or softmax.is_cut:
            return bool((sums <= 1 + MISSED).all()) if softmax.is_cut else softmax.axis in (axis, None)
        nothing = (sums == 0) | sums.isnan()
        return bool((near | nothing).all()) and bool((near | sums.isnan()).any())
    return bool(near.all()) and bool((weights >= 0).all())
