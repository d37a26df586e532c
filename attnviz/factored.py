"""Records of texts whose weights are too many to hold: what each weight is worked out from. Knows numpy and records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from types import NoneType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int, Shaped

from attnviz.arithmetic import dot, exponential, total
from attnviz.by_distance import ByDistance
from attnviz.errors import InvalidRecord, TooLarge
from attnviz.records import ROW_SUM_TOLERANCE, AttentionMaps, SummedRows
from attnviz.shapes import Attendable, RealQueries, Weights

KEYS_AT_ONCE = 2**12  # of some queries
MAX_CELLS = 2**28  # weights that are worked out at once where a caller wants all: 1 GiB
CELLS_AT_ONCE = 2**18  # of a walk over them all
N_PROBES = 16  # queries of each head whose rows are tried when a record is made or read
EXACT = 3e-6  # how far from 1 a row may sum as it is: of log-sum-exp near 100 the kernel's float32 misses 2e-5
MAX_SCORE = 1e4  # a score beyond it comes from no model
NONE = np.float32(-1e30)  # the logarithm of 0, and finite: 0 ln 0 is 0

Queries = slice | Int[np.ndarray, " query"]
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
        axes = [of.ndim for of in (self.query, self.key, self.log_sum_exp, self.bias) if of is not None]
        if axes not in ([3, 3, 2], [3, 3, 2, 2]):
            raise InvalidRecord(
                f"factors of {axes} axes", hint="Of q, k, log-sum-exp and bias these are 3, 3, 2 and 2."
            )
        n_heads, n_queries, d_head = self.query.shape
        n_groups = self.key.shape[0]
        biased = (1, 1) if self.bias is None else self.bias.shape
        fits = self.key.shape[2] == d_head and self.log_sum_exp.shape == (n_heads, n_queries)
        if not fits or 0 in self.query.shape or 0 in self.key.shape or n_heads % n_groups:
            shapes = self.query.shape, self.key.shape, self.log_sum_exp.shape
            raise InvalidRecord(f"q, k and log-sum-exp of shapes {shapes} do not fit one another")
        if biased[0] not in (1, n_heads) or biased[1] % 2 == 0:
            raise InvalidRecord(f"a bias of shape {biased} is not one of {n_heads} heads by distance")
        numbers = (self.query * self.scale, self.key, self.log_sum_exp, *(() if self.bias is None else (self.bias,)))
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
    def _sides(self) -> tuple[Float32[np.ndarray, "head query d"], Float32[np.ndarray, "group d key"]]:
        """(q · scale, -log_sum_exp) and (k, 1): their product is the logarithm of the weight, but for the bias."""
        query = np.concatenate([self.query * np.float32(self.scale), -self.log_sum_exp[:, :, None]], axis=2)
        ones = np.ones((*self.key.shape[:2], 1), dtype=np.float32)
        return query, np.ascontiguousarray(np.concatenate([self.key, ones], axis=2).swapaxes(1, 2))

    def keys_of(self, head: int) -> Float32[np.ndarray, "key d_head"]:
        """The keys of a head, which it may share with others."""
        keys: Float32[np.ndarray, "key d_head"] = self.key[head * len(self.key) // len(self.query)]
        return keys

    def _of_head(self, head: int) -> tuple[Float32[np.ndarray, "query d"], Float32[np.ndarray, "d key"]]:
        query, key = self._sides
        return query[head], key[head * len(key) // len(query)]

    def rows(self, head: int, queries: Queries) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries. Raises InvalidRecord where they are no distribution."""
        return self.summed(head, queries).rows

    def summed(self, head: int, queries: Queries) -> SummedRows:
        """The same with their sums and entropies: the logarithms are at hand."""
        found = self._exponentials(head, queries)
        apart = np.abs(found.sums - 1)
        if not apart.max() <= ROW_SUM_TOLERANCE:
            raise InvalidRecord("its rows do not sum to 1", hint="q, k and log-sum-exp do not fit.")
        if not (apart > EXACT).any():
            return found
        divided = np.where(apart > EXACT, found.sums, 1)
        rows = found.rows
        rows /= divided.astype(np.float32)[:, None]
        return SummedRows(rows, found.sums / divided, found.entropies / divided + np.log(divided))

    def alike(self, n_allowed: Int[np.ndarray, " query"]) -> Factors:
        """One head whose queries attend alike to all keys that they may attend to, so many of each."""
        query, key = (np.zeros((1, each.shape[1], 1), dtype=np.float32) for each in (self.query, self.key))
        return replace(self, query=query, key=key, log_sum_exp=np.log(n_allowed, dtype=np.float32)[None], bias=None)

    def _exponentials(self, head: int, queries: Queries) -> SummedRows:
        """Weights as they come; a stretch of keys at a time: the cache holds it.

        Where all that is added is one number, as it is far from the diagonal, it joins the log-sum-exp.
        """
        query, key = self._of_head(head)
        n_keys, places, added = key.shape[1], np.arange(len(query))[queries], self._added_of(head)
        exp, unit = exponential(self.query.shape[0] * len(query) * n_keys)
        query = query[places] * unit
        minus_log_sum_exp = query[:, -1].copy()
        weights = np.empty((len(query), n_keys), dtype=np.float32)
        logs = np.empty((len(query), min(n_keys, KEYS_AT_ONCE)), dtype=np.float32)
        sums, entropies = np.zeros(len(query)), np.zeros(len(query))
        for start in range(0, n_keys, KEYS_AT_ONCE):
            keys = slice(start, min(start + KEYS_AT_ONCE, n_keys))
            part, of_keys = logs[:, : keys.stop - start], weights[:, keys]
            alike = None if added is None else added.alike(places, keys)
            if alike == NONE:
                of_keys[:] = 0
                continue
            query[:, -1] = minus_log_sum_exp + unit * (alike or 0)
            np.matmul(query, key[:, keys], out=part)
            if added is not None and alike is None:
                part += unit * added.matrix[queries, keys]
            if self.attendable_keys is not None:
                part[:, ~self.attendable_keys[keys]] = NONE
            exp(part, of_keys)
            sums += total(of_keys)
            entropies -= dot(part, of_keys)
        return SummedRows(weights, sums, entropies / unit)

    def tile(
        self, head: int, queries: Int[np.ndarray, " query"], keys: Int[np.ndarray, " key"]
    ) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries on some keys."""
        query, key = self._of_head(head)
        logs: Float32[np.ndarray, "query key"] = query[queries] @ key[:, keys]
        if (added := self._added_of(head)) is not None:
            logs += added.of(queries[:, None], keys)
        if self.attendable_keys is not None:
            logs[:, ~self.attendable_keys[keys]] = NONE
        return np.asarray(np.exp(logs, out=logs))

    def rounded(self) -> Factors:
        """With q and k as float16 holds them, and the log-sum-exp of those. Raises InvalidRecord where it cannot."""
        with np.errstate(over="ignore"):  # it is told below
            query, key = (side.astype(np.float16).astype(np.float32) for side in (self.query, self.key))
        if np.array_equal(query, self.query) and np.array_equal(key, self.key):
            return self
        if not (np.isfinite(query).all() and np.isfinite(key).all()):
            raise InvalidRecord("q or k are larger than float16 holds", hint="Leave out half.")
        found = replace(self, query=query, key=key)
        n_heads, n_queries, _ = query.shape
        sums = np.empty((n_heads, n_queries))
        step = max(1, CELLS_AT_ONCE // key.shape[1])
        for head, start in product(range(n_heads), range(0, n_queries, step)):
            queries = slice(start, start + step)
            sums[head, queries] = found._exponentials(head, queries).sums
        return replace(found, log_sum_exp=(self.log_sum_exp + np.log(sums)).astype(np.float32))

    def cells(
        self, head: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, " cell"]:
        """The weights of single pairs of a query and a key."""
        query, key = self._of_head(head)
        logarithms: Float32[np.ndarray, " cell"] = np.einsum("cd,dc->c", query[queries], key[:, keys])
        if (added := self._added_of(head)) is not None:
            logarithms += added.of(queries, keys)
        if self.attendable_keys is not None:
            logarithms[~self.attendable_keys[keys]] = NONE
        return np.asarray(np.exp(logarithms))


@dataclass(frozen=True, eq=False, repr=False)
class FactoredMaps(AttentionMaps):
    """A record that holds what its weights are worked out from, a block of rows at a time (see `AttentionMaps.rows`).

    `weights` and `attendable` are worked out when they are asked for. Raises TooLarge there for more than MAX_CELLS.
    """

    weights: Weights = field(init=False)
    attendable: Attendable = field(init=False)
    factors: tuple[Factors, ...] = field(kw_only=True)

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

    def rows(self, layer: int, head: int, queries: Queries) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries; `layer` is a place in the record."""
        return self.summed(layer, head, queries).rows

    def summed(self, layer: int, head: int, queries: Queries) -> SummedRows:
        """`rows` with their sums and entropies."""
        try:
            return self.factors[layer].summed(head, queries)
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

    @property
    def n_bytes(self) -> int:
        """What the record holds for its weights."""
        return sum(each.nbytes for of in self.factors for each in (of.query, of.key, of.log_sum_exp))

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
