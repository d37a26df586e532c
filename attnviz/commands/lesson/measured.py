"""When several heads help: what was measured of the models that come with attnviz, and of the study of capacity."""

import json
from importlib.resources import files
from typing import Any

from attnviz.models.built_in import SHIPPED
from attnviz.running.metrics import load_metrics
from attnviz.table.intervals import Interval, compute_seed_interval

HEADS = (1, 2, 4, 8)
CAPACITY = "capacity.json"  # from docs/studies/capacity.json, which tests hold it against


def describe_reviews() -> list[dict[str, Any]]:
    """Return, for each number of heads, what its card says of hidden words and of reviews not learned from.

    "change" is how much more than of one head is right, seed by seed: overlap of two intervals does not say that.
    """
    found: list[dict[str, Any]] = []
    of_one: tuple[float, ...] = ()
    for heads in HEADS:
        metrics = load_metrics(SHIPPED / ("single" if heads == 1 else f"multi-{heads}"))
        tested = metrics.tested
        assert tested is not None
        of_one = of_one or tested.accuracies
        pairs = zip(of_one, tested.accuracies, strict=True)
        (uniform,) = (cost.seeds for cost in tested.costs if cost.what == "every key alike")
        found.append(
            {
                "heads": heads,
                "nTexts": tested.n_texts,
                "nSeeds": len(tested.seeds),
                "accuracy": _list_interval(tested.mean),
                "loss": metrics.history.masked_word_loss,
                "cost": _list_interval(uniform),
                "change": _list_interval(compute_seed_interval([after - before for before, after in pairs])),
            }
        )
    return found


def _list_interval(interval: Interval | None) -> list[float]:
    assert interval is not None
    return [interval.value, interval.low, interval.high]


def describe_capacity() -> dict[str, Any]:
    """Return the shares of sequences that are recalled whole, by items and heads, and what noise halves them."""
    found: dict[str, Any] = json.loads(files("attnviz.commands.lesson").joinpath(CAPACITY).read_bytes())
    return found
