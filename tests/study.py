"""The study of capacity: its script as a module."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Any

from tests.process import ROOT

STUDIES = ROOT / "docs/studies"


@cache
def study() -> Any:
    """docs/studies/capacity.py."""
    sys.path.insert(0, str(STUDIES))
    try:
        return import_module("capacity")
    finally:
        sys.path.pop(0)
