"""Records of texts whose weights are too many to hold: what each weight is worked out from. Knows numpy and records."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int

from attnviz.errors import InvalidRecord, TooLarge
from attnviz.records import ROW_SUM_TOLERANCE, AttentionMaps
from attnviz.shapes import Attendable, RealQueries, Weights

MAX_CELLS = 2**28  # weights that are worked out at once where a caller wants all: 1 GiB
N_PROBES = 16  # queries of each head whose rows are tried when a record is made or read
MAX_SCORE = 1e4  # a score beyond it comes from no model

Queries = slice | Int[np.ndarray, " query"]


@dataclass(frozen=True, eq=False)
class Factors:
    """One layer: A[h, i, j] = exp(scale · q[h, i] · k[g, j] + bias[h, j - i] - log_sum_exp[h, i]).

    g is the group of heads that share keys, h · groups // heads. `bias` has a number for each distance from -D to D,
    of one head or of all; keys farther away have that of the farthest. In a causal layer no query attends to what comes
    later.

    Raises InvalidRecord where sizes do not fit, or a number is none.
    """

    query: Float32[np.ndarray, "_head _query _d_head"]
    key: Float32[np.ndarray, "_group _key _d_head"]
    log_sum_exp: Float32[np.ndarray, "_head _query"]
    scale: float
    bias: Float32[np.ndarray, "_biased _distance"] | None = None
    causal: bool = False

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

    @cached_property
    def _added(self) -> Float32[np.ndarray, "biased distance"] | None:
        """What is added to a score, from the farthest key before a query to the farthest behind; -inf: not allowed."""
        if self.bias is None and not self.causal:
            return None
        bias = np.zeros((1, 1), dtype=np.float32) if self.bias is None else self.bias
        distances = np.arange(1 - self.query.shape[1], self.key.shape[1])
        farthest = bias.shape[1] // 2
        added = bias[:, np.clip(distances, -farthest, farthest) + farthest]
        return np.where(self.causal & (distances > 0), np.float32(-np.inf), added)

    @cached_property
    def _sides(self) -> tuple[Float32[np.ndarray, "head query d"], Float32[np.ndarray, "group d key"]]:
        """(q · scale, -log_sum_exp) and (k, 1): their product is the logarithm of the weight, but for the bias."""
        query = np.concatenate([self.query * np.float32(self.scale), -self.log_sum_exp[:, :, None]], axis=2)
        ones = np.ones((*self.key.shape[:2], 1), dtype=np.float32)
        return query, np.ascontiguousarray(np.concatenate([self.key, ones], axis=2).swapaxes(1, 2))

    def _of_head(self, head: int) -> tuple[Float32[np.ndarray, "query d"], Float32[np.ndarray, "d key"]]:
        query, key = self._sides
        return query[head], key[head * len(key) // len(query)]

    def rows(self, head: int, queries: Queries) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries. Raises InvalidRecord where they are no distribution."""
        query, key = self._of_head(head)
        weights: Float32[np.ndarray, "query key"] = query[queries] @ key
        if self._added is not None:
            line = self._added[head % len(self._added)]
            weights += np.lib.stride_tricks.sliding_window_view(line, key.shape[1])[::-1][queries]
        np.exp(weights, out=weights)
        if not (np.abs(weights.sum(axis=-1) - 1) <= ROW_SUM_TOLERANCE).all():
            raise InvalidRecord(f"rows of head {head} do not sum to 1", hint="q, k and log-sum-exp do not fit.")
        return weights

    def cells(
        self, head: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, " cell"]:
        """The weights of single pairs of a query and a key."""
        query, key = self._of_head(head)
        logarithms: Float32[np.ndarray, " cell"] = np.einsum("cd,dc->c", query[queries], key[:, keys])
        if self._added is not None:
            logarithms += self._added[head % len(self._added)][keys - queries + len(query) - 1]
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
            if (factors.query.shape[:2], factors.key.shape[1]) != expected or factors.causal != self.factors[0].causal:
                raise InvalidRecord(f"factors of {factors.query.shape[1]} tokens do not fit {len(self.queries)}")
        if self.sink is not None or self.grid is not None or not self.self_attention:
            raise InvalidRecord("only a text that attends to itself, without sinks, is recorded by its factors")
        self._check_layer_numbers()
        probes = np.unique(np.linspace(0, len(self.queries) - 1, N_PROBES).astype(int))
        for factors in self.factors:  # all other rows are tried when they are read
            for head in range(self.n_heads):
                factors.rows(head, probes)

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
            whole = np.broadcast_to(self.allowed(0, every), (self.n_layers, len(self.queries), len(self.keys)))
        whole.flags.writeable = False
        object.__setattr__(self, name, whole)
        return whole

    def rows(self, layer: int, head: int, queries: Queries) -> Float32[np.ndarray, "query key"]:
        """The weights of some queries; `layer` is a place in the record."""
        return self.factors[layer].rows(head, queries)

    def cells(
        self, layer: int, head: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, " cell"]:
        """The weights of single pairs of a query and a key."""
        return self.factors[layer].cells(head, queries, keys)

    def allowed(self, layer: int, queries: Queries) -> Bool[np.ndarray, "query key"]:
        """Which keys some queries may attend to in a layer."""
        places = np.arange(len(self.queries))
        return (places[queries, None] >= places) | (not self.factors[layer].causal)

    @property
    def n_layers(self) -> int:
        """How many layers the record holds."""
        return len(self.factors)

    @property
    def n_heads(self) -> int:
        """How many heads each layer has."""
        return len(self.factors[0].query)

    @property
    def layers_alike(self) -> bool:
        """Whether all layers allow the same attention."""
        return True

    @property
    def real_queries(self) -> RealQueries:
        """Every query: no padding is recorded."""
        return np.ones(len(self.queries), dtype=bool)
