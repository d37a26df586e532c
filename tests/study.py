"""The study of capacity: its script as a module, and its results as the tables of docs/heads.md."""

import json
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from attnviz.table.intervals import Interval, t_quantile
from tests.process import ROOT

STUDIES = ROOT / "docs/studies"
COLUMNS = ("network", "parameters", "steps", "learning rates: all right", "all 8 right", "halved by noise of")


@cache
def study(name: str = "capacity") -> Any:
    """A script of docs/studies as a module."""
    sys.path.insert(0, str(STUDIES))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)


@cache
def results() -> dict[str, Any]:
    """Of each kind of network, by its slug."""
    found: dict[str, Any] = json.loads((STUDIES / "capacity.json").read_bytes())
    return found


def compute_seed_interval(values: Sequence[float]) -> Interval:
    """Return the mean of two runs or more with its 95 % interval by Student's t: what other seeds of training give."""
    mean, half = fmean(values), t_quantile(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def interval(shares: Sequence[float]) -> tuple[float, float, float]:
    """The mean over networks, and its 95 % interval by Student's t."""
    found = compute_seed_interval(shares)
    return found.value, max(0.0, found.low), min(1.0, found.high)


def share(kind: Any) -> str:
    """Of sequences, all items right."""
    mean, low, high = (f"{each:.3f}" for each in interval(results()[kind.slug]["all_right"]))
    return mean + (f" ({low} to {high})" if low < high else "")


def by_heads() -> str:
    """Every number of heads with every number of items, at equal steps."""
    found = study()
    rows = [[f"{items}", *(share(found.GRID[heads, items]) for heads in found.HEADS)] for items in found.ITEMS]
    return _table(["items", *(found.name(found.GRID[heads, 8]) for heads in found.HEADS)], rows)


def networks() -> str:
    """What all of 8 items are recalled by."""
    return _table(COLUMNS, map(_network, study().NETWORKS))


def _network(kind: Any) -> list[str]:
    found = results()[kind.slug]
    tried = {f"{rate}: {right:.2f}": float(rate) == found["rate"] for rate, right in found["tried"].items()}
    rates = ", ".join(f"**{each}**" if best else each for each, best in tried.items())
    steps, halving = f"{fmean(found['steps']):,.0f}", f"{study().halving(found):.2f}"
    return [study().name(kind), f"{found['parameters']:,}", steps, rates, share(kind), halving]


def layers() -> str:
    """Attention and other layers, by how far one item is away."""
    rows = [
        [layer, *(f"{share(kind)} after {fmean(results()[kind.slug]['steps']):,.0f}" for kind in kinds)]
        for layer, kinds in study().FAR.items()
    ]
    return _table(["layer", *(f"{length} tokens" for length in study().LENGTHS)], rows)


def _table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (columns, ["---"] * len(columns), *rows))
