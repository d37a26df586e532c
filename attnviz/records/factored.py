"""Records of texts whose weights are too many to hold: what each weight is worked out from. Knows numpy and records."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int

from attnviz.errors import InvalidRecord, TooLarge
from attnviz.records import AttentionMaps
from attnviz.records.factors import EVERYWHERE, N_PROBES, Factors
from attnviz.records.walk import Heads, Queries, WalkedRows
from attnviz.shapes import Attendable, RealQueries, Weights

MAX_CELLS = 2**28  # weights that are worked out at once for a caller who wants all: 1 GiB


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
        n_heads = len(self.factors[0].query)
        expected = (n_heads, len(self.queries)), len(self.keys)
        for factors in self.factors:
            if (factors.query.shape[:2], factors.key.shape[1]) != expected:
                raise InvalidRecord(
                    f"q and k of shapes {factors.query.shape} and {factors.key.shape} do not fit "
                    f"{len(self.queries)} queries and {len(self.keys)} keys"
                )
        if self.sink is not None or self.grid is not None:
            raise InvalidRecord("a record of factors cannot hold a sink or a grid of patches")
        self._check_numbers(len(self.factors), n_heads)
        probes = np.unique(np.linspace(0, len(self.queries) - 1, N_PROBES).astype(int))
        for layer, head in product(range(self.n_layers), range(self.n_heads)):
            if self.factors[layer].log_sum_exp is not None:
                self.rows(layer, head, probes)  # other rows are checked when they are read

    def __getattr__(self, name: str) -> Any:
        """Work out `weights` or `attendable` when first asked for, and keep them."""
        if name not in ("weights", "attendable"):
            raise AttributeError(name)
        n_cells = self.n_layers * self.n_heads * len(self.queries) * len(self.keys)
        if n_cells > MAX_CELLS:
            raise TooLarge(
                f"{n_cells:,} weights are more than the {MAX_CELLS:,} that are worked out at once",
                hint="Read single rows with maps.rows, compute measures, or choose fewer tokens.",
            )
        every = slice(0, len(self.queries))
        if name == "weights":
            whole = np.stack([[of.rows(head, every) for head in range(self.n_heads)] for of in self.factors])
        else:
            alike = self.factors[:1] if self.layers_alike else self.factors
            masks = np.stack([of.read_allowed(every) for of in alike])
            whole = np.broadcast_to(masks, (self.n_layers, len(self.queries), len(self.keys)))
        whole.flags.writeable = False
        object.__setattr__(self, name, whole)
        return whole

    def rows(self, layer: int, heads: Heads, queries: Queries) -> Float32[np.ndarray, "query key"]:
        """Return the weights of some queries of one head; `layer` is a place in the record."""
        assert not isinstance(heads, slice)
        with self._locate_errors(layer, heads):
            return self.factors[layer].rows(heads, queries)

    def walk(self, layer: int, heads: Heads, several: Iterable[Queries]) -> Iterator[WalkedRows]:
        """Walk over one head; see `AttentionMaps.walk`."""
        assert not isinstance(heads, slice)
        with self._locate_errors(layer, heads):
            yield from self.factors[layer].walk(heads, several)

    @contextmanager
    def _locate_errors(self, layer: int, head: int) -> Iterator[None]:
        """Add layer and head to the error of rows that are not valid."""
        try:
            yield
        except InvalidRecord as error:
            place = f"layer {self.layer_numbers[layer]}, head {self.head_numbers[head]}"
            raise InvalidRecord(f"{place}: {error.problem}", hint=error.hint) from error

    def read_cells_of_heads(
        self, layer: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, "head cell"]:
        """Return the weights of single pairs of a query and a key, for each head of a layer."""
        return np.stack([self.factors[layer].cells(head, queries, keys) for head in range(self.n_heads)])

    def read_allowed(self, layer: int, queries: Queries) -> Bool[np.ndarray, "query key"]:
        """Return which keys some queries may attend to in a layer."""
        return self.factors[layer].read_allowed(queries)

    @property
    def heads_at_once(self) -> Sequence[Heads]:
        """Return which heads `walk` is given together: each by itself."""
        return range(self.n_heads)

    def allows_all(self, layer: int) -> bool:
        """Return whether each query may attend to each key in a layer."""
        return self.factors[layer].window == EVERYWHERE and bool(self.factors[layer].keys_mask.all())

    @property
    def n_bytes(self) -> int:
        """Count the bytes that the record holds for its weights."""
        n_sums = self.n_layers * self.n_heads * len(self.queries)
        return sum(each.nbytes for of in self.factors for each in (of.query, of.key)) + 4 * n_sums

    @property
    def layers_alike(self) -> bool:
        """Check whether all layers allow the same attention."""
        first = self.factors[0]
        return all(
            of.window == first.window and np.array_equal(of.keys_mask, first.keys_mask) for of in self.factors[1:]
        )

    @cached_property
    def real_queries(self) -> RealQueries:
        """Return which queries may be attended to in any layer; of another text than the keys all."""
        if not self.self_attention:
            return np.ones(len(self.queries), dtype=bool)
        return np.asarray(np.any([of.keys_mask for of in self.factors], axis=0))
