"""Made-up comparisons that tests share, with numbers that a reader can check by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnviz.comparison import Compared, Comparison, Cost, Difference, Measured
from attnviz.outcomes import Estimate, Prediction, Tested

LABELS = ("negative", "positive")


def model(
    name: str = "single",
    n_heads: int = 1,
    *,
    keys: Sequence[float] = (10.0,),
    distinct: Sequence[float] = (),
    right: Sequence[int] = (),
    tested: Tested | None = None,
    d_model: int = 32,
    seconds: float | None = 0.002,
    trained: bool = True,
) -> Compared:
    """One layer. Every head attends to `keys` effective keys, one number a text; `right` says which texts it gets."""
    n_texts = len(keys)
    per_head = np.tile(np.array(keys)[:, None, None], (1, 1, n_heads))
    found = np.array(distinct or [float(n_heads)] * n_texts)[:, None]
    gold = [1] * n_texts
    said = [(0.25, 0.75) if is_right else (0.75, 0.25) for is_right in right]
    return Compared(
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
        per_layer={"distinct_heads": found, "resolution_lost": np.full((n_texts, 1), 0.05 if n_heads > 1 else 0.0)},
        predictions=tuple(Prediction(f"text {i}", each, gold[i], 20, 20) for i, each in enumerate(said)),
        tested=tested,
        seconds=seconds,
    )


def card(mean: float, low: float, high: float) -> Tested:
    return Tested("imdb test", 12_500, (0, 1, 2), (mean, mean, mean), Estimate(mean, low, high), 4)


def comparison(
    *models: Compared,
    differences: Sequence[Difference] = (),
    right: Sequence[Difference] = (),
    divergences: np.ndarray | None = None,
    texts: str = "imdb test[:500]",
    merged: bool = False,
) -> Comparison:
    """`differences` in effective keys; in every other measure there are as many, of 0."""
    n_texts = len(models[0].per_text("effective_keys"))
    nothing = (Difference(0.0),) * (len(models) - 1)
    given = tuple(differences) or tuple(
        Difference(float((other.per_text("effective_keys") - models[0].per_text("effective_keys")).mean()))
        for other in models[1:]
    )
    return Comparison(
        models=models,
        texts=texts,
        n_tokens=np.full(n_texts, 200),
        n_in_text=np.full(n_texts, 200),
        merged=merged,
        measures=(
            Measured("effective_keys", "keys", together=False),
            Measured("entropy", "nats", together=False),
            Measured("distinct_heads", "heads", together=True),
            Measured("resolution_lost", "nats", together=True),
        ),
        uniform={"effective_keys": np.full(n_texts, 200.0), "entropy": np.full(n_texts, np.log(200))},
        differences={
            "effective_keys": given,
            "entropy": nothing,
            "distinct_heads": nothing,
            "resolution_lost": nothing,
        },
        right=tuple(right),
        labels=LABELS,
        divergences=divergences,
    )
