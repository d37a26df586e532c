"""The steps of one head for one query, with a row per key. Knows records and reports.

Counting is from 0: k_2 is the key of token 2, k_2[0] its first component.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from attnviz.records.attention_trace import AttentionTrace, Head
from attnviz.report import Block, Cell, Column, Note, Row, Section, Table
from attnviz.views.tables import find_largest
from attnviz.views.tokens import name_token

MAX_MASKED = 8  # positions named
DIGITS = 4  # after the point
MAX_COMPONENTS = 5  # of a vector are shown whole; of a longer one the first four and an ellipsis


def count_shown(n_components: int) -> int:
    """Return how many components of a vector are written out."""
    return n_components if n_components <= MAX_COMPONENTS else MAX_COMPONENTS - 1


def component_columns(name: str, n_components: int) -> Iterator[Column]:
    """Yield a column for each component that is shown, and one that says that there are more."""
    yield from (Column(f"{name}[{i}]", digits=DIGITS) for i in range(count_shown(n_components)))
    if count_shown(n_components) < n_components:
        yield Column("…")


def component_rows(vectors: Float64[np.ndarray, "key component"]) -> list[Row]:
    """Return a row of cells for each vector: whole numbers where all of them are, so that they look alike."""
    shown = count_shown(vectors.shape[1])
    rows = np.array([column(vectors[:, :shown].ravel())], dtype=object).reshape(len(vectors), shown).tolist()
    return [(*row, *(("…",) if shown < vectors.shape[1] else ())) for row in rows]


def component_gaps(n_components: int) -> Row:
    """Return as many cells without a number."""
    return tuple("…" for _ in component_columns("", n_components))


def column(values: np.ndarray) -> list[Cell]:
    """Return the values as cells: whole numbers where all of them are."""
    whole = bool((values == np.round(values)).all() and np.isfinite(values).all())
    return [int(value) if whole else drop_zero_sign(value) for value in values.tolist()]


def drop_zero_sign(value: float) -> float:
    """Return 0 for what rounds to it, which then has no sign."""
    return 0.0 if abs(value) < 0.5 * 10**-DIGITS else value


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps 3 to 8 of one head; where its queries, keys and values come from has been said before.

    Of long texts the `top_k` keys of largest weight have rows of their own. `name` tells its tables from those of other
    heads. What a step is for is said if `explains`: of the first head.
    """

    trace: AttentionTrace
    head: Head
    name: str
    top_k: int
    explains: bool = True

    def show_steps(self) -> Iterator[Block]:
        """Show every step, in order."""
        yield from self._show_scores()
        yield from self._show_weights()
        yield from self._show_sum()

    def _explain(self, text: str) -> Iterator[Note]:
        """Say what a step is for, where that is wanted."""
        if self.explains:
            yield Note(text)

    def _show_scores(self) -> Iterator[Block]:
        """Show the keys, and the query above them."""
        yield Section("Step 3: scores, q ⋅ k", 2)
        yield from self._explain("The dot product says how well the query fits each key.")
        scores = zip(component_rows(self.head.keys), column(self.head.scores), strict=True)
        keys = self._table(
            "scores",
            [*component_columns("k", self.head.d_head), Column("q⋅k", digits=DIGITS)],
            [(*key, score) for key, score in scores],
            (*component_gaps(self.head.d_head), "…"),
        )
        (query,) = component_rows(self.head.query[None])
        yield replace(keys, rows=(("the query, q", *query, ""), *keys.rows))

    def _show_weights(self) -> Iterator[Block]:
        """Show how a score becomes a weight: a column for each step."""
        head, shift, position = self.head, self.head.shift, self.head.position
        yield Section("Step 4: scaled scores, s = q ⋅ k / √d_head" + " + b" * (position is not None), 2)
        yield from self._explain(
            "The wider a head, the further its dot products lie apart, and the largest would take nearly all of the "
            "weight. Dividing them by the square root of the width undoes that."
        )
        if position is not None:
            yield from self._explain(
                "b is what this head has learned to add for the distance from the query to the key."
            )
        yield Section("Step 5: mask", 2)
        closed = np.flatnonzero(~self.trace.attendable).tolist()
        named = ", ".join(map(str, closed[:MAX_MASKED])) + (", …" if len(closed) > MAX_MASKED else "")
        keys = f"{'key' if len(closed) == 1 else 'keys'} {named}"
        yield Note(
            f"This query may not attend to {keys}: s becomes -∞ there, so that exp(s) and the weight become 0."
            if closed
            else "This query may attend to every key, so nothing is masked."
        )
        yield Section("Step 6: softmax, a = exp(s) / Σ exp(s)", 2)
        yield from self._explain(
            "The exponential makes scores positive; divided by their sum, they are weights that sum to 1."
        )
        if shift:
            (largest,) = column(np.array([shift]))
            yield Note(
                f"The largest s, {largest if isinstance(largest, int) else f'{largest:.{DIGITS}f}'}, is subtracted "
                "first. That divides all exponentials alike and changes no weight, but keeps them within what a "
                "computer can count."
            )
        after_mask = np.where(self.trace.attendable, head.scaled, -math.inf)
        columns = {"q⋅k": column(head.scores)} | ({} if position is None else {"b": column(position)})
        columns |= {"s": column(head.scaled)} | ({"s after the mask": after_mask.tolist()} if closed else {})
        summed = {"exp(s - largest)" if shift else "exp(s)": head.exponentials, "weight": head.weights}
        gaps, totals = ["…"] * len(columns), [""] * len(columns)
        columns |= {name: values.tolist() for name, values in summed.items()}
        yield self._table(
            "softmax",
            [Column(name, digits=DIGITS) for name in columns],
            list(zip(*columns.values(), strict=True)),
            (*gaps, *(float(self.sum_others(values)) for values in summed.values())),
            (*totals, *(float(values.sum()) for values in summed.values())),
        )

    def _show_sum(self) -> Iterator[Block]:
        """Show the values, and the sum of what their weights leave of them."""
        head = self.head
        yield Section("Step 7: weighted values, a ⋅ v", 2)
        yield from self._explain("What a key has to say, its value v, counts as much as its weight.")
        yield self._table(
            "values",
            [Column("weight", digits=DIGITS), *component_columns("v", head.d_head)],
            [(a, *value) for a, value in zip(head.weights.tolist(), component_rows(head.values), strict=True)],
            (float(self.sum_others(head.weights)), *component_gaps(head.d_head)),
        )
        yield Section("Step 8: their sum, o = Σ a ⋅ v, the output of the head", 2)
        others, everything = component_rows(np.stack([self.sum_others(head.weighted), head.output]))
        columns = list(component_columns("a⋅v", head.d_head))
        yield self._table("sum", columns, component_rows(head.weighted), others, everything)

    # Which keys have a row

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

    def _table(
        self,
        name: str,
        columns: Sequence[Column],
        rows: Sequence[Row],
        others: Row,
        total: Row | None = None,
    ) -> Table:
        """Return a row for each key that is listed, one for the rest together, and the sum over all."""
        n_keys = len(self.trace.tokens)
        shown: list[Row] = [(name_token(self.trace.tokens, key), *rows[key]) for key in self.listed]
        if self.others:
            shown.append(
                (f"… {len(self.others)} other keys, sum" if total else f"… {len(self.others)} other keys", *others)
            )
        if total:
            shown.append((f"sum over {n_keys} keys" if n_keys > 1 else "sum over 1 key", *total))
        return Table(f"{self.name}-{name}", "", "facts", (Column("key"), *columns), tuple(shown))
