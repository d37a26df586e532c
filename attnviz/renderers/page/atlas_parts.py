"""The heads of an atlas as a page holds them: JSON that is deflated. Knows `report` only."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from math import isfinite
from typing import Any

from attnviz.report import Atlas

DIGITS, PLACES = 3, 5  # of each number
EXACTNESS = (
    f"Numbers of heads are stored with {DIGITS} digits, and with {PLACES} places at most. texts-*.parquet has all of "
    "them, text by text."
)


def pack_atlas(atlas: Atlas) -> bytes:
    """Return the JSON of an atlas, deflated, as base64."""
    written = json.dumps(_round(atlas), allow_nan=False, separators=(",", ":")).encode("ascii")
    return b64encode(zlib.compress(written, 9))


def _round(value: Any) -> Any:
    """Return the same with a few digits of each number; None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {name: _round(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_round, value)]
    if not isinstance(value, float):
        return value
    return round(float(f"{value:.{DIGITS}g}"), PLACES) if isfinite(value) else None
