"""Made-up comparisons that tests share, with numbers that a reader can check by hand."""

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from attnviz.commands.compare.comparison import KEYS, ComparedModel, Comparison
from attnviz.measures import choose_measures
from attnviz.records.answers import AnswerInfo, Prediction, TestMetrics
from attnviz.table.intervals import t_quantile
from attnviz.table.numbers import Numbers, stack
from tests.study import compute_seed_interval

LABELS = ("negative", "positive")
N_TEXTS = 20


class Made(NamedTuple):
    """A model, and its rows of the table."""

    model: ComparedModel
    rows: list[dict[str, object]]


def around(mean: float, half: float) -> list[float]:
    """Numbers of 20 texts whose mean has an interval of ± half."""
    apart = half * sqrt(N_TEXTS - 1) / t_quantile(N_TEXTS - 1)
    return [mean - apart, mean + apart] * (N_TEXTS // 2)


def model(
    name: str = "single",
    n_heads: int = 1,
    *,
    keys: Sequence[float] = (10.0,),
    right: Sequence[int] = (),
    tested: TestMetrics | None = None,
    d_model: int = 32,
    n_tokens: float = 200.0,
) -> Made:
    """Every head attends to `keys` effective keys, one number a text; `right` says which texts the model gets."""
    told = [(0.25, 0.75) if is_right else (0.75, 0.25) for is_right in right]
    made = ComparedModel(
        name=name,
        status="trained, weights sha256 feedbeef…",
        trained=True,
        layer_numbers=(0,),
        n_heads=n_heads,
        d_model=d_model,
        n_parameters=2_750_018,
        n_attention_parameters=4 * (d_model**2 + d_model),
        answers=AnswerInfo.from_training(LABELS) if right else None,
        predictions=tuple(Prediction(f"text {i}", each, 1, 20, 20) for i, each in enumerate(told)),
        tested=tested,
    )
    rows: list[dict[str, object]] = []
    for text, number in enumerate(keys):
        is_right = float(right[text]) if right else None
        rows.append({"text": text, "model": name, "tokens": n_tokens, "right": is_right})
        at = {"text": text, "model": name, "layer": 0}
        rows.append(at | {"vendi_score": float(n_heads), "divergence_from_mean": 0.05 if n_heads > 1 else 0.0})
        found = {"effective_keys": number, "entropy": log(number)}
        rows += [at | {"head": head, **found} for head in range(n_heads)]
    return Made(made, rows)


def card(*accuracies: float) -> TestMetrics:
    """Of as many seeds of training, from 0."""
    return TestMetrics(
        "imdb test", 12_500, tuple(range(len(accuracies))), accuracies, compute_seed_interval(accuracies)
    )


def comparison(*models: Made, divergences: np.ndarray | None = None, merged: bool = False) -> Comparison:
    """Of texts of 200 tokens."""
    chance = {"effective_keys": 200.0, "entropy": log(200), "tokens": 200, "in_text": 200}
    n_texts = len({row["text"] for row in models[0].rows})
    rows = [{"text": text, **chance} for text in range(n_texts)]
    return Comparison(
        models=tuple(each.model for each in models),
        texts="imdb test[:500]",
        numbers=stack([Numbers.from_rows([*rows, *(row for each in models for row in each.rows)], KEYS)]),
        asked=choose_measures(["effective_keys,entropy,vendi_score,divergence_from_mean,to_sink"]),
        merged=merged,
        divergences=divergences,
    )
