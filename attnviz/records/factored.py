"""Records of texts whose weights are too many to hold: what each weight is worked out from. Knows numpy and records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from types import NoneType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, Shaped

from attnviz.arithmetic import exponential, total
from attnviz.errors import InvalidRecord, TooLarge
from attnviz.records import AttentionMaps
from attnviz.records.head_walk import NONE, Head, Walk, to_sum_1
from attnviz.records.walk import ByDistance, Heads, Queries, WalkedRows, multiply
from attnviz.shapes import Attendable, RealQueries, Weights

KEYS_AT_ONCE = 2**12  # of some queries
MAX_CELLS = 2**28  # weights that are worked out at once where a caller wants all: 1 GiB
CELLS_AT_ONCE = 2**18  # of a walk over them all
N_PROBES = 16  # queries of each head whose rows are tried when a record is made or read
MAX_SCORE = 1e4  # a score beyond it comes from no model

Window = tuple[int | None, int | None]  # how many keys before a query it sees, and how many behind; None: all
EVERYWHERE: Window = (None, None)
CAUSAL: Window = (None, 0)


@dataclass(frozen=True, eq=False)
class Factors:
    """One layer: A[h, i, j] = exp(scale · q[h, i] · k[g, j] + bias[h, j - i] - log_sum_exp[h, i]).

    g is the group of heads that share keys, h · groups // heads. `bias` has a number for each distance from -D to D,
    of one head or of all; keys farther away have that of the farthest. What may be attended to is not a matrix, either:
    the keys in the `window` around each query, but for those that no query may attend to.

    Raises InvalidRecord where sizes do not fit, or a number is none.
    """

    query: Float32[np.ndarray, "_head _query _d_head"]
    key: Float32[np.ndarray, "_group _key _d_head"]
    log_sum_exp: Float32[np.ndarray, "_head _query"]
    scale: float
    bias: Float32[np.ndarray, "_biased _distance"] | None = None
    window: Window = EVERYWHERE
    attendable_keys: Bool[np.ndarray, " _key"] | None = None  # None: every key; padding is none of them

    def __post_init__(self) -> None:
        sums = self.log_sum_exp if self.summed else None
        axes = [None if of is None else of.ndim for of in (self.query, self.key, sums, self.bias)]
        if axes[:2] != [3, 3] or not {*axes[2:]} <= {2, None}:
            raise InvalidRecord(
                f"factors of {axes} axes", hint="Of q, k, log-sum-exp and bias these are 3, 3, 2 and 2."
            )
        n_heads, n_queries, d_head = self.query.shape
        n_groups = self.key.shape[0]
        biased = (1, 1) if self.bias is None else self.bias.shape
        fits = self.key.shape[2] == d_head and (sums is None or sums.shape == (n_heads, n_queries))
        if not fits or 0 in self.query.shape or 0 in self.key.shape or n_heads % n_groups:
            shapes = self.query.shape, self.key.shape, None if sums is None else sums.shape
            raise InvalidRecord(f"q, k and log-sum-exp of shapes {shapes} do not fit one another")
        if biased[0] not in (1, n_heads) or biased[1] % 2 == 0:
            raise InvalidRecord(f"a bias of shape {biased} is not one of {n_heads} heads by distance")
        numbers = (each for each in (self.query * self.scale, self.key, sums, self.bias) if each is not None)
        if not all((np.abs(each) <= MAX_SCORE).all() for each in numbers):  # written so that NaN is wrong too
            raise InvalidRecord("q, k, log-sum-exp or bias hold what is no number of a model")
        self._check_mask()

    def _check_mask(self) -> None:
        if any(type(reach) not in (int, NoneType) or (reach or 0) < 0 for reach in self.window):
            raise InvalidRecord(f"a window of {self.window} keys", hint="Each of the two is None or a number from 0.")
        keys = self.attendable_keys
        if keys is not None and (keys.shape != self.key.shape[1:2] or keys.dtype != np.bool_):
            raise InvalidRecord(f"attendable_keys are {keys.dtype} of shape {keys.shape}, not a bool for each key")

    @property
    def causal(self) -> bool:
        """Whether no query attends to what comes later."""
        return self.window[1] == 0

    @cached_property
    def _added(self) -> tuple[ByDistance, ...]:
        """What is added to a score, of one head or of all; NONE: not allowed. Nothing where all are alike."""
        if self.bias is None and self.window == EVERYWHERE:
            return ()
        bias = np.zeros((1, 1), dtype=np.float32) if self.bias is None else self.bias
        farthest = bias.shape[1] // 2
        added = bias[:, np.clip(self._distances, -farthest, farthest) + farthest]
        return tuple(self._of_distances(line) for line in np.where(self._within, added, NONE))

    def _added_of(self, head: int) -> ByDistance | None:
        return self._added[head % len(self._added)] if self._added else None

    def _of_distances(self, line: Shaped[np.ndarray, " distance"]) -> ByDistance:
        return ByDistance(line, self.query.shape[1])

    @property
    def keys_mask(self) -> Bool[np.ndarray, " key"]:
        """Which keys any query may attend to, written out."""
        return np.ones(self.key.shape[1], dtype=bool) if self.attendable_keys is None else self.attendable_keys

    @property
    def _distances(self) -> Int[np.ndarray, " distance"]:
        """All that there are from a query to a key."""
        return np.arange(1 - self.query.shape[1], self.key.shape[1])

    @property
    def _within(self) -> Bool[np.ndarray, " distance"]:
        """Which of them the window lets through."""
        distances = self._distances
        back, forward = (len(distances) if reach is None else reach for reach in self.window)
        return np.asarray((distances >= -back) & (distances <= forward))

    def allowed(self, queries: Queries) -> Bool[np.ndarray, "query key"]:
        """Which keys some queries may attend to."""
        allowed = self._of_distances(self._within).matrix[queries]
        return allowed if self.attendable_keys is None else allowed & self.attendable_keys

    @cached_property
    def _scaled(self) -> Float32[np.ndarray, "head query d_head"]:
        return np.asarray(self.query * np.float32(self.scale))

    @cached_property
    def _keys_and_ones(self) -> Float32[np.ndarray, "group one_more key"]:
        """Times (q · scale, -log_sum_exp) these are the logarithms of weights, but for the bias."""
        ones = np.ones((*self.key.shape[:2], 1), dtype=np.float32)
        return np.ascontiguousarray(np.concatenate([self.key, ones], axis=2).swapaxes(1, 2))

    def keys_of(self, head: int) -> Float32[np.ndarray, "key d_head"]:
        """The keys of a head, which it may share with others."""
        keys: Float32[np.ndarray, "key d_head"] = self.key[head * len(self.key) // len(self.query)]
        return keys

    def sides(self, head: int) -> Head:
        """What a head's weights are worked out from."""
        n_heads, n_queries, _ = self.query.shape
        return Head(
            query=self._scaled[head],
            key=self._keys_and_ones[head * len(self.key) // n_heads],
            added=self._added_of(head),
            attendable_keys=self.attendable_keys,
            n_numbers=n_heads * n_queries * self.key.shape[1],
        )

    def _of_head(
        self, head: int, queries: Int[np.ndarray, " query"]
    ) -> tuple[Float64[np.ndarray, "query one_more"], Float32[np.ndarray, "one_more key"]]:
        """What the logarithms of the weights of some queries are the product of, but for the bias. Of single weights
        that is worked out in float64, and rounded once: in the end it is small, on the way it is not.
        """
        query = self.query[head, queries].astype(np.float64) * self.scale
        less = -self.log_sum_exp[head, queries].astype(np.float64)
        return np.concatenate([query, less[:, None]], axis=1), self.sides(head).key

    @property
    def summed(self) -> bool:
        """Whether the log-sum-exp is known without a walk over all weights."""
        return True

    def known(self) -> Factors:
        """The same, its log-sum-exp held."""
        return self

    def walk(self, head: int, several: Iterable[Queries]) -> Iterator[WalkedRows]:
        """See `AttentionMaps.walk`. Raises InvalidRecord where rows are no distribution."""
        return map(Walk(self.sides(head), self.log_sum_exp[head], known=True).rows, several)

    def rows(self, head: int, queries: Queries) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries. Raises InvalidRecord where they are no distribution."""
        rows, lacking, sums = self._exponentials(head, queries)
        to_1 = to_sum_1(sums)
        for start, factors in zip(range(0, rows.shape[1], KEYS_AT_ONCE), lacking, strict=True):
            multiply(rows[:, start : start + KEYS_AT_ONCE], factors if to_1 is None else factors * to_1)
        return rows

    def _exponentials(
        self, head: int, queries: Queries
    ) -> tuple[Float32[np.ndarray, "query key"], list[Float64[np.ndarray, " query"]], Float64[np.ndarray, " query"]]:
        """Weights a stretch of keys at a time, which the cache holds, what those of each stretch are to be multiplied
        by, and the sums of their rows then.
        """
        of = self.sides(head)
        n_keys, places = of.key.shape[1], np.arange(len(of.query))[queries]
        exp, unit = exponential(of.n_numbers)
        query, less = of.in_units(places, unit), -unit * self.log_sum_exp[head, places].astype(np.float64)
        weights = np.empty((len(query), n_keys), dtype=np.float32)
        logs = np.empty((len(query), min(n_keys, KEYS_AT_ONCE)), dtype=np.float32)
        sums, lacking = np.zeros(len(query)), []
        for start in range(0, n_keys, KEYS_AT_ONCE):
            keys = slice(start, min(start + KEYS_AT_ONCE, n_keys))
            part, of_keys = logs[:, : keys.stop - start], weights[:, keys]
            factors = of.logarithms(query, less, unit, queries, keys, part)
            if factors is None:
                of_keys[:] = 0
                factors = np.ones(len(query))
            else:
                exp(part, of_keys)
                sums += total(of_keys) * factors
            lacking.append(factors)
        return weights, lacking, sums

    def tile(
        self, head: int, queries: Int[np.ndarray, " query"], keys: Int[np.ndarray, " key"]
    ) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries on some keys."""
        query, key = self._of_head(head, queries)
        of_keys, added = key[:, keys].astype(np.float64), self._added_of(head)
        found = np.empty((len(queries), len(keys)), dtype=np.float32)
        step = max(1, CELLS_AT_ONCE // max(1, len(keys)))
        for start in range(0, len(queries), step):
            several = slice(start, start + step)
            logs = query[several] @ of_keys
            if added is not None:
                logs += added.of(queries[several, None], keys)
            if self.attendable_keys is not None:
                logs[:, ~self.attendable_keys[keys]] = NONE
            found[several] = logs
        return np.exp(found, out=found)

    def rounded(self) -> Factors:
        """With q and k as float16 holds them, and the log-sum-exp of those. Raises InvalidRecord where it cannot."""
        with np.errstate(over="ignore"):  # it is told below
            query, key = (side.astype(np.float16).astype(np.float32) for side in (self.query, self.key))
        if np.array_equal(query, self.query) and np.array_equal(key, self.key):
            return self
        if not (np.isfinite(query).all() and np.isfinite(key).all()):
            raise InvalidRecord("q or k are larger than float16 holds", hint="Leave out half.")
        found = replace(self.known(), query=query, key=key)
        n_heads, n_queries, _ = query.shape
        sums = np.empty((n_heads, n_queries))
        step = max(1, CELLS_AT_ONCE // key.shape[1])
        for head, start in product(range(n_heads), range(0, n_queries, step)):
            queries = slice(start, start + step)
            sums[head, queries] = found._exponentials(head, queries)[2]
        return replace(found, log_sum_exp=(self.log_sum_exp + np.log(sums)).astype(np.float32))

    def cells(
        self, head: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, " cell"]:
        """The weights of single pairs of a query and a key."""
        sides = self.query[head, queries], self.keys_of(head)[keys]
        products: Float64[np.ndarray, " cell"] = np.einsum("cd,cd->c", *sides, dtype=np.float64)
        logarithms = products * self.scale - self.log_sum_exp[head, queries]
        if (added := self._added_of(head)) is not None:
            logarithms += added.of(queries, keys)
        if self.attendable_keys is not None:
            logarithms[~self.attendable_keys[keys]] = NONE
        return np.asarray(np.exp(logarithms.astype(np.float32)))


@dataclass(frozen=True, eq=False, repr=False)
class FactoredMaps(AttentionMaps):
    """A record that holds what its weights are worked out from, a block of rows at a time (see `AttentionMaps.rows`).

    `weights` and `attendable` are worked out when they are asked for. Raises TooLarge there for more than MAX_CELLS.
    """

    weights: Weights = field(init=False)
    attendable: Attendable = field(init=False)
    factors: tuple[Factors, ...] = field(kw_only=True)

    is_factored = True

    def __post_init__(self) -> None:
        expected = (self.n_heads, len(self.queries)), len(self.keys)
        for factors in self.factors:
            if (factors.query.shape[:2], factors.key.shape[1]) != expected:
                raise InvalidRecord(f"factors of {factors.query.shape[1]} tokens do not fit {len(self.queries)}")
        if self.sink is not None or self.grid is not None:
            raise InvalidRecord("sinks and patches of images are not recorded by factors")
        self._check_numbers()
        self._check_value_norms()
        probes = np.unique(np.linspace(0, len(self.queries) - 1, N_PROBES).astype(int))
        for layer, head in product(range(self.n_layers), range(self.n_heads)):
            if self.factors[layer].summed:
                self.rows(layer, head, probes)  # all others are tried when they are read

    def __getattr__(self, name: str) -> Any:
        """Only what is not there yet."""
        if name not in ("weights", "attendable"):
            raise AttributeError(name)
        n_cells = self.n_layers * self.n_heads * len(self.queries) * len(self.keys)
        if n_cells > MAX_CELLS:
            raise TooLarge(
                f"{n_cells:,} weights are more than the {MAX_CELLS:,} that are worked out at once",
                hint="Ask for rows of it, for measures, or choose fewer tokens.",
            )
        every = slice(0, len(self.queries))
        if name == "weights":
            whole = np.stack([[of.rows(head, every) for head in range(self.n_heads)] for of in self.factors])
        else:
            alike = self.factors[:1] if self.layers_alike else self.factors
            masks = np.stack([of.allowed(every) for of in alike])
            whole = np.broadcast_to(masks, (self.n_layers, len(self.queries), len(self.keys)))
        whole.flags.writeable = False
        object.__setattr__(self, name, whole)
        return whole

    def rows(self, layer: int, heads: Heads, queries: Queries) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries of one head; `layer` is a place in the record."""
        assert not isinstance(heads, slice)
        with self._told_where(layer, heads):
            return self.factors[layer].rows(heads, queries)

    def walk(self, layer: int, heads: Heads, several: Iterable[Queries]) -> Iterator[WalkedRows]:
        """See `AttentionMaps.walk`; of one head."""
        assert not isinstance(heads, slice)
        with self._told_where(layer, heads):
            yield from self.factors[layer].walk(heads, several)

    @contextmanager
    def _told_where(self, layer: int, head: int) -> Iterator[None]:
        """What is wrong with rows says of which layer and head they are."""
        try:
            yield
        except InvalidRecord as error:
            place = f"layer {self.layer_numbers[layer]}, head {self.head_numbers[head]}"
            raise InvalidRecord(f"{place}: {error.problem}", hint=error.hint) from error

    def tile(
        self, layer: int, head: int, queries: Int[np.ndarray, " query"], keys: Int[np.ndarray, " key"]
    ) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries on some keys."""
        return self.factors[layer].tile(head, queries, keys)

    def cells(
        self, layer: int, head: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, " cell"]:
        """The weights of single pairs of a query and a key."""
        return self.factors[layer].cells(head, queries, keys)

    def cells_of_heads(
        self, layer: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, "head cell"]:
        """The same of each head of a layer."""
        return np.stack([self.factors[layer].cells(head, queries, keys) for head in range(self.n_heads)])

    def allowed(self, layer: int, queries: Queries) -> Bool[np.ndarray, "query key"]:
        """Which keys some queries may attend to in a layer."""
        return self.factors[layer].allowed(queries)

    def allows_all(self, layer: int) -> bool:
        """Whether each query may attend to each key in a layer."""
        return self.factors[layer].window == EVERYWHERE and bool(self.factors[layer].keys_mask.all())

    @property
    def n_bytes(self) -> int:
        """What the record holds for its weights."""
        n_sums = self.n_layers * self.n_heads * len(self.queries)
        return sum(each.nbytes for of in self.factors for each in (of.query, of.key)) + 4 * n_sums

    @property
    def n_layers(self) -> int:
        """How many layers the record holds."""
        return len(self.factors)

    @property
    def n_heads(self) -> int:
        """How many heads of each layer the record holds."""
        return len(self.factors[0].query)

    @property
    def layers_alike(self) -> bool:
        """Whether all layers allow the same attention."""
        first = self.factors[0]
        return all(
            of.window == first.window and np.array_equal(of.keys_mask, first.keys_mask) for of in self.factors[1:]
        )

    @property
    def real_queries(self) -> RealQueries:
        """Those that may be attended to in any layer; of another text than the keys all."""
        if not self.self_attention:
            return np.ones(len(self.queries), dtype=bool)
        return np.asarray(np.any([of.keys_mask for of in self.factors], axis=0))
