"""A layer's q and k before the sums of its rows are known. Knows numpy and records of factors."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float32

from attnviz.records.factored import Factors
from attnviz.records.head_walk import Walk
from attnviz.records.walk import Queries, WalkedRows, for_each, stretches


@dataclass(frozen=True, eq=False)
class UnsummedFactors(Factors):
    """Factors of a layer whose log-sum-exp nobody has worked out yet: the first walk over its weights finds it.

    What asks for it before makes that walk.
    """

    log_sum_exp: Float32[np.ndarray, "_head _query"] = field(init=False)
    _found: Float32[np.ndarray, "_head _query"] = field(init=False)  # by walks; NaN where none came by

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_found", np.full(self.query.shape[:2], np.nan, dtype=np.float32))

    def __getattr__(self, name: str) -> Any:
        """Only what is not there yet."""
        if name != "log_sum_exp":
            raise AttributeError(name)
        n_heads, n_queries, _ = self.query.shape
        n_keys = self.key.shape[1]
        several = list(stretches(np.arange(n_queries), n_keys))
        for_each(lambda head: self._walk_all(head, several), range(n_heads), n_queries * n_keys)
        object.__setattr__(self, name, self._found)
        return self._found

    def _walk_all(self, head: int, several: Sequence[Queries]) -> None:
        if np.isnan(self._found[head]).any():
            deque(self.walk(head, several), maxlen=0)

    @property
    def summed(self) -> bool:
        """Whether the log-sum-exp is known without a walk over all weights."""
        return "log_sum_exp" in vars(self)

    def known(self) -> Factors:
        """The same, its log-sum-exp held."""
        return Factors(self.query, self.key, self.log_sum_exp, self.scale, self.bias, self.window, self.attendable_keys)

    def walk(self, head: int, several: Iterable[Queries]) -> Iterator[WalkedRows]:
        """See `AttentionMaps.walk`. It writes down what it finds."""
        found = self._found[head]
        return map(Walk(self.sides(head), found, known=not np.isnan(found).any()).rows, several)
