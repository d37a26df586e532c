"""Made-up comparisons that tests share, with numbers that a reader can check by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnviz.commands.compare.comparison import Comparison, Cost, MeanDifference, MeasureInfo, ModelComparison
from attnviz.numbers.intervals import compute_seed_interval
from attnviz.records.answers import AnswerInfo
from attnviz.records.training_metrics import Prediction, TestMetrics

LABELS = ("negative", "positive")


def model(
    name: str = "single",
    n_heads: int = 1,
    *,
    keys: Sequence[float] = (10.0,),
    distinct: Sequence[float] = (),
    right: Sequence[int] = (),
    tested: TestMetrics | None = None,
    d_model: int = 32,
    seconds: float | None = 0.002,
    trained: bool = True,
) -> ModelComparison:
    """One layer. Every head attends to `keys` effective keys, one number a text; `right` says which texts it gets."""
    n_texts = len(keys)
    per_head = np.tile(np.array(keys)[:, None, None], (1, 1, n_heads))
    found = np.array(distinct or [float(n_heads)] * n_texts)[:, None]
    gold = [1] * n_texts
    said = [(0.25, 0.75) if is_right else (0.75, 0.25) for is_right in right]
    return ModelComparison(
        name=name,
        status="trained, weights sha256 feedbeef…" if trained else "untrained (random weights, seed 0)",
        trained=trained,
        n_layers=1,
        layer_numbers=(0,),
        n_heads=n_heads,
        d_model=d_model,
        n_parameters=2_750_018,
        n_attention_parameters=4 * (d_model**2 + d_model),
        n_tokens=200.0,
        cost=Cost(1_638_400.0, 5_120_000.0, 160_000.0 * n_heads),
        per_head={"effective_keys": per_head, "entropy": np.log(per_head)},
        per_layer={"vendi_score": found, "divergence_from_mean": np.full((n_texts, 1), 0.05 if n_heads > 1 else 0.0)},
        answers=AnswerInfo.from_training(LABELS) if right else None,
        predictions=tuple(Prediction(f"text {i}", each, gold[i], 20, 20) for i, each in enumerate(said)),
        tested=tested,
        seconds=seconds,
    )


def card(*accuracies: float) -> TestMetrics:
    """Of as many seeds of training, from 0."""
    return TestMetrics(
        "imdb test", 12_500, tuple(range(len(accuracies))), accuracies, compute_seed_interval(accuracies)
    )


def comparison(
    *models: ModelComparison,
    differences: Sequence[MeanDifference] = (),
    right: Sequence[MeanDifference] = (),
    divergences: np.ndarray | None = None,
    texts: str = "imdb test[:500]",
    merged: bool = False,
) -> Comparison:
    """`differences` in effective keys; in every other measure there are as many, of 0."""
    n_texts = len(models[0].per_text("effective_keys"))
    nothing = (MeanDifference(0.0),) * (len(models) - 1)
    given = tuple(differences) or tuple(
        MeanDifference(float((other.per_text("effective_keys") - models[0].per_text("effective_keys")).mean()))
        for other in models[1:]
    )
    return Comparison(
        models=models,
        texts=texts,
        n_tokens=np.full(n_texts, 200),
        n_in_text=np.full(n_texts, 200),
        merged=merged,
        measures=(
            MeasureInfo("effective_keys", "keys", together=False),
            MeasureInfo("entropy", "nats", together=False),
            MeasureInfo("vendi_score", "heads", together=True),
            MeasureInfo("divergence_from_mean", "nats", together=True),
        ),
        uniform={"effective_keys": np.full(n_texts, 200.0), "entropy": np.full(n_texts, np.log(200))},
        differences={
            "effective_keys": given,
            "entropy": nothing,
            "vendi_score": nothing,
            "divergence_from_mean": nothing,
        },
        right=tuple(right),
        divergences=divergences,
    )
