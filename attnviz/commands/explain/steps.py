"""The steps of one head for one query, each with its formula and a row per key. Knows records and reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attnviz.commands.explain import formulas
from attnviz.commands.explain.formulas import (
    DIGITS,
    Expression,
    column,
    component_rows,
    factor,
    fraction,
    number,
    signs,
    vector,
)
from attnviz.records.attention_trace import AttentionTrace, Head
from attnviz.report import Block, Cell, Column, Formula, Note, Row, Section, Table
from attnviz.views.tables import find_largest
from attnviz.views.tokens import name_token

ALL_WRITTEN_OUT = 3  # keys: with more, only that of the largest weight is
MAX_MASKED = 8  # positions named


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
        for step in (
            self._show_scores,
            self._show_scaling,
            self._show_mask,
            self._show_softmax,
            self._show_weighted_values,
            self._show_sum,
        ):
            yield from step()

    def _explain(self, text: str) -> Iterator[Note]:
        """Say what a step is for, where that is wanted."""
        if self.explains:
            yield Note(text)

    def _show_scores(self) -> Iterator[Block]:
        """Show the dot products."""
        yield Section("Step 3: scores, q ⋅ k", 2)
        yield from self._explain("The dot product says how well the query fits each key.")
        yield formulas.formula(
            *(
                _index("q ⋅ k", key, r"q \cdot k")
                + signs(" = ")
                + formulas.dot(self.head.query, self.head.keys[key])
                + signs(" = ")
                + number(self.head.scores[key])
                for key in self.written_out
            )
        )
        yield self._table(
            "scores",
            [*formulas.component_columns("k", self.head.d_head), Column("q⋅k", digits=DIGITS)],
            [(*keys, score) for keys, score in zip(component_rows(self.head.keys), self._scores, strict=True)],
            (*formulas.component_gaps(self.head.d_head), "…"),
        )

    def _show_scaling(self) -> Iterator[Block]:
        """Show the scores divided by the root of the width, with what positions add."""
        width, root = self.head.d_head, math.sqrt(self.head.d_head)
        position = self.head.position
        biases = [()] * len(self.trace.tokens) if position is None else [(bias,) for bias in column(position)]
        yield Section("Step 4: scaled scores, s = q ⋅ k / √d_head" + (" + b" if position is not None else ""), 2)
        yield from self._explain(
            "The wider a head, the further its dot products lie apart, and the largest would take nearly all of the "
            "weight. Dividing them by the square root of the width undoes that."
        )
        if position is not None:
            yield from self._explain(
                "b is what this head has learned to add for the distance from the query to the key."
            )
        yield formulas.formula(
            *(
                _index("s", key)
                + signs(" = ")
                + fraction(number(self.head.scores[key]), signs(f"√{width}", rf"\sqrt{{{width}}}"))
                + (signs("") if position is None else _index(" + b", key))
                + signs(" = ")
                + fraction(number(self.head.scores[key]), number(root))
                + (signs("") if position is None else signs(" + ") + factor(position[key]))
                + signs(" = ")
                + number(self.head.scaled[key])
                for key in self.written_out
            )
        )
        yield self._table(
            "scaled",
            [Column(name, digits=DIGITS) for name in (("q⋅k", "s") if position is None else ("q⋅k", "b", "s"))],
            [
                (score, *bias, scaled)
                for score, bias, scaled in zip(self._scores, biases, column(self.head.scaled), strict=True)
            ],
            ("…",) * (2 if position is None else 3),
        )

    def _show_mask(self) -> Iterator[Block]:
        """Show which scores may be attended to."""
        yield Section("Step 5: mask", 2)
        closed = np.flatnonzero(~self.trace.attendable).tolist()
        if not closed:
            yield Note("This query may attend to every key, so nothing is masked.")
            return
        named = ", ".join(map(str, closed[:MAX_MASKED])) + (", …" if len(closed) > MAX_MASKED else "")
        keys = "key" if len(closed) == 1 else "keys"
        yield Note(
            f"This query may not attend to {keys} {named}: s becomes -∞ there, so that exp(s) and the weight become 0."
        )
        yield self._table(
            "masked",
            [Column("may attend"), Column("s", digits=DIGITS), Column("s after the mask", digits=DIGITS)],
            [
                ("yes" if allowed else "no", s, after)
                for allowed, s, after in zip(
                    self.trace.attendable.tolist(), column(self.head.scaled), self._after_mask, strict=True
                )
            ],
            ("…", "…", "…"),
        )

    def _show_softmax(self) -> Iterator[Block]:
        """Show the weights, from the scores."""
        shift = signs(f" - {factor(self.head.shift).plain}") if self.head.shift else signs("")
        yield Section("Step 6: softmax, a = exp(s) / Σ exp(s)", 2)
        yield from self._explain(
            "The exponential makes scores positive; divided by their sum, they are weights that sum to 1."
        )
        if self.head.shift:
            yield Note(
                f"The largest s, {number(self.head.shift).plain}, is subtracted first. That divides all exponentials "
                "alike and changes no weight, but keeps them within what a computer can count."
            )
        total = _sum_over_keys(signs("exp(s_j", r"\exp(s_j") + shift + signs(")")) + signs(" = ")
        yield formulas.formula(
            total + number(self.head.denominator),
            *(
                _index("a", key)
                + signs(" = ")
                + fraction(
                    signs("exp(", r"\exp(") + number(self.head.scaled[key]) + shift + signs(")"),
                    number(self.head.denominator),
                )
                + signs(" = ")
                + fraction(number(self.head.exponentials[key]), number(self.head.denominator))
                + signs(" = ")
                + number(self.head.weights[key])
                for key in self.written_out
            ),
        )
        exponential = f"exp(s{shift.plain})"
        yield self._table(
            "softmax",
            [Column("s", digits=DIGITS), Column(exponential, digits=DIGITS), Column("weight", digits=DIGITS)],
            list(zip(self._after_mask, self.head.exponentials.tolist(), self.head.weights.tolist(), strict=True)),
            ("…", float(self.sum_others(self.head.exponentials)), float(self.sum_others(self.head.weights))),
            ("", self.head.denominator, float(self.head.weights.sum())),
        )

    def _show_weighted_values(self) -> Iterator[Block]:
        """Show the values times their weights."""
        yield Section("Step 7: weighted values, a ⋅ v", 2)
        yield from self._explain("What a key has to say, its value v, counts as much as its weight.")
        yield formulas.formula(
            *(
                _index("a", key)
                + _index(" v", key)
                + signs(" = ")
                + number(self.head.weights[key])
                + signs(" ⋅ ", r" \cdot ")
                + vector(self.head.values[key])
                + signs(" = ")
                + vector(self.head.weighted[key])
                for key in self.written_out
            )
        )
        yield self._table(
            "values",
            [Column("weight", digits=DIGITS), *formulas.component_columns("v", self.head.d_head)],
            [
                (weight, *value)
                for weight, value in zip(self.head.weights.tolist(), component_rows(self.head.values), strict=True)
            ],
            (float(self.sum_others(self.head.weights)), *formulas.component_gaps(self.head.d_head)),
        )

    def _show_sum(self) -> Iterator[Block]:
        """Show the sum of the weighted values over the keys."""
        yield Section("Step 8: their sum, the output of the head", 2)
        total = _sum_over_keys(signs("a_j v_j")) + signs(" = ")
        yield self._sum_formula(signs("o = ") + total + vector(self.head.output))
        rows = component_rows(self.head.weighted)
        others, everything = component_rows(np.stack([self.sum_others(self.head.weighted), self.head.output]))
        columns = list(formulas.component_columns("a⋅v", self.head.d_head))
        yield self._table("sum", columns, rows, others, everything)

    def _sum_formula(self, whole: Expression) -> Formula:
        """Write out the first component too, where there are few enough keys."""
        if len(self.listed) > ALL_WRITTEN_OUT or self.others:
            return formulas.formula(whole)
        products = [
            number(self.head.weights[key]) + signs(" × ", r" \cdot ") + factor(self.head.values[key, 0])
            for key in self.listed
        ]
        first = signs("o[0] = ") + formulas.join(products, signs(" + ")) + signs(" = ") + number(self.head.output[0])
        return formulas.formula(whole, first)

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

    @property
    def written_out(self) -> list[int]:
        """Keys whose numbers also stand in the formulas."""
        if len(self.listed) <= ALL_WRITTEN_OUT and self.trace.attendable[self.listed].all():
            return self.listed
        return find_largest(self.head.weights, np.flatnonzero(self.trace.attendable), 1)

    @cached_property
    def _scores(self) -> list[Cell]:
        return column(self.head.scores)

    @cached_property
    def _after_mask(self) -> list[Cell]:
        return [
            s if allowed else -math.inf
            for s, allowed in zip(column(self.head.scaled), self.trace.attendable.tolist(), strict=True)
        ]

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


def _index(symbol: str, key: int, latex: str | None = None) -> Expression:
    """Write a symbol with the index of a key, such as "k_2"."""
    return signs(f"{symbol}_{key}", f"{latex or symbol}_{{{key}}}")


def _sum_over_keys(what: Expression) -> Expression:
    return signs("Σ_j ", r"\sum_j ") + what
