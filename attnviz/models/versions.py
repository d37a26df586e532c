"""Which versions a record was made with."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version


@cache
def versions(*packages: str) -> tuple[tuple[str, str], ...]:
    """Of attnviz, numpy, torch and `packages`, by name. To find them takes longer than to attend over a short text."""
    return tuple((package, version(package)) for package in sorted({"attnviz", "numpy", "torch", *packages}))
