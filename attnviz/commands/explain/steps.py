"""One head at work for one query: which keys have a row of their own, and its scores and weights as a table.

Knows records and reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attnviz.records.attention_trace import AttentionTrace, Head
from attnviz.report import Column, Row, Table
from attnviz.views.tables import find_largest
from attnviz.views.tokens import name_token
from attnviz.views.translate import say
from attnviz.words import Language

DIGITS = 4  # after the point


@dataclass(frozen=True, eq=False)
class Steps:
    """One head of a trace. Of long texts the `top_k` keys of largest weight have rows of their own."""

    trace: AttentionTrace
    head: Head
    top_k: int
    language: Language = "en"  # of rows that are no token

    @cached_property
    def listed(self) -> list[int]:
        """Positions, in order; a row that stands for one key only would save nothing."""
        n_keys = len(self.trace.tokens)
        if n_keys <= self.top_k + 1:
            return list(range(n_keys))
        return sorted(find_largest(self.head.weights, np.flatnonzero(self.trace.attendable), self.top_k))

    @cached_property
    def others(self) -> list[int]:
        """The keys that are not written out."""
        return sorted(set(range(len(self.trace.tokens))) - set(self.listed))

    def sum_others(self, values: np.ndarray) -> np.ndarray:
        """Return the sum over the keys that are not written out."""
        return np.asarray(values[self.others].sum(axis=0))

    @property
    def after_mask(self) -> np.ndarray:
        """The scaled scores; -∞ where the query may not attend."""
        return np.where(self.trace.attendable, self.head.scaled, -np.inf)

    def tabulate(self, name: str, title: str) -> Table:
        """Show how scores become weights: a row for each key that is listed, one for the rest, and the sum over all."""
        head, n_keys = self.head, len(self.trace.tokens)
        scores = {"q⋅k": head.scores} | ({} if head.position is None else {"b": head.position}) | {"s": self.after_mask}
        summed = {f"exp(s{' - largest' * bool(head.shift)})": head.exponentials, "weight": head.weights}
        rows: list[Row] = [
            (name_token(self.trace.tokens, key), *(float(values[key]) for values in (scores | summed).values()))
            for key in self.listed
        ]

        def add(said: str, sums: Sequence[float]) -> None:
            rows.append((say(said, self.language), *["…"] * len(scores), *sums))

        if self.others:
            add(f"… {len(self.others)} other keys, sum", [float(self.sum_others(each)) for each in summed.values()])
        add(f"sum over {n_keys} key{'s' * (n_keys > 1)}", [float(each.sum()) for each in summed.values()])
        columns = (Column("key"), *(Column(header, digits=DIGITS) for header in scores | summed))
        return Table(name, title, "facts", columns, tuple(rows))
