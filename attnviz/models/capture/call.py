"""One attention as a capture hands it over, and which rows of it are texts, windows and heads: the ids say so.

`Keeper` keeps the chosen layers and heads, as weights or as their factors. Knows which modules are at work, and no
operator but the kernels that attend.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int
from torch import Tensor

from attnviz.errors import InvalidRecord
from attnviz.models.capture.captured import Asked, How, recompute, refuse_dropout
from attnviz.models.capture.factored import FactoredRows, Factoring
from attnviz.models.capture.ids import NOBODY, Ids, Known, collapse, has_tokens, nobody, row_of
from attnviz.models.capture.modules_at_work import ModulesAtWork, may_be_in
from attnviz.models.protocols import EVERY, LayersAndHeads

PlaceIds = Int[np.ndarray, "..."]


@dataclass(frozen=True, eq=False)
class Call:
    """One attention as it was computed. The arrays are nobody else's.

    A row is a text, or a window of one. In a row that may attend to nothing all weights are 0; every other row and its
    sink together sum to 1.
    """

    path: str  # of the module in the outermost one, such as "encoder.layer.3.attention.self"; "" where there is none
    number: int  # of the outermost forward pass, a step of a generation being one; in no module of a round, below 1
    kept: Float32[np.ndarray, "row head query key"] | FactoredRows  # weights after softmax, or what they come of
    attendable: Bool[np.ndarray, "row query key"]  # by any head; of factors by any query, in the place of one
    sink: Float32[np.ndarray, "row head query"]  # the share that goes to no key
    how: How  # worked out from what a kernel was given, or the very numbers that the model multiplied, or not at all
    error: float  # largest |weights · value - output of the call itself|, relative to the largest |value|
    queries: PlaceIds  # their ids; of no token are learned ones, say
    keys: PlaceIds | None = None  # None: not known
    place: int = 0  # among the calls of the capture
    after: int = 0  # bit n: it reads what call n gave
    since: int = 0  # the operator that first worked on the last tokens that it reads: steps of a loop have another each
    run: int = 0  # which run of its module it is in
    n_families: int = 0  # of tokens, that there were before it
    n_alike: tuple[int, ...] = ()  # for each number in the path, how many modules are numbered so; 0: not known
    guess: str = ""  # why it may be no attention over tokens
    source: object = None  # of its weights, which may weigh several values
    nth: int = 0  # its number in its run, of those that are kept apart
    n_steps: int = 1  # how many calls it was joined from, one after another
    apart: str = ""  # why its pass, which goes on from others, was not joined to them
    heads: tuple[int, ...] = ()  # by their numbers in the call; (): all
    n_heads_in_model: int | None = None  # that the call has, where layers or heads were chosen
    place_in_stack: int = 0  # where layers are outermost modules, the layer that the path is in
    root: str = ""  # the class of the outermost module; "" where there is none
    lacks_fast_path: bool = False  # whether torch would have run its module as one operator if nobody had looked

    @property
    def weights(self) -> Float32[np.ndarray, "row head query key"]:
        """Return the weights after softmax.

        Raises InvalidRecord where factors are kept: parts of one attention have none together.
        """
        if isinstance(self.kept, FactoredRows):
            problem = f"{self.path or 'this block'} attends in parts, such as heads or steps of a text, one by one"
            raise InvalidRecord(problem, hint="They have no factors together: leave out factored.")
        return self.kept

    @property
    def factors(self) -> FactoredRows | None:
        """Return the factors that the weights are computed from, None where they were not asked for."""
        return self.kept if isinstance(self.kept, FactoredRows) else None

    @property
    def attended(self) -> Bool[np.ndarray, "row key"]:
        """Find the keys that any query attends to."""
        return np.asarray(self.attendable.any(axis=1))


class Arranged(NamedTuple):
    """Rows of a product, put in order."""

    places: PlaceIds | None  # where each query stands in the product; None: in this order
    shape: tuple[int, int, int, int]  # [row, head, query, key]
    queries: PlaceIds  # of nobody where they are of no token, such as learned ones
    keys: PlaceIds | None

    def order(self, of: Any) -> Any:
        """Order as [row, head, query, …] an array or tensor that has [row of the product, query, …]."""
        if self.places is not None:
            of = of.reshape(-1, *of.shape[2:])[self.places.ravel()]
        return of.reshape(*self.shape[:3], *of.shape[2 if self.places is None else 1 :])


def arrange(
    of_queries: Ids | PlaceIds,
    of_keys: Ids | PlaceIds | None,
    sizes: tuple[int, int, int],
    n_heads: int,
    places: Ids,
) -> Arranged:
    """Find a row for each text and each set of keys it looks at, and a head for each time a query looks at them.

    Heads may stand on the axis of rows or on that of queries, in any order, and queries of one text in several rows of
    the product: all that is counted is how often each looks at the same keys. Where heads chose queries of their own,
    no query has a name. Where nothing is known of any, or all is learned, `n_heads` rows at a time are of one text.

    `sizes`: how many rows, queries and keys a product has. `places`: of queries in their heads.
    """
    n_rows, n_queries, n_keys = sizes
    queries = np.asarray(of_queries)
    keys = np.full((n_rows, n_keys), NOBODY) if of_keys is None else np.asarray(of_keys)
    apart = np.where(queries < 0, -2 - np.asarray(places), queries)  # of nobody, told from others by its place
    if np.array_equal(queries, keys):  # tokens may stand in several places, as where states are repeated
        apart = np.broadcast_to(np.arange(n_queries), queries.shape)
    # Queries of several texts may stand on one axis where all look at what is learned. Each is a line by itself then.
    of_texts = row_of(np.where(queries < 0, queries.max(axis=1, keepdims=True, initial=NOBODY), queries))
    n_lines = n_queries if keys.max(initial=NOBODY) < 0 and (of_texts != of_texts[:, :1]).any() else 1
    asking = queries.reshape(n_rows * n_lines, n_queries // n_lines).max(axis=1, initial=NOBODY)
    texts = number_texts(asking, keys.repeat(n_lines, axis=0), n_heads)
    if len({*np.bincount(texts).tolist()}) > 1:  # of texts that do not all have as many rows each row stands for itself
        texts = np.arange(n_rows).repeat(n_lines)
    placed, natural = order_lines(texts.repeat(n_queries // n_lines), apart.ravel()), np.arange(n_rows * n_queries)
    # Parts of a text have its queries in order. Rows that have others are heads that chose them, as in Informer.
    if placed is not None and placed.shape[2] > n_queries and (np.diff(queries) < 0).any():
        placed = None
    if placed is None:
        n_texts = int(texts.max()) + 1
        rows = texts.argsort(kind="stable").reshape(n_texts, n_rows // n_texts)
        placed, queries = natural.reshape(n_rows, n_queries)[rows], np.full_like(queries, NOBODY)
    # Most models lay their heads out in this very order, and then no weight is moved.
    return Arranged(
        None if np.array_equal(placed.ravel(), natural) else placed,
        (*placed.shape, n_keys),
        np.maximum(queries, NOBODY).ravel()[placed[:, 0]],
        None if of_keys is None else keys[np.unique(texts, return_index=True)[1] // n_lines],
    )


def place_in_heads(queries: Ids, n_queries: int) -> Ids:
    """Number the places of queries within their heads, of which several may stand on this axis, in any order.

    The places of one word tell how heads lie. Where no query is a word, a softmax has numbered them.
    """
    places = torch.arange(n_queries)
    if has_tokens(queries):
        at = (queries[(queries == queries.max()).any(dim=1)][0] == queries.max()).nonzero().flatten()
        step = int(at[1] - at[0]) if len(at) > 1 else n_queries
        return places - places // step % len(at) * step
    return places if len(torch.unique(queries[0])) < 2 else -2 - queries[0]


def number_texts(asking: PlaceIds, keys: PlaceIds, n_heads: int = 1) -> PlaceIds:
    """Number the text that each row is of, with the keys it looks at, in the order in which texts were read.

    `asking`: a query of each row. Rows of the product whose queries are of one text and that look at the same keys
    belong together: they are its heads, or parts of its queries. Of rows of nobody `n_heads` at a time do.
    """
    is_known = np.maximum(asking, keys.max(axis=1, initial=NOBODY)) >= 0
    texts = np.where(is_known, row_of(asking), np.arange(len(asking)) // n_heads).tolist()
    together = [(text, of_row.tobytes()) for text, of_row in zip(texts, keys, strict=True)]
    number = {each: at for at, each in enumerate(sorted(dict.fromkeys(together), key=lambda each: each[0]))}
    return np.array([number[each] for each in together])


def order_lines(texts: PlaceIds, queries: PlaceIds) -> Int[np.ndarray, "text head query"] | None:
    """Find where each query of each text is the first time, the second …: the times are its heads.

    None where texts do not all have as many queries, or one is there more often than another.
    """
    ids, asking = np.unique(queries, return_inverse=True)
    pairs, first, inverse, n_heads = np.unique(
        texts * len(ids) + asking, return_index=True, return_inverse=True, return_counts=True
    )
    n_queries = np.bincount(texts[first])
    if not len(pairs) or (n_heads != n_heads[0]).any() or (n_queries != n_queries[0]).any():
        return None
    rank = np.lexsort((first, texts[first])).argsort()  # of texts, and in each of its queries as they are met first
    order = rank[inverse].argsort(kind="stable")
    return np.asarray(order.reshape(len(n_queries), n_queries[0], n_heads[0]).swapaxes(1, 2))


DENSE = "Leave out factored."


class Kept(NamedTuple):
    """What is kept of an attention, in the order of the product; laid out, as a `Call` has it."""

    kept: Any  # [row query key] or FactoredRows
    error: float
    how: How = "recomputed"
    attendable: Any = None  # [row query key]; None: every key by every query
    sink: Any = torch.zeros(())  # of any row
    source: object = None  # where the weights lay, or the queries of a kernel, and what these come after


@dataclass(frozen=True, eq=False)
class Keeper:
    """Hands over what was asked for: see `capture`."""

    take: Callable[[Call], None]
    choice: LayersAndHeads
    at_work: ModulesAtWork
    factoring: Factoring | None  # None: with weights

    def read_kernel(self, asked: Asked, sums: Tensor | None, output: Tensor, after: int, what: str) -> Kept:
        """Read the weights of a kernel, or their factors. Raises InvalidRecord where dropout is at work."""
        refuse_dropout(asked.dropout_p, what)
        if self.factoring is not None:
            return Kept(*self.factoring(asked, output, sums, what), how="factored")
        weights, attendable, error = recompute(asked, output, what)
        allowed = None if bool(attendable.all()) else attendable.repeat_interleave(weights.shape[1], dim=0)
        return Kept(weights.flatten(0, 1), error, attendable=allowed, source=(asked.query.data_ptr(), after))

    def keep(
        self,
        read: Callable[[str], Kept],
        asking: Known,
        of_keys: Ids | None,
        shape: torch.Size,
        width: int,
        guess: str = "",
    ) -> Known:
        """Hand over weights [… query key], and return what is known of what they made of values [… key width].

        `asking`: the ids of queries, and what the weights come after and of which softmax.
        """
        store, softmax = self.at_work.store, asking.softmax
        asked = nobody((*shape[:-1], 1)) if asking.ids is None else asking.ids[..., :1]
        queries, keys = store.lay_out(asked, shape[:-1]), store.lay_out(of_keys, (*shape[:-2], shape[-1]))
        if keys is not None:
            queries, keys = store.recall(store.forget_learned, queries, keys)
        n_rows, n_heads = shape[:-2].numel(), shape[-3] if len(shape) > 2 else 1
        if softmax is not None and len(softmax.shape) > len(shape) and torch.Size(softmax.shape[:-2]).numel() == n_rows:
            n_heads = softmax.shape[-3]
        places = store.recall(place_in_heads, queries, shape[-2])
        # Whatever is made of the result comes after this attention: its bit says so. By these bits calls that follow
        # one another, as layers do, are told from those that stand beside each other.
        # A learned query has read the keys, too, and is a token from then on.
        is_learned = bool((collapse(asked) < 0).any())
        made = store.make(keys, (*shape[:-1], 1), places, has_tokens(asked)) if is_learned else None
        ids = asking.ids if made is None else torch.where(asked < 0, made, asked)
        ids = None if ids is None else ids[..., :1].expand(*shape[:-1], width)
        known = Known(ids, asking.after | 1 << self.at_work.n_seen, since=asking.since)
        arranged = store.recall(arrange, queries, keys, (n_rows, *shape[-2:]), n_heads, places)
        is_in_order = arranged.places is None and arranged.shape[:2] == (n_rows // max(1, n_heads), n_heads)
        path, n_heads = self.at_work.find_path()[0], arranged.shape[1]
        what = f"the attention in {path or 'this block'}"
        if n_heads > 1 and not may_be_in(path, self.choice.layers):
            self.at_work.note_attention()
            return known
        # One of one head may be a part of a layer: heads are chosen when those are joined.
        heads = (0,) if n_heads == 1 else self.choice.heads_of(n_heads, what)
        found = read(what)
        if isinstance(found.kept, Tensor):
            if self.factoring is not None and shape[-2] > 1:
                raise InvalidRecord(f"{what} is written out as softmax(…) @ value: its q and k are gone", hint=DENSE)
            arranged, found = _lay_out(found, arranged, list(heads))
        elif not is_in_order:
            raise InvalidRecord(f"{what} has no axis each for texts and heads", hint=DENSE)
        else:
            attended = np.stack([of.keys_mask for of in found.kept.factors])[:, None]
            found = found._replace(attendable=attended, sink=np.zeros(found.kept.shape[:3], dtype=np.float32))
        call = Call(
            **self.at_work.locate(),
            **found._asdict(),
            queries=arranged.queries,
            keys=arranged.keys,
            after=asking.after,
            since=asking.since,
            guess=guess,
            heads=heads,
            n_heads_in_model=None if self.choice == EVERY else n_heads,
        )
        self.take(call)
        return known


def _lay_out(read: Kept, arranged: Arranged, heads: list[int]) -> tuple[Arranged, Kept]:
    """Lay out the chosen heads of weights, and which keys may be attended to, without keys behind all tokens."""
    (n_rows, _, n_queries, n_keys), weights, sink = arranged.shape, read.kept, read.sink
    known = (np.empty((1, 0)) if ids is None else ids for ids in arranged[2:])
    asking, named = (np.flatnonzero((ids >= 0).any(axis=0)) for ids in known)
    n_tokens = int(named[-1]) + 1 if len(named) else n_keys
    # Keys behind all tokens are room in a cache, or a place to look at that is no token; but what the model has
    # learned and put behind its tokens asks, too, and is one of them: such as the objects that YOLOS looks for.
    asks = n_queries == n_keys and len(asking) > 0 and asking[-1] < n_tokens
    if n_tokens < n_keys and not asks:
        sink, n_keys = sink + weights[..., n_tokens:].sum(dim=-1), n_tokens
        arranged = arranged._replace(keys=arranged.keys[:, :n_keys])  # type: ignore[index]
    attendable = np.broadcast_to(np.True_, (n_rows, n_queries, n_keys))
    if read.attendable is not None:
        attendable = arranged.order(read.attendable[..., :n_keys]).any(dim=1).cpu().numpy()
    # Those that are chosen are copied, and all are weights of nobody else.
    kept = arranged.order(weights)
    kept = kept[..., :n_keys] if len(heads) == kept.shape[1] else kept[:, heads, :, :n_keys]
    sinks = arranged.order(sink.expand(weights.shape[:-1]))[:, heads].cpu().numpy()
    kept = kept.contiguous().cpu().numpy()
    # What is of no token, and has no weight of any, is what a text that was packed has behind it.
    if arranged.keys is not None and arranged.keys.min(initial=0) < 0:
        attendable = attendable & ((arranged.keys >= 0) | kept.any(axis=(1, 2)))[:, None]
    return arranged, read._replace(kept=kept, attendable=attendable, sink=sinks)
