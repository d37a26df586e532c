"""When several heads help: what was measured of the models that come with attnviz, and of the study of capacity."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from attnviz.models.built_in import SHIPPED
from attnviz.numbers.intervals import Interval, compute_seed_interval
from attnviz.records.training_metrics import Metrics, TestMetrics
from attnviz.running.metrics import NAME, load_metrics

HEADS = (1, 2, 4, 8)
CAPACITY = "capacity.json"  # from docs/studies/capacity.json, which tests hold it against


def describe_reviews() -> list[dict[str, Any]]:
    """Return, for each number of heads, what its card says of hidden words and of reviews not learned from."""
    found, first = [], None
    for heads in HEADS:
        folder = SHIPPED / ("single" if heads == 1 else f"multi-{heads}")
        metrics = load_metrics(folder) if (folder / NAME).is_file() else None
        if metrics is not None and metrics.tested is not None:
            first = first or metrics.tested
            found.append({"heads": heads, **_describe(metrics, first, metrics.tested)})
    return found


def _describe(metrics: Metrics, first: TestMetrics, tested: TestMetrics) -> dict[str, Any]:
    """Describe what was tested, and how much more than of the first is right, seed by seed, with its interval.

    Overlap of two intervals does not say the latter.
    """
    change = None
    if (first.data, first.seeds) == (tested.data, tested.seeds) and len(first.seeds) > 1:
        pairs = zip(first.accuracies, tested.accuracies, strict=True)
        change = _list_interval(compute_seed_interval([after - before for before, after in pairs]))
    uniform = next((cost.seeds for cost in tested.costs if cost.what == "every key alike"), None)
    return {
        "nTexts": tested.n_texts,
        "nSeeds": len(tested.seeds),
        "accuracy": _list_interval(tested.mean),
        "loss": metrics.history.masked_word_loss,
        "cost": None if uniform is None else _list_interval(uniform),
        "change": change,
    }


def _list_interval(interval: Interval) -> list[float]:
    return [interval.value, interval.low, interval.high]


def describe_capacity() -> dict[str, Any]:
    """Return the shares of sequences that are recalled whole, by items and heads, and what noise halves them."""
    found: dict[str, Any] = json.loads(files("attnviz.commands.lesson").joinpath(CAPACITY).read_bytes())
    return found
