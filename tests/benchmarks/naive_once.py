"""One text's eight heads as one writes them down today: beside a command that makes an overview, too (`startup`).

python -m tests.benchmarks.naive_once TEXT FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

from tests.benchmarks.naive import draw_head

D_MODEL, N_HEADS, DPI = 64, 8, 150


def main() -> None:
    tokens, folder = sys.argv[1].lower().split(), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    entries = {token: number for number, token in enumerate(sorted(set(tokens)))}
    states = nn.Embedding(len(entries), D_MODEL)(torch.tensor([[entries[token] for token in tokens]]))
    attention = nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True)
    with torch.no_grad():
        _, weights = attention(states, states, states, average_attn_weights=False)
    maps = weights[0].numpy()
    for head, each in enumerate(maps):
        draw_head(folder / f"head-{head}.png", head, each, tokens, (6.4, 5.4), DPI)
        print(f"head {head}: largest weight {each.max():.3f}")


if __name__ == "__main__":
    main()
