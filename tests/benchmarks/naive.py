"""Attention maps as one writes them down today, with seaborn and pyplot: what `tests.benchmarks.figures` compares with.

Imports as usual, all labels, the picture fitted by matplotlib. Sizes, resolution and colours are those of our figures,
so that both draw about the same number of pixels.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

Inches = tuple[float, float]


def draw_head(file: Path, head: int, weights: np.ndarray, tokens: Sequence[str], size: Inches, dpi: int) -> None:
    plt.figure(figsize=size)
    sns.heatmap(weights, xticklabels=tokens, yticklabels=tokens, cmap="viridis", vmin=0, vmax=1)
    plt.title(f"head {head}")
    plt.xlabel("key")
    plt.ylabel("query")
    plt.tight_layout()
    plt.savefig(file, dpi=dpi)
    plt.close()


def main(text: str, out: str) -> None:
    """One text's eight heads, beside a command that makes an overview, too (`startup`): TEXT FOLDER."""
    import torch

    tokens, folder = text.lower().split(), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    entries = {token: number for number, token in enumerate(sorted(set(tokens)))}
    states = torch.nn.Embedding(len(entries), 64)(torch.tensor([[entries[token] for token in tokens]]))
    attention = torch.nn.MultiheadAttention(64, 8, batch_first=True)
    with torch.no_grad():
        _, weights = attention(states, states, states, average_attn_weights=False)
    for head, each in enumerate(weights[0].numpy()):
        draw_head(folder / f"head-{head}.png", head, each, tokens, (6.4, 5.4), 150)
        print(f"head {head}: largest weight {each.max():.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
