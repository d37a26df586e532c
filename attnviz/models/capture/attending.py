"""The rule by which attention is known, wherever it is computed.

*A product in which rows that sum to one weigh states of different tokens is attention.* At the dispatcher every way to
write one has become a few operators. Rows that sum to one over experts, channels, earlier layers or classes weigh no
different tokens: the ids say so. Where ids are not known, as of tensors that no module reads, a softmax of a product of
states with states is taken for one.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from attnviz.models.capture.call import Keeper, Kept
from attnviz.models.capture.captured import MASKED_IN_WINDOWS, ROUNDED, find_allowed, read_kernel, refuse_dropout
from attnviz.models.capture.follow import Operation, list_tensors
from attnviz.models.capture.ids import NOTHING, Ids, Known, Softmax, collapse, is_learned, is_single, nobody, row_of

MISSED = 1e-3  # by which a row of weights may miss 1
LEARNED = "what they weigh is learned, and of no token"
UNKNOWN = "it is not known what the scores that they came of are of"
UNSCORED = "they came out of no softmax, and of no product of states with states"


class Rule:
    """Watches products and kernels. `keeper` is handed each attention; `note` is told of other mixtures."""

    def __init__(self, keeper: Keeper, note: Callable[..., None]) -> None:
        self._keeper, self._store, self._note = keeper, keeper.at_work.store, note
        self._weighed: tuple[Tensor, Tensor, Tensor] | None = None  # the last product element by element

    def soften(self, of: Operation) -> None:
        """Remember what came out of a softmax."""
        result, (scores, axis), allowed = of.result, of.args[:2], None
        known = of.known[0]
        is_unknown = known is None and not is_learned(scores) and result.numel() > 0
        if is_unknown and not self._keeper.at_work.calls:
            known = NOTHING  # in cells of a notebook scores are filled in one by one
        elif is_unknown and result.ndim > 2:
            self._note("", "pieces")  # scores of unknown tokens were put together in a way that is not followed
        if known is None or not result.numel():
            return
        if bool(scores.amin() <= MASKED_IN_WINDOWS):
            passing = find_allowed(scores.movedim(axis, -1)).movedim(-1, axis)
            allowed = None if bool(passing.all()) else passing
        # Where queries are learned, the place of each tells how heads lie if they are put beside one another later.
        is_of_keys = self._store.varies(known.ids, -1) and not self._store.varies(known.ids, -2)
        if result.ndim > 3 and known.columns is None and is_of_keys:
            numbers = -2 - torch.arange(result.shape[-2])
            known = known._replace(ids=numbers[:, None].expand(result.shape))
        softmax = Softmax(tuple(result.shape), result.shape[axis], is_unknown, self._keeper.at_work.n_seen)
        self._store.put(result, known._replace(softmax=softmax, allowed=allowed))

    def multiply(self, of: Operation) -> None:
        """Look at a product of matrices, of which either side may hold the weights."""
        sides = list(list_tensors(of.args))[-2:]
        known = [Known(nobody(side.shape)) if is_learned(side) else self._store.get(side) or NOTHING for side in sides]
        is_unknown = any(map(is_learned, sides)) and any(each is NOTHING for each in known)
        if is_unknown or not of.result.is_floating_point() or not sides[0].numel():  # or no keys, as at first
            return
        # Attention may be written as weights · values, or turned as valuesᵀ · weightsᵀ. The left side is asked first. A
        # right side that may hold weights is turned, so that one rule reads both, and what was found is turned back.
        for axis, side in enumerate(sides):
            if side.ndim == 1:  # a row on the left, a column on the right
                sides[axis], known[axis] = side.unsqueeze(axis), known[axis].move(partial(torch.unsqueeze, dim=axis))
        (left, right), (of_left, of_right) = sides, known
        found = self._attend(left, of_left, of_right, right)
        if found is None and not is_learned(right):
            turned = self._attend(right.mT, of_right.turn(), of_left.turn(), left.mT)
            found = None if turned is None else turned.turn()
        if found is None:
            found = self._multiply_ids(of_left, of_right, torch.Size((*left.shape[:-1], right.shape[-1])))
        found = found._replace(since=max(each.since for each in known))
        self._store.put(of.result, found.move(lambda ids: ids.reshape(of.result.shape)))

    def attend_in_kernel(self, of: Operation) -> None:
        """Hand over what a kernel was given, if it can be read."""
        kernel, output, store = read_kernel(of), of.results[0], self._store
        if kernel is None:
            self._note(of.name, "kernels")
            return
        query, key, value = (each or NOTHING for each in of.known[:3])
        after, since = query.after | key.after | value.after, max(query.since, key.since, value.since)
        queries = Known(None if store.is_nobodys(query.ids) else query.ids, after, since=since)
        shape, keys = (*kernel[0].query.shape[:-1], kernel[0].key.shape[-2]), value.ids if key.ids is None else key.ids
        if keys is not None and shape[-1] > 1 and not (store.is_nobodys(keys) or store.varies(keys, -2)):
            self._note("", "depth")
            ids = keys[..., :1, :1] if queries.ids is None else queries.ids[..., :1]
            store.put(output, Known(ids.expand(output.shape), after))
            return
        with torch.autocast(output.device.type, enabled=False):
            read = partial(self._keeper.read_kernel, *kernel, output, after)
            found = self._keeper.keep(read, queries, keys, torch.Size(shape), output.shape[-1])
        store.put(output, found)

    def _attend(
        self, weights: Tensor, known: Known, of_values: Known, values: Tensor, is_sum: bool = False
    ) -> Known | None:
        """Return what is known of weights [… query key] times values [… key width], where that is attention."""
        shape, width, after = weights.shape, values.shape[-1], known.after | of_values.after
        if self._is_beside(known, of_values.ids):
            return Known(None if known.ids is None else known.ids[..., :1].expand(*shape[:-1], width), after)
        if not self._weighs(weights, known, of_values.ids, values):
            return None
        # A score has two names: `ids` are the tokens of the left side of the product that it comes of, `columns` those
        # of the right side. Queries are read from the former. Keys are read from the latter where these name a token
        # for each key, else from the values, which are of the same tokens. What neither names stays None.
        store, across, queries, keys = self._store, known.columns, known.ids, of_values.ids
        if across is None and queries is not None and store.varies(queries, -1):
            pair = [store.recall(store.fill, side, -1) for side in store.recall(store.take_apart, queries)]
            if not all(store.varies(side, -1) for side in pair):
                queries, across = pair
        queries, across = store.recall(store.fill, queries, -1), store.recall(store.fill, across, -2)
        if store.varies(queries, -1):
            queries = across  # as where two texts read each other by one product
        if across is not None and store.varies(across, -1) and not store.varies(across, -2):
            keys = across.mT if bool((collapse(across) >= 0).all()) else keys
        if keys is None or store.varies(queries, -1):
            queries = None
        # A kernel of a convolution that is made anew for each token, as in ConvBERT, weighs the tokens around it and
        # looks at none of them.
        if queries is not None and not store.is_nobodys(queries) and across is None and not is_sum and shape[-2] == 1:
            rows, of_keys = row_of(store.lay_out(queries, shape[:-1])), store.lay_out(keys, (*shape[:-2], shape[-1]))
            assert of_keys is not None
            around = torch.cat([rows, of_keys], dim=1)
            if len(torch.unique(around, dim=0)) > len(torch.unique(rows)):
                self._note("convolution with a kernel for each token")
                return Known(queries[..., :1].expand(*shape[:-1], width), after)
        guess, read = LEARNED if store.is_nobodys(of_values.ids) else "", partial(_read, weights, known)
        if known.softmax is None and known.ids is not None and across is None:
            guess = UNSCORED
        elif known.softmax is not None and known.softmax.is_of_unknown:
            guess = UNKNOWN
        return self._keeper.keep(read, known._replace(ids=queries, after=after), keys, shape, width, guess)

    def _multiply_ids(self, of_left: Known, of_right: Known, shape: torch.Size) -> Known:
        """Follow what is no attention: rows stay those of the left side; sums over tokens are named."""
        store, one, two = self._store, of_left.ids, of_right.ids
        after, softmax = of_left.after | of_right.after, of_left.softmax or of_right.softmax
        # `along` says of either side whether different tokens lie along the axis that is summed over. A projection sums
        # over features of one token, and rows stay those of their tokens. Where tokens are summed up and it is no
        # attention, the result is a mixture, and what is known to mix them is noted: a record would otherwise seem to
        # hold all that moves between tokens.
        if one is not None and store.varies(one, -1) and not store.find_words(one).any():
            one = nobody(one.shape)  # what is learned, and mixed with its like, is of nobody
        along = store.varies(one, -1), store.varies(two, -2) and not store.varies(two, -1)
        is_read = one is not None and not store.is_nobodys(one)
        are_both = is_read and two is not None and not store.is_nobodys(two)
        are_states = are_both and (of_left.softmax is None) != (of_right.softmax is None)
        # Rows that are features of the same tokens are multiplied by a matrix over tokens. Its columns are new tokens,
        # or its rows, as variables of a series are. What is done next tells which: till then each number is one.
        rows = one[(one >= 0).any(dim=-1)] if one is not None and along == (True, False) else nobody((1, 1))
        is_line = len(torch.unique(rows[0])) == len(rows[0])  # and no patch, whose numbers may have been read in rows
        over = one if len(rows) > 1 and is_line and rows[0].equal(rows[1]) else None
        ids = across = None
        if softmax is not None:
            if along[1] or (along[0] and of_right.softmax is not None):
                self._note(softmax.changed or "softmax", "changed")
            # States are of tokens, as scores are, and hold no weights: those that read them begin anew.
            softmax = None if are_states else softmax._replace(changed=softmax.changed or "linear")
        elif all(along):
            self._note("linear attention")
        elif along[1]:
            self._note("weights that do not sum to 1" if is_read else "a matrix over tokens")
        elif over is not None:
            self._note("a matrix over tokens")
        if over is not None:
            ids = store.mix(over[..., :1].expand(shape).contiguous(), over, is_grid=True)
        elif one is not None and along[0]:
            ids = store.put_together(one[..., :1, :] if along[1] else one).unsqueeze(-1).expand(shape)
        elif one is not None and is_read and not (are_states and store.varies(two, -1)):
            ids = one[..., :1].expand(shape)
        elif two is not None and not (one is None and store.is_nobodys(two)):
            ids = two[..., :1, :].expand(shape)
        if are_both and two is not None and not any(along):
            across = two[..., :1, :].expand(shape)
        return Known(ids, after, softmax, across)

    # --- which products are attention ---------------------------------------------------------------------------------

    def _is_beside(self, known: Known, ids: Ids | None) -> bool:
        """Tell whether weights are multiplied with what is no state of the keys that their scores name.

        That is what is learned, or differs by the query, as vectors of distances do (Shaw et al. 2018).
        """
        keys, varies = known.columns, self._store.varies
        if known.softmax is None or ids is None or not varies(keys, -1):
            return False
        by_query = (axis for axis in range(ids.ndim - 2) if varies(known.ids, axis) and not varies(keys, axis))
        return self._store.is_nobodys(ids) or any(varies(ids, axis) for axis in by_query)

    def _weighs(self, weights: Tensor, known: Known, ids: Ids | None, values: Tensor) -> bool:
        """Tell whether the left side of a product holds weights, and the right side states of different tokens."""
        softmax, n_keys = known.softmax, weights.shape[-1]
        if known is NOTHING or (softmax is None and self._store.is_nobodys(known.ids)):
            return False  # what nobody has read is learned, or was made by other code
        is_plain = softmax is not None and not softmax.changed
        # What rows weigh decides, and there are three cases. Of vectors that belong to no token only a softmax as it
        # came makes attention. Of values that nothing is known of it is for the numbers to say. And where all that a
        # row weighs is one token, as its experts or its earlier layers are, it is none, unless each text has one token,
        # which attends to itself.
        if self._store.is_nobodys(ids):  # a memory, or vectors of experts: which of them, numbers do not tell
            return is_plain and n_keys > 1 and weights.ndim > 2 and is_distribution(weights, known)
        if ids is None:
            if softmax is not None and softmax.is_cut and n_keys > softmax.n_keys:
                self._note("", "pieces")  # rows of more keys than it had were put together anew, as in Longformer
                return False
            fits = softmax is None or len(softmax.shape) < 3 or weights.ndim > 2
            # Scores of one token, for whole numbers that nothing is known of, are those of the experts that it chose.
            are_of_one = known.columns is None and not self._store.varies(known.ids, -1)
            is_chosen = are_of_one and bool((values == values.round()).all())
            if not fits or (known.ids is not None and (softmax is None or is_chosen)):
                return False
        elif not self._store.varies(ids, -2):
            return n_keys == 1 and is_plain and (known.columns is not None or is_single(ids))
        return is_distribution(weights, known)

    # --- weights times states, summed up ------------------------------------------------------------------------------

    def weigh(self, of: Operation) -> bool:
        """Look at a product element by element: one key leaves nothing to sum up. Returns whether it was attention."""
        self._weighed = (of.result, *of.tensors) if len(of.tensors) == 2 else None
        # Of one expert, too, the weight is 1; but the score of a key is of two tokens.
        is_scored = any(each and each.softmax is not None and each.columns is not None for each in of.known)
        return is_scored and self.sum_up(of._replace(args=(of.result, [])))

    def sum_up(self, of: Operation) -> bool:
        """Look at a sum of weights times states, which is a product of one row. Returns whether it was attention."""
        if self._weighed is None or self._weighed[0] is not of.args[0] or len(of.args) < 2:
            return False
        whole, *sides = self._weighed
        found = self._sum(of, whole.shape, *sides) or self._sum(of, whole.shape, *sides[::-1])
        if found is not None:
            self._weighed = None
            self._store.put(of.result, found)
        return found is not None

    def _sum(self, of: Operation, shape: torch.Size, weights: Tensor, states: Tensor) -> Known | None:
        # Some code writes attention without a product of matrices, as (weights[..., None] * states).sum(1). Weights are
        # known by this: once expanded to the product they are one number for all features, and the sum goes over none
        # of those axes. Laid out as a matrix of one row they are what `_attend` reads.
        known, of_states = (self._store.get(side) or NOTHING for side in (weights, states))
        wide, n_axes = weights.expand(shape), len(shape)
        summed = [*sorted({axis % n_axes for axis in of.args[1]}), n_axes]  # an axis of one behind all others, too
        # Of one key all weights are 1, and do not tell heads from features.
        copied = known if of.args[1] else NOTHING
        features = [axis for axis in range(n_axes) if shape[axis] > 1 and self._is_one(wide, copied, axis)]
        is_learned_too = is_learned(states) or self._store.is_nobodys(of_states.ids)
        if not features or not set(features).isdisjoint(summed) or is_learned_too:
            return None

        def lay_out(shadow: Tensor) -> Tensor:
            """Lay out […, 1, summed], for the first of all features."""
            shadow = shadow.expand(shape).unsqueeze(-1)
            for axis in features:
                shadow = shadow.narrow(axis, 0, 1)
            return shadow.movedim(summed, [*range(-len(summed), 0)]).flatten(-len(summed)).unsqueeze(-2)

        of_values = of_states.move(lay_out).turn()
        found = self._attend(lay_out(weights), known.move(lay_out), of_values, lay_out(states).mT, is_sum=True)
        if found is None:
            return None
        kept = [shape[axis] for axis in range(n_axes) if axis not in summed]
        return found.move(lambda ids: ids[..., 0, 0].expand(kept).reshape(of.result.shape))

    def _is_one(self, weights: Tensor, known: Known, axis: int) -> bool:
        """Tell whether weights are one for all along an axis, expanded to it or copied."""
        if weights.stride(axis) == 0 or known.softmax is None or known.ids is None or known.ids.ndim < weights.ndim:
            return weights.stride(axis) == 0
        return not self._store.varies(known.ids, axis) and bool((weights == weights.narrow(axis, 0, 1)).all())


def _read(weights: Tensor, known: Known, what: str) -> Kept:
    """Read weights [… query key] as they were multiplied. Raises InvalidRecord where dropout is at work."""
    refuse_dropout(known.dropped, what)
    softmax, allowed = known.softmax, known.allowed
    rows = weights.reshape(-1, *weights.shape[-2:])
    kept = rows.to(torch.float32, copy=True)
    if allowed is not None and allowed.shape == weights.shape:
        allowed = allowed.reshape(rows.shape)
        kept.masked_fill_(~allowed, 0)
    else:
        # Of weights of another kind those are 0 that a mask forbids, as are some that a sparse softmax gave. A key that
        # nobody looks at is therefore no padding: the last query may, to whom a causal mask shows all.
        allowed = kept > 0 if softmax is None or softmax.changed else None
        if allowed is not None:
            allowed[..., -1:, :] |= ~allowed.any(dim=-2, keepdim=True)
    whole = known._replace(dropped=0.0, softmax=None if softmax is None else softmax._replace(is_cut=False))
    is_cut = softmax is not None and softmax.is_cut and not is_distribution(weights, whole)
    sink, error = ((1 - kept.sum(dim=-1)).clamp(min=0) if is_cut else kept.new_zeros(kept.shape[:-1])), 0.0
    # Weights that were rounded to half precision are scaled, so that rows and sinks sum to 1 again. No weight changes
    # by more than its row had been rounded, and a row that misses 1 for another reason stays as it is.
    if rows.dtype in ROUNDED:
        sums = kept.sum(dim=-1) + sink
        missed = (sums - 1).abs()
        rounded = missed <= ROUNDED[rows.dtype]
        by, error = sums.masked_fill(~rounded, 1), float(missed.masked_fill(~rounded, 0).amax())
        kept, sink = kept / by.unsqueeze(-1), sink / by
    return Kept(kept, error, "multiplied", allowed, sink, softmax and (softmax.n_before, weights.data_ptr()))


def is_distribution(weights: Tensor, known: Known) -> bool:
    """Tell whether what is summed over is a distribution, in every row that has any weight."""
    # Numbers that no softmax gave, or that were changed since, have to be a distribution in every row. Those of a
    # softmax need not be: dropout takes some and scales the others, a sink that was cut off leaves less than 1, and who
    # may attend to nothing has a row of zeros or NaN. Without dropout or a cut, one row at least has to sum to 1
    # or be NaN.
    softmax, sums = known.softmax, weights.sum(-1, dtype=torch.float32)
    near = (sums - 1).abs() <= ROUNDED.get(weights.dtype, MISSED)
    if softmax is None or softmax.changed:
        return bool(near.all()) and bool((weights >= 0).all())
    if softmax.is_cut or known.dropped:
        return bool(known.dropped) or bool((sums <= 1 + MISSED).all())
    nothing = (sums == 0) | sums.isnan()
    return bool((near | nothing).all()) and bool((near | sums.isnan()).any())
