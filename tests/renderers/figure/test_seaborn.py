"""Our cells are those of `seaborn.heatmap`, to the pixel, without its import (and that of pandas)."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize

from attnviz.renderers.figure import draw
from attnviz.renderers.figure.layout import MAX_APART
from attnviz.renderers.figure.plan import plan
from attnviz.report import FigureStyle, Heatmap, Scale
from tests.renderers.figure.reports import (
    FIXED,
    LOG,
    by_matplotlib,
    difference,
    first_map,
    pixels,
    report,
    rgba,
    softmax,
    words,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    seaborn = pytest.importorskip("seaborn")

SHARED = Scale("shared", 0.0, 0.37, "shared")


def draw_with_seaborn(
    axes: Axes, cells: np.ma.MaskedArray, cmap: Colormap, norm: Normalize, opacity: float | None
) -> None:
    assert opacity is None
    limits = {"norm": norm} if isinstance(norm, LogNorm) else {"vmin": norm.vmin, "vmax": norm.vmax}
    plain = {"xticklabels": False, "yticklabels": False, "cbar": False}
    seaborn.heatmap(cells.data, ax=axes, mask=np.ma.getmaskarray(cells), cmap=cmap, **limits, **plain)


@pytest.mark.parametrize("n_tokens", [5, 100])
@pytest.mark.parametrize("scale", [FIXED, SHARED, LOG, None], ids=lambda scale: scale.kind if scale else "difference")
def test_same_pixels(n_tokens: int, scale: Scale | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Painted by us, drawn by us with matplotlib, and drawn by seaborn; between the frames, which differ by a pixel."""
    allowed = np.random.default_rng(1).random((n_tokens, 2 * n_tokens)) > 0.4
    weights, _ = softmax(n_tokens, 2 * n_tokens)
    names = words(n_tokens), words(2 * n_tokens)
    shown = report(
        difference(n_tokens, causal=False) if scale is None else Heatmap("a", "", weights[0], allowed, *names)
    )
    shown, look = replace(shown, scale=scale or FIXED), FigureStyle(dpi=100)
    ours, (drawn,) = pixels(shown, look), by_matplotlib(shown, look)
    monkeypatch.setattr(draw, "draw_mesh", draw_with_seaborn)
    (by_seaborn,) = by_matplotlib(shown, look)
    assert np.array_equal(rgba(drawn), rgba(by_seaborn))
    planned = plan(first_map(shown), shown, look)
    left, top, width, height = (round(part * look.dpi) for part in planned.places[0].box)
    inner = np.s_[top + 1 : top + height - 1, left + 1 : left + width - 1]
    sizes = height // planned.places[0].heatmap.values.shape[0], width // planned.places[0].heatmap.values.shape[1]
    seen = planned.places[0].heatmap.allowed.repeat(sizes[0], 0).repeat(sizes[1], 1)[1:-1, 1:-1]
    if n_tokens <= MAX_APART:  # between cells are seams, which are not where they begin to the pixel
        for place, size in enumerate(sizes):
            within = np.arange(1, size * planned.places[0].heatmap.values.shape[place] - 1) % size
            apart = (within < 2) | (within > size - 2)
            seen &= ~(apart[:, None] if place == 0 else apart)
    assert np.array_equal(ours[inner][seen], rgba(by_seaborn)[inner][..., :3][seen])
