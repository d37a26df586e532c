"""A few pictures as they ought to look.

After a change that is meant: pytest -W default --mpl-generate-path=tests/baseline
"""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.report import FigureStyle, Heatmap, Report
from tests.renderers.figure.reports import (
    ACCURACY,
    LIFT,
    LOG,
    LOSS,
    SCRIPTS,
    Picture,
    curves,
    difference,
    distributions,
    heads,
    heatmap,
    labelled,
    panels,
    report,
    softmax,
    words,
)

NUMBERS = FigureStyle(dpi=100, annotate=True)


def with_zeros(n_tokens: int) -> Heatmap:
    weights, allowed = softmax(n_tokens, n_tokens, seed=2)
    weights[0, :, 3] = 0
    names = tuple(f"token{position}" for position in range(n_tokens))
    return Heatmap("a", "zeros in column 3", np.asarray(weights[0]), allowed, names, names)


def head_by_head() -> Heatmap:
    weights, allowed = softmax(9, 48, seed=3)
    names = ("single · 0", *(f"multi:8 · {head}" for head in range(8)))
    return Heatmap("a", "query 5 in every head", weights[0], allowed, names, words(48), "head")


PICTURES: dict[str, tuple[Report, FigureStyle | None]] = {
    "head": (report(heatmap(12), scale=LIFT), None),
    "overview": (report(panels(9), scale=LIFT), None),
    "causal_with_numbers": (report(heatmap(8, causal=True), scale=LIFT), NUMBERS),
    "scripts": (report(labelled(SCRIPTS), title="注意力 مرحبا 👩\u200d🚀 $x$"), None),
    "log_and_thinned": (report(with_zeros(100), scale=LOG), None),
    "difference": (report(difference(10), title="what multi:8 adds to single"), NUMBERS),
    "query_head_by_head": (report(head_by_head(), scale=LIFT), None),
    "distributions": (
        report(distributions(heads(200), heads(20, "entropy", "nats", 0.1)), title="single and multi:8"),
        None,
    ),
    "learning_curve": (report(curves(LOSS, ACCURACY), title="learning curve of multi:8"), None),
}


@pytest.mark.mpl_image_compare
@pytest.mark.parametrize("name", PICTURES)
def test(name: str) -> Picture:
    """Holds a picture against its baseline, `test_NAME.png`."""
    return Picture(*PICTURES[name])
