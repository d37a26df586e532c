"""A few pictures as they ought to look.

After a change that is meant: pytest -W default --mpl-generate-path=tests/baseline
"""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.report import FigureStyle, Heatmap
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


@pytest.mark.mpl_image_compare
def test_head() -> Picture:
    return Picture(report(heatmap(12), scale=LIFT))


@pytest.mark.mpl_image_compare
def test_overview() -> Picture:
    return Picture(report(panels(9), scale=LIFT))


@pytest.mark.mpl_image_compare
def test_causal_with_numbers() -> Picture:
    return Picture(report(heatmap(8, causal=True), scale=LIFT), FigureStyle(dpi=100, annotate=True))


@pytest.mark.mpl_image_compare
def test_scripts() -> Picture:
    return Picture(report(labelled(SCRIPTS), title="注意力 مرحبا 👩\u200d🚀 $x$"))


@pytest.mark.mpl_image_compare
def test_log_and_thinned() -> Picture:
    weights, allowed = softmax(100, 100, seed=2)
    weights[0, :, 3] = 0
    names = tuple(f"token{position}" for position in range(100))
    return Picture(report(Heatmap("a", "zeros in column 3", np.asarray(weights[0]), allowed, names, names), scale=LOG))


@pytest.mark.mpl_image_compare
def test_difference() -> Picture:
    return Picture(report(difference(10), title="what multi:8 adds to single"), FigureStyle(dpi=100, annotate=True))


@pytest.mark.mpl_image_compare
def test_query_head_by_head() -> Picture:
    weights, allowed = softmax(9, 48, seed=3)
    names = ("single · 0", *(f"multi:8 · {head}" for head in range(8)))
    return Picture(
        report(Heatmap("a", "query 5 in every head", weights[0], allowed, names, words(48), "head"), scale=LIFT)
    )


@pytest.mark.mpl_image_compare
def test_distributions() -> Picture:
    charts = (heads(200), heads(20, "entropy", "nats", 0.1))
    return Picture(report(distributions(*charts), title="single and multi:8"))


@pytest.mark.mpl_image_compare
def test_learning_curve() -> Picture:
    return Picture(report(curves(LOSS, ACCURACY), title="learning curve of multi:8"))
