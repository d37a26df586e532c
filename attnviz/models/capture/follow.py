"""What becomes of ids as operators run: each is looked at when it has run, and the same is done to the ids.

What has the shape of what it was made of, number by number, has its ids. An operator that orders, chooses, joins or
lays out numbers anew is run on the ids themselves. What adds tokens up makes new ones of them.
"""

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakTensorKeyDictionary

from attnviz.models.capture.ids import (
    NOBODY,
    NOTHING,
    PLANES,
    WORDS,
    Ids,
    Known,
    Store,
    collapse,
    family_of,
    is_learned,
    is_single,
    nobody,
    reshape,
)

SHAPED = {"view", "_unsafe_view", "_reshape_alias", "reshape"}
WHOLE = {"layer_norm", "reshape"}  # made of other operators, and followed as they are
MOVES = SHAPED | {
    *("expand", "transpose", "permute", "t", "squeeze", "unsqueeze", "slice", "select", "split", "split_with_sizes"),
    *("unsafe_split", "unsafe_split_with_sizes", "chunk", "unbind", "roll", "flip", "repeat", "unfold", "diagonal"),
    *("alias", "index", "index_select", "gather", "masked_select", "constant_pad_nd"),
    *("view_as_real", "view_as_complex", "replication_pad1d", "reflection_pad1d", "reflection_pad2d"),
    *("im2col", "pixel_shuffle", "pixel_unshuffle", "cat", "stack", "where", "index_copy", "index_put", "scatter"),
    *("_index_put_impl", "slice_scatter", "select_scatter", "masked_scatter"),
    *("_pack_padded_sequence", "_pad_packed_sequence"),
}
CHOICES = {"index", "indices", "mask", "condition", "lengths", "batch_sizes"}  # arguments that say which numbers
VALUES = {"self", "other", "value", "padding_value"}  # arguments that are numbers, also where they are no tensors
REPEATING = {"cat", "repeat", "index", "index_select", *SHAPED}  # rows, where texts have one number, or are one
COPYING = {"cat", "repeat", "index", "index_select"}  # rows of states
TAKING = {"select", "slice", "split", "split_with_sizes", "chunk", "unbind", "index", "index_select", "gather"}
COPIES = {"clone", "copy", "_to_copy", "detach", "lift_fresh", "_conj", "nan_to_num", "masked_fill"}
RUNNING = {
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), "cumulative sum"),
    **dict.fromkeys(("_fft_r2c", "_fft_c2c", "_fft_c2r"), "Fourier transform"),
}
EDGES = {"scatter_add", "index_add", "scatter_reduce", "index_reduce", "segment_reduce"}
CONVOLUTIONS = {"convolution", "_convolution", "convolution_overrideable"}


class Operation(NamedTuple):
    """An operator that ran."""

    name: str  # without what marks those that change their first argument: "add" also for aten::add_
    function: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]
    result: Any
    tensors: list[Tensor]  # that it was given
    results: list[Tensor]  # that it gave
    known: list[Known | None] = []  # noqa: RUF012 - of each that it was given

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments by their names, also those that were not given."""
        names = _parameters(self.function)
        return names | dict(zip(names, self.args, strict=False)) | self.kwargs


@cache
def _parameters(function: Any) -> dict[str, Any]:
    return {each.name: each.default_value for each in function._schema.arguments if each.name != "out"}


def list_tensors(given: Any) -> Iterator[Tensor]:
    """Yield the tensors among some arguments, and those in their lists and mappings."""
    for each in given.values() if isinstance(given, Mapping) else given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, tuple | list | Mapping):
            yield from list_tensors(each)


class Follower:
    """The ids of one recording. `note(kind)` is told of what mixes tokens without weights that sum to 1."""

    def __init__(self, store: Store, note: Callable[[str], None]) -> None:
        self.store, self._note = store, note
        self._count = count(1)
        self._wholes: Any = WeakTensorKeyDictionary()  # of which each is a part
        self._rules: dict[str, Callable[[Operation], Ids | None]] = {
            "embedding": self._look_up,
            **dict.fromkeys(CONVOLUTIONS, self._convolve),
            **dict.fromkeys(EDGES, self._add_along_edges),
        }

    def follow(self, of: Operation) -> None:
        """Keep what is known of a result."""
        if of.name.endswith("_like") or of.name.startswith("new_"):
            return
        is_read = any(of.known) or of.name == "embedding"
        if not is_read and is_learned(of.tensors[0]) and all(map(_is_no_state, of.tensors)):
            for result in of.results:
                self.store.put(result, Known(nobody(result.shape)))
        elif self._takes_by_words(of):
            self._mark(of, self._look_up(of))
        elif of.name in MOVES:
            self._move(of)
        elif of.name == "copy" and of.function._schema.name.endswith("_"):
            source = of.known[1] or NOTHING
            if source.ids is not None:
                self._write(of.result, source.ids.expand(of.result.shape), source.after)
        elif of.name == "bernoulli":  # what dropout multiplies with
            share = of.args[1] if len(of.args) > 1 and isinstance(of.args[1], float) else 0.5
            self.store.put(of.result, Known(None, dropped=1 - share))
        elif is_read or of.name in CONVOLUTIONS:
            by_number = self._convolve if "_pool" in of.name or "upsample" in of.name else self._combine
            otherwise = self._reduce if "keepdim" in _parameters(of.function) else by_number
            self._mark(of, self._rules.get(of.name, otherwise)(of))

    def _takes_by_words(self, of: Operation) -> bool:
        """Tell whether words say which rows are taken of a table that is of no token, as of embeddings."""
        if of.name not in ("index", "index_select") or len(of.known) != 2:
            return False
        table, words, shape = of.known[0], (of.known[1] or NOTHING).ids, of.result.shape
        if words is None or (table is not None and not self.store.is_nobodys(table.ids)):
            return False
        return len(shape) <= words.ndim + 1 and shape[: words.ndim] == words.shape

    def _leave_untold(self, of: Operation, ids: Ids | None) -> Ids | None:
        """Leave out that a result is of nobody where it is not known what else it was made of.

        What is not known stays so, whatever is learned that it meets. Nor is it known what rows of a table are of that
        numbers which were worked out of states say, such as the nearest of a code book.
        """
        pairs = zip(of.known, of.tensors, strict=True)
        is_unknown = any((own or NOTHING).ids is None and (own or not _is_no_state(tensor)) for own, tensor in pairs)
        return None if is_unknown and self.store.is_nobodys(ids) else ids

    def begin(self, of: Operation) -> None:
        """Note when tensors are first worked on, and make tokens of numbers given that get features of their own."""
        # A step of a recurrence adds a token to a state of those before it. Which of the two is the newer one their ids
        # do not say, as a text may be read backwards. But what was taken out of the text last is worked on last.
        since = next(self._count)  # of several that are taken out for one operator none is the last
        for at, (tensor, own) in enumerate(zip(of.tensors, of.known, strict=True)):
            if own is None:
                continue
            if own.numbers is not None and of.name not in MOVES:
                others = [each for each in of.tensors if each is not tensor and each.ndim]
                are_vectors = 0 < len(others) == len(of.tensors) - 1  # and neither single numbers nor the tensor itself
                # A number that is multiplied by features is alone, whoever they are of.
                is_alone = of.name == "mul" and tensor.shape[-1] == 1
                ids = [each.ids for each in of.known if each and each is not own and not is_alone]
                if are_vectors and all(map(self.store.is_nobodys, ids)) and self.store.are_tokens(own.numbers, own.ids):
                    own = Known(own.numbers, own.after)
            if not own.since and not self.store.is_nobodys(own.ids):
                of.known[at] = own = own._replace(since=since)
                self.store.put(tensor, own)

    def takes_whole(self, name: str, args: Sequence[Any]) -> bool:
        """Tell whether an operator that is made of other operators can be followed as it is, which takes less time."""
        if name == "linear":
            known = self.store.get(args[0])
            is_plain = known is not None and known.softmax is None and not self.store.varies(known.ids, -1)
            return is_plain and is_learned(args[1])
        return name in WHOLE

    def _mark(self, of: Operation, ids: Ids | None) -> None:
        """Keep what is known of the results that hold states, or numbers of words where nothing did."""
        joined, ids = _join(of.known), self._leave_untold(of, ids)
        if of.name == "native_dropout" and of.args[2]:
            joined = joined._replace(dropped=float(of.args[1]))
        # Any operator but a copy may change what a softmax gave. The first that did is remembered, and the rule then
        # asks whether every row still sums to 1 (`is_distribution`). After dropout rows do not, and that is known.
        if self._makes_states(of):
            joined = joined._replace(allowed=None, softmax=None)
        if joined.softmax is not None and of.name not in COPIES and not joined.dropped:
            softmax = joined.softmax._replace(changed=joined.softmax.changed or of.name)
            joined = joined._replace(allowed=None, softmax=softmax)
        is_whole = of.name == "_to_copy" or not any(tensor.is_floating_point() for tensor in of.tensors)
        joined = joined._replace(ids=ids)
        for result in of.results:
            if result.dtype in WORDS and not is_whole:
                self.store.put(result, Known(None, joined.after))  # places, say, are no states
            elif not result.is_nested and (result.is_floating_point() or result.is_complex() or result.dtype in WORDS):
                self.store.put(result, joined.fit(result.shape))

    def _makes_states(self, of: Operation) -> bool:
        """Tell whether weights were used up: multiplied with the features of states, or states summed up by them."""
        sides = [(each, tensor) for each, tensor in zip(of.known, of.tensors, strict=True) if each and each.softmax]
        if of.name == "mul":
            return any(tensor.shape[-1:] == (1,) != of.result.shape[-1:] for _, tensor in sides)
        ids = [each.ids for each, _ in sides] if "keepdim" in _parameters(of.function) else []
        return any(self.store.varies(each, axis) for each in ids for axis in _list_axes(of, each))

    def _combine(self, of: Operation) -> Ids | None:
        """Give a result made number by number the ids of what it was made of; else those of its rows."""
        results = of.results
        if not results or results[0].is_nested:
            return None
        shape, found, since = results[0].shape, None, 0
        if of.name in RUNNING and (of.args[0].is_floating_point() or of.args[0].is_complex()):
            ids = (of.known[0] or NOTHING).ids
            if any(self.store.varies(ids, axis) for axis in _list_axes(of, ids)):
                self._note(RUNNING[of.name])
        # States are of no token that only whole numbers are of, such as lengths. Scores are of the tokens whose states
        # were multiplied, whatever is added: distances, gathered or shifted.
        states = [own for own, tensor in zip(of.known, of.tensors, strict=True) if own and tensor.is_floating_point()]
        scores = [each for each in of.known if each and each.columns is not None and each.columns.shape == shape]
        scores = sorted(scores, key=lambda each: self.store.varies(each.ids, -1))[:1]
        for each in scores or sorted(states or filter(None, of.known), key=lambda each: -each.since):
            ids = each.ids
            if ids is not None and ids.shape != shape and not _fits(ids.shape, shape):
                # Where only how many features or channels there are differs, each is still of the token that it was of.
                other = [axis for axis, n in enumerate(shape) if ids.ndim == len(shape) and ids.shape[axis] != n]
                ids = None if len(other) != 1 or self.store.varies(ids, other[0]) else ids.narrow(other[0], 0, 1)
            if ids is not None:
                ids = ids.expand(shape)
                is_step, since = each.since < since, each.since
                found, are_added = (ids, False) if found is None else self.store.merge(found, ids, is_step)
                if are_added and results[0].is_floating_point():
                    self._note("sums of different tokens")
        return found

    def _write(self, part: Tensor, ids: Ids, after: int) -> None:
        """Write ids into a tensor, and into those that it is a part of."""
        for whole in (part, *(find_whole() for find_whole in self._wholes.get(part, ()))):
            if whole is not None:
                before = (self.store.get(whole) or NOTHING).ids
                new = torch.empty_strided(whole.shape, whole.stride(), dtype=torch.int64)
                new.copy_(nobody(whole.shape) if before is None else before)
                new.as_strided(part.shape, part.stride(), part.storage_offset() - whole.storage_offset()).copy_(ids)
                is_one = new.ndim > 0 and not self.store.varies(new, -1)
                self.store.put(whole, Known(new[..., :1].expand(new.shape) if is_one else new, after))

    # --- the same operator, on ids ------------------------------------------------------------------------------------

    def _move(self, of: Operation) -> None:
        source = of.tensors[0]
        # A part is remembered with its whole: what is written into it later, as into a cache with room left, has to be
        # written into the ids of the whole, too. Of a part of a part the one between may be gone by then.
        if of.name in ("alias", "slice", "select") and not is_learned(source):
            self._wholes[of.result] = weakref.ref(source), *self._wholes.get(source, ())
        if not any(of.known):
            return
        joined = _join(of.known)
        if of.function.is_view or of.name in SHAPED:
            shadows = [getattr(self.store.get(source) or NOTHING, plane) for plane in PLANES]
            self._place(of, joined, [None if shadow is None else self._view(of, shadow) for shadow in shadows])
            return
        # Arguments that say which numbers (`chosen`) stay as they are; those that hold numbers are replaced by ids, and
        # a plain number, as the fill of a padding, by the id of nobody (and no softmax let attention through there).
        # Then the operator itself does to ids what it did to numbers.
        arguments = of.arguments
        if arguments.get("accumulate") or arguments.get("reduce"):
            return  # they are added to what is there
        chosen = {name: tree_map_only(Tensor, Tensor.cpu, arguments.pop(name)) for name in CHOICES & arguments.keys()}
        numbers = list(list_tensors(arguments))
        if joined.softmax is not None and (of.name == "where" or len(numbers) > 1):
            joined = joined._replace(softmax=joined.softmax._replace(changed=joined.softmax.changed or of.name))
        of_numbers = [self.store.get(each) or NOTHING for each in numbers]
        if of.name == "cat" and (arguments["dim"] + 1) % of.result.ndim == 0:
            of_numbers = self._name_by_last(of_numbers)
        planes = ([getattr(each, plane) for each in of_numbers] for plane in PLANES)
        self._place(of, joined, [self._run(of, arguments, chosen, each) for each in planes])

    def _name_by_last(self, known: Sequence[Known]) -> list[Known]:
        """Name features that come of single tokens of one text, as in a step of a recurrence, by the last of these."""
        there = (each.ids for each in known if each.ids is not None and each.ids.shape[-1] > 1)
        shadows = [ids for ids in there if self.store.recall(is_single, ids)]
        tokens = {tuple(ids[..., 0].flatten().tolist()) for ids in shadows}
        is_step = len(shadows) == len(known) and len(tokens) <= len({each.since for each in known})
        if not is_step or len({int(family_of(ids).amax()) for ids in shadows}) > 1:
            return [*known]
        last = shadows[max(range(len(known)), key=lambda nth: known[nth].since)][..., :1]
        if len(tokens) > 1:
            self._note("sums of different tokens")
        return [each._replace(ids=last.expand(ids.shape)) for each, ids in zip(known, shadows, strict=True)]

    def _place(self, of: Operation, joined: Known, moved: Sequence[list[Tensor] | None]) -> None:
        """Keep shadows that have gone where the numbers went."""
        is_cut = of.name == "slice" and not (of.args[2:3] or [0])[0] and of.result.shape != of.args[0].shape
        softmax, joined = joined.softmax, joined._replace(since=0 if self._takes_some(of) else joined.since)
        for nth, result in enumerate(of.results):
            one, *others = (None if each is None else each[nth] for each in moved)
            own, ids = softmax, self._leave_untold(of, one)
            if softmax is not None:
                is_longer = result.ndim > len(softmax.shape) and result.shape[-2:] == softmax.shape[-2:]
                shape = tuple(result.shape) if is_longer else softmax.shape
                own = softmax._replace(shape=shape, is_cut=softmax.is_cut or is_cut)
            if of.name in REPEATING and ids is not None and ids.ndim == 2 and result.dtype in WORDS:
                ids = self.store.tell_apart(ids)
            is_copied = of.name in COPYING and result.ndim == 3 and not self.store.is_repeated(of.tensors[0])
            planes: dict[str, Any] = dict(zip(PLANES, (ids, *others), strict=True))
            self.store.put(result, joined._replace(**planes, softmax=own, is_copied=is_copied))
            if ids is not None and of.function._schema.name.endswith("_") and result in self._wholes:
                self._write(result, ids, joined.after)

    def _takes_some(self, of: Operation) -> bool:
        """Tell whether tokens are taken out of others."""
        ids = (self.store.get(of.tensors[0]) or NOTHING).ids
        if ids is None or of.name not in TAKING:
            return False
        axes = [of.arguments["dim"]] if "dim" in of.arguments else range(ids.ndim)
        return any(self.store.varies(ids, axis) for axis in axes)

    def _view(self, of: Operation, shadow: Tensor) -> list[Tensor]:
        """Look at a shadow as an operator looks at the numbers, none of which it changes."""
        if of.name in SHAPED:
            return [self.store.recall(reshape, shadow, tuple(of.result.shape))]
        if of.name == "view_as_complex":  # ids have no imaginary part
            return [shadow[..., 0]]
        if of.name == "view_as_real":
            return [shadow.unsqueeze(-1).expand(of.result.shape)]
        return list(list_tensors((of.function(shadow, *of.args[1:], **of.kwargs),)))

    def _run(
        self, of: Operation, given: dict[str, Any], chosen: dict[str, Any], shadows: Sequence[Tensor | None]
    ) -> list[Tensor] | None:
        """Run an operator on shadows in the place of the numbers given; None where there are none.

        Features share the id of their token. So it is run on one of them, if that gives what it gives for all.
        """
        numbers = list(list_tensors(given))
        if all(each is None for each in shadows):
            return None
        kind = next(each.dtype for each in shadows if each is not None)
        missing = torch.tensor(NOBODY if kind == torch.int64 else 0, dtype=kind)
        given = given | {name: missing.item() for name in VALUES & given.keys() if not isinstance(given[name], Tensor)}
        known = [missing.expand(of.shape) if each is None else each for of, each in zip(numbers, shadows, strict=True)]

        def run(read: Callable[[Tensor], Tensor]) -> list[Tensor]:
            left = iter(known)
            arguments = tree_map_only(Tensor, lambda _: shift(read(next(left)), 1), given)
            if of.function._schema.name.endswith("_"):
                arguments["self"] = arguments["self"].clone(memory_format=torch.contiguous_format)
            return [shift(each, -1) for each in list_tensors((of.function(**arguments, **chosen),))]

        # im2col pads with 0, and that is no id of nobody.
        shift: Any = torch.add if of.name == "im2col" else lambda shadow, _: shadow
        is_shared = all(each.ndim > 1 and each.stride(-1) == 0 for each in known) and "scatter" not in of.name
        for read in (lambda shadow: shadow[..., :1], lambda shadow: shadow)[not is_shared :]:
            with suppress(RuntimeError, IndexError, ValueError):
                return [each.expand(to.shape) for each, to in zip(run(read), of.results, strict=True)]
        return [each.to(kind) for each in run(Tensor.double)]  # some take no whole numbers

    # --- rules --------------------------------------------------------------------------------------------------------

    def _reduce(self, of: Operation) -> Ids | None:
        """Keep the ids that are the same for all that are put together; else make new tokens of them."""
        ids = (of.known[0] or NOTHING).ids
        if ids is None or not of.results:
            return None
        axes, few, shape = _list_axes(of, ids), ids, of.results[0].shape
        for axis in axes:
            few = few.narrow(axis, 0, 1)
        if any(self.store.varies(ids, axis) for axis in axes):
            few = self.store.mix(collapse(ids).amax(dim=tuple(axes), keepdim=True).expand(few.shape), ids)
        return few.reshape(shape) if few.numel() == shape.numel() else None

    def _add_along_edges(self, of: Operation) -> Ids | None:
        """Name sums over edges, where different tokens go to one place; experts give each token back to its own."""
        target, axis, index = of.args[:3]
        axis %= max(1, target.ndim)
        before, states = ((of.known[at] or NOTHING).ids for at in (0, -1))
        if states is None or axis > target.ndim - 2 or self.store.varies(states, -1):
            return before
        # Experts and graphs use the same operator. What experts made of a token is added to its own place, so that
        # every place gets one token; in a graph, or where words are put together, a place gets several.
        sources = states[..., 0].movedim(axis, -1)
        if index.ndim > 1:  # not more of them than have an index
            index = index[..., 0].movedim(axis, -1)
            sources = sources[tuple(map(slice, index.shape))]
        index = index.cpu().expand(sources.shape)
        found = torch.full((*sources.shape[:-1], target.shape[axis]), NOBODY).scatter(-1, index, sources)
        ids, is_own = found.movedim(-1, axis).unsqueeze(-1).expand(target.shape), found.gather(-1, index).equal(sources)
        if not is_own and not axis:
            self._note("sums over edges, whose weights attnviz.from_attentions((edge_index, alpha)) takes")
            return before
        if not is_own or (before is not None and self.store.merge(before, ids)[1]):
            self._note("sums of different tokens")
        if not is_own:
            few = states.narrow(axis, 0, 1)[..., :1].expand(*target.shape[:-1], 1).contiguous()
            ids = self.store.mix(few, states).expand(target.shape)
        return ids if before is None else torch.where(before < 0, ids, before)

    def _convolve(self, of: Operation) -> Ids | None:
        """Keep as many positions as before, else make new tokens: patches of an image, stretches of sound."""
        states, kernel, result = of.args[0], of.args[1], of.results[0]
        source, strides, what = of.known[0] or NOTHING, {*(of.arguments.get("stride") or ())}, "pooling"
        given = source.ids
        if isinstance(kernel, Tensor):
            kernel, what = kernel.shape[2:], "convolution"
        elif given is None or len(kernel) != given.ndim - 2:
            return self._combine(of)
        # Channels come before places. What was read as states has tokens there, and none behind.
        if given is None or (self.store.varies(given, 1) and not self.store.varies(given.flatten(2), 2)):
            numbers = source.move(lambda of: of[:, :1]).numbers
            given = self.store.seed_beside(numbers, (len(states), 1, *states.shape[2:]))
            self.store.put(states, Known(given.expand(states.shape)))
        elif math.prod(kernel) > 1 and strides == {1}:
            self._note(what)
        # As many places as each text has tokens, padding left out, are of these, and any others of new ones, the same
        # for all heads of a text, as are places whose channels are of several.
        shape, places = torch.Size((len(result), 1, *result.shape[2:])), given[:, :1]
        if places.shape != shape or self.store.varies(given, 1):
            real, is_before = places >= 0, family_of(places) < self.store.n_before
            # A cache keeps tokens of a pass before for as long as a kernel reaches: a result is of the last it reads.
            if bool((real & is_before).any()) and not bool(is_before.all()):
                real = real.index_fill(-1, torch.arange(kernel[-1] - 1), False)
            tokens = places[real] if bool((real == real[:1]).all()) and strides == {1} else places
            rows, of_row = torch.unique(places.flatten(1).amax(dim=1), return_inverse=True)
            if not self.store.varies(places.flatten(1), 1):  # each is of one token, which becomes a text
                rows = self.store.seed((len(rows), 1))[:, 0]
            of_places = rows[:, None].expand(-1, shape[1:].numel()).contiguous()
            is_same = tokens.numel() == shape.numel() and not self.store.varies(given, 1)
            new = tokens if is_same else self.store.mix(of_places, is_mixed=False)[of_row]
            places = new.view(shape)
        return places.expand(result.shape)

    def _look_up(self, of: Operation) -> Ids | None:
        """Give vectors the ids of their words, which are read here first where no module was given them."""
        known_words, at = of.known[1] or NOTHING, of.tensors[1]  # categories of a table are columns of their own
        words = known_words.ids if known_words.numbers is None else known_words.numbers
        if words is None and self.store.families and at.ndim and at.shape[-1] > 1 and bool((at.diff() == 1).all()):
            of.known[0] = Known(nobody(of.tensors[0].shape))
            return nobody(of.result.shape)  # what a model counts up itself are places, or queries that it has learned
        if words is None or bool((words < 0).any()):
            new = self.store.seed(at.shape)
            self.store.families[-1].is_new = len(self.store.families) > self.store.n_before + 1  # it has read others
            words = new if words is None else torch.where(words < 0, new, words)
            self.store.put(at, Known(words))
        return (words.unsqueeze(-1) if of.result.ndim > words.ndim else words).expand(of.result.shape)


def _join(known: Sequence[Known | None]) -> Known:
    """Join what is known of all, but for their ids: after which attentions, of which softmax, the share dropped."""
    found = NOTHING
    for each in filter(None, known):
        softmax = each if found.softmax is None else found
        columns = each.columns if found.columns is None else found.columns
        dropped = max(found.dropped, each.dropped)
        numbers = found.numbers if each.numbers is None else each.numbers
        found = Known(None, found.after | each.after, softmax.softmax, columns, dropped, softmax.allowed, numbers)
    return found._replace(since=max((each.since for each in known if each is not None), default=0))


def _list_axes(of: Operation, ids: Ids | None) -> Sequence[int]:
    """List the axes along which a reduction puts numbers together."""
    axes = of.arguments.get("dim")
    return [axes] if isinstance(axes, int) else axes or range(0 if ids is None else ids.ndim)


def _is_no_state(tensor: Tensor) -> bool:
    """Tell whether a tensor of which nothing is known is learned, or holds no features of several tokens."""
    return is_learned(tensor) or tensor.ndim < 2 or not tensor.is_floating_point()


def _fits(shape: Sequence[int], into: Sequence[int]) -> bool:
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(into), strict=False))
