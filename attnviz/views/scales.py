"""Ranges of colours, and what stands beside them. Knows records and `report`."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from attnviz.records import AttentionMaps
from attnviz.report import Scale
from attnviz.specs import ScaleKind
from attnviz.views import captions

MAX_LIFT = 16.0  # equal shares: cells that hold more are drawn alike
MAX_KEYS = 64  # keys: with more of them most weights are below 0.016


def lift_scale(what: str = "attention weight", of_shown: bool = False) -> Scale:
    """The same for every text, model and head. `of_shown`: the share is that of the keys which are shown."""
    equal = "an equal share among the keys shown" if of_shown else "an equal share (1/n)"
    return Scale("lift", 1.0, MAX_LIFT, f"{what}, × {equal}")


def scale_over(kind: ScaleKind, high: float, n_keys: int, of_shown: bool = False) -> Scale:
    """One range of colours for all maps; the label says which, so that no picture flatters unnoticed.

    `high` is the largest weight drawn. `log` begins a tenth below the weight of uniform attention, rounded down to a
    power of ten. `auto` is `shared`, and `log` for more than 64 keys, where most weights are too small to be seen.
    """
    if kind == "lift":
        return lift_scale(of_shown=of_shown)
    if kind == "auto":
        kind = "shared" if n_keys <= MAX_KEYS else "log"
    if kind == "fixed":
        return Scale(kind, 0.0, 1.0, "attention weight (fixed scale, 0 to 1)")
    if kind == "shared":
        return Scale(kind, 0.0, high, f"attention weight (shared scale, 0 to {high:.3g})")
    low = min(max(10.0 ** floor(log10(0.1 / n_keys)), 1e-8), 1e-2)
    return Scale(kind, low, 1.0, f"attention weight (logarithmic scale, {low:g} to 1)")


def scales_over(high: float, n_keys: int, of_shown: bool = False) -> tuple[Scale, ...]:
    """What a reader may choose from. See `scale_over`."""
    kinds: tuple[ScaleKind, ...] = ("lift", "fixed", "shared", "log")
    return tuple(scale_over(kind, high, n_keys, of_shown) for kind in kinds)


def rollout_title(several: Sequence[AttentionMaps]) -> str:
    """What the picture of rollout is called."""
    return f"attention rollout through {captions.through(several)} (Abnar & Zuidema 2020)"


def rollout_scale(kind: ScaleKind, high: float, several: Sequence[AttentionMaps], of_shown: bool = False) -> Scale:
    """A scale of its own: these are no weights of attention."""
    what = f"share of the token after {captions.through(several)}"
    return lift_scale(what, of_shown) if kind == "lift" else Scale("shared", 0.0, high, f"{what} (0 to {high:.3g})")
