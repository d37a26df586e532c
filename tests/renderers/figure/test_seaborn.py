"""Our cells are those of `seaborn.heatmap`, to the pixel, without its import (and that of pandas)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize

from attnviz.renderers.figure import draw
from attnviz.report import Heatmap, Look, Scale
from tests.renderers.figure.reports import (
    FIXED,
    HOSTILE,
    LOG,
    SCRIPTS,
    by_matplotlib,
    difference,
    labelled,
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


def draw_with_seaborn(axes: Axes, cells: np.ma.MaskedArray, cmap: Colormap, norm: Normalize) -> None:
    limits = {"norm": norm} if isinstance(norm, LogNorm) else {"vmin": norm.vmin, "vmax": norm.vmax}
    plain = {"xticklabels": False, "yticklabels": False, "cbar": False}
    seaborn.heatmap(cells.data, ax=axes, mask=np.ma.getmaskarray(cells), cmap=cmap, **limits, **plain)


def both(shown: Heatmap, scale: Scale, look: Look, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    ours = pixels(report(shown, scale=scale), look)
    monkeypatch.setattr(draw, "draw_mesh", draw_with_seaborn)
    (theirs,) = by_matplotlib(report(shown, scale=scale), look)
    return ours, rgba(theirs)[..., :3]


@pytest.mark.parametrize("n_tokens", [1, 5, 20, 100])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("scale", [FIXED, SHARED, LOG], ids=lambda scale: scale.kind)
def test_same_pixels(n_tokens: int, causal: bool, scale: Scale, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, allowed = softmax(n_tokens, n_tokens, causal=causal, seed=n_tokens)
    names = words(n_tokens)
    ours, theirs = both(Heatmap("a", "", weights[0], allowed, names, names), scale, Look(dpi=100), monkeypatch)
    assert np.array_equal(ours, theirs)


def test_same_pixels_for_any_mask_shape_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, _ = softmax(7, 19)
    allowed = np.random.default_rng(1).random((7, 19)) > 0.4
    ours, theirs = both(
        Heatmap("a", "", weights[0], allowed, words(7), words(19)), FIXED, Look("cividis", 72, True), monkeypatch
    )
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("shown", [difference(9), difference(40, causal=False)])
def test_same_pixels_of_a_difference(shown: Heatmap, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = both(shown, FIXED, Look(dpi=100, annotate=True), monkeypatch)
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("labels", [HOSTILE, SCRIPTS], ids=["hostile", "scripts"])
def test_same_pixels_for_any_token(labels: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = both(labelled(labels), FIXED, Look(dpi=100), monkeypatch)
    assert np.array_equal(ours, theirs)
