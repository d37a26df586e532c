"""Vectors and columns of numbers as cells of a table. Knows `report`; no tokens.

Counting is from 0: k_2 is the key of token 2, k_2[0] its first component.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64

from attnviz.report import Cell, Column, Row

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
