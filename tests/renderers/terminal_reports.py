"""Reports for tests of the terminal, and how they look there."""

from __future__ import annotations

import re

import numpy as np

from attnviz.renderers.terminal.show import Screen, render
from attnviz.report import Report
from attnviz.specs import TableKind
from tests.made import record, report

SHOWN: tuple[TableKind, ...] = ("answer", "heads", "heatmap", "top", "full")
SGR = re.compile(r"\x1b\[[0-9;]*m")


def shown(kind: TableKind, width: int = 80, of: Report | None = None, **screen: object) -> str:
    return render(of or report(), kind, Screen(width, **screen))  # type: ignore[arg-type]


def last(text: str) -> list[str]:
    """The lines of the last map, where there is one head and there are no notes: its numbers stand below it, in one or
    several tables.
    """
    blocks = SGR.sub("", text).split("\n\n")
    n_tables = max(1, sum("layer  head" in block for block in blocks))
    return blocks[-1 - n_tables].splitlines()


def words(text: str) -> str:
    return " ".join(text.split())


def uneven(n: int, *, causal: bool = False) -> Report:
    """Every weight has three digits of its own, so that one cannot stand for another."""
    weights = np.arange(1.0, n * n + 1).reshape(1, 1, n, n) ** 1.5
    attendable = np.tri(n, dtype=bool) if causal else np.ones((n, n), dtype=bool)
    weights = np.where(attendable, weights, 0)
    return report(record(weights / weights.sum(axis=-1, keepdims=True), attendable=attendable))
