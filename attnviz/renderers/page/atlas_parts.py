"""The heads of an atlas as a page holds them: numbers with a few digits. Knows `report` only."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

DIGITS, PLACES = 3, 5  # of each number
EXACTNESS = (
    f"Numbers of heads are stored with {DIGITS} digits, and with {PLACES} places at most. texts-*.parquet has all of "
    "them, text by text."
)


def round_atlas(value: Any) -> Any:
    """Return an atlas, or a part of it, with a few digits of each number; None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {name: round_atlas(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [*map(round_atlas, value)]
    if not isinstance(value, float):
        return value
    return round(float(f"{value:.{DIGITS}g}"), PLACES) if isfinite(value) else None
