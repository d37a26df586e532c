"""Numbers and vectors in the writing of mathematics, for a terminal and for LaTeX alike. Knows `report`; no tokens.

Counting is from 0: k_2 is the key of token 2, k_2[0] its first component.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from attnviz.report import Cell, Column, Formula, Row

DIGITS = 4  # after the point
MAX_COMPONENTS = 5  # of a vector are shown whole; of a longer one the first four and an ellipsis


@dataclass(frozen=True)
class Expression:
    """One expression, twice."""

    plain: str
    latex: str

    def __add__(self, other: Expression) -> Expression:
        return Expression(self.plain + other.plain, self.latex + other.latex)


def signs(plain: str, latex: str | None = None) -> Expression:
    """Write symbols, in LaTeX the same unless given."""
    return Expression(plain, plain if latex is None else latex)


def formula(*lines: Expression) -> Formula:
    """Return a display of one line, or of several below each other."""
    if len(lines) == 1:
        return Formula(lines[0].plain, lines[0].latex)
    rows = " \\\\\n".join(f"& {line.latex}" for line in lines)
    return Formula("\n".join(line.plain for line in lines), f"\\begin{{aligned}}\n{rows}\n\\end{{aligned}}")


def number(value: float) -> Expression:
    """Write a whole number as one, any other with four digits after the point."""
    return signs(_format_number(value))


def factor(value: float) -> Expression:
    """Write a number within a product: brackets keep a minus sign off the sign before it."""
    written = _format_number(value)
    return signs(f"({written})" if written.startswith("-") else written)


def vector(values: np.ndarray) -> Expression:
    """Write a vector as "(1, 0, 2)", or a longer one as "(0.1210, -0.3302, 1.2000, 0.0310, …)"."""
    whole = bool((values == np.round(values)).all())
    write = _format_number if whole else _round
    numbers = [write(value) for value in values[: count_shown(len(values))].tolist()]
    more = len(numbers) < len(values)
    return Expression(
        f"({', '.join([*numbers, '…'] if more else numbers)})",
        f"({', '.join([*numbers, chr(92) + 'dots'] if more else numbers)})",
    )


def dot(left: np.ndarray, right: np.ndarray) -> Expression:
    """Write a dot product as "1 × 2 + 0 × (-1)", or its first four products and an ellipsis."""
    shown = count_shown(len(left))
    pairs = list(zip(left[:shown].tolist(), right[:shown].tolist(), strict=True))
    products = [factor(a) + signs(" × ", r" \cdot ") + factor(b) for a, b in pairs]
    if shown < len(left):
        products.append(signs("…", r"\dots"))
    return join(products, signs(" + "))


def fraction(above: Expression, below: Expression) -> Expression:
    """Write one quantity over another."""
    return Expression(f"{above.plain} / {below.plain}", rf"\frac{{{above.latex}}}{{{below.latex}}}")


def join(parts: Sequence[Expression], between: Expression) -> Expression:
    """Write parts with something between them."""
    total = parts[0]
    for part in parts[1:]:
        total = total + between + part
    return total


def shape(*sizes: int) -> Expression:
    """Write a shape as "[6 × 4]"."""
    return signs("[" + " × ".join(map(str, sizes)) + "]", "[" + r" \times ".join(map(str, sizes)) + "]")


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


def _format_number(value: float) -> str:
    return str(int(value)) if value == round(value) else _round(value)


def _round(value: float) -> str:
    return f"{drop_zero_sign(value):.{DIGITS}f}"
