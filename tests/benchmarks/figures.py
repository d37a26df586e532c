"""How many CPU seconds figures take, ours beside those that one writes down with seaborn (`tests.benchmarks.naive`).

    python -m tests.benchmarks.figures [path/to/imdb] [--texts 60]

First one picture of each kind, drawn anew each time, as multiples of one head. Then every head of each text and all
of them on one page, 12 to 64 tokens, text by text in turns, after one text that is not counted; both ways write files.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from attnviz.records import AttentionMaps
from attnviz.renderers.figure import files as figure
from attnviz.renderers.figure.plan import plan
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Report
from attnviz.specs import FigureOptions, ModelOptions, TextOptions
from attnviz.text import load_corpus
from attnviz.views.heatmap import heatmap_report
from tests.benchmarks import naive
from tests.made import load_encoder
from tests.renderers.figure.reports import heatmap, panels, report

MODEL = "multi:8"
FEWEST, MOST = 12, 64  # tokens
LOOK = FigureStyle(dpi=150)
REPEATS = 7
KINDS: dict[str, Heatmap | HeatmapGrid] = {
    "1 head, 64 tokens": heatmap(64),
    "1 head, 12 tokens": heatmap(12),
    "1 head, 256 tokens": heatmap(256),
    "1 head, 512 tokens": heatmap(512),
    "8 heads, 64 tokens": panels(64),
    "144 heads, 64 tokens": panels(64, 144, 12),
}


class Turn(NamedTuple):
    """Seconds that one text took."""

    ours: float
    naive_heads: float
    naive_overview: float


def records(data: str, number: int) -> Iterator[AttentionMaps]:
    """Attention of texts, from the fewest tokens to the most."""
    split = "train" if data != "sample" else "train+test"
    texts = [each.text for each in load_corpus(TextOptions(dataset=data, split=split)).documents][: 20 * number]
    spec = ModelOptions(model=MODEL, max_tokens=MOST)
    model = load_encoder(spec, ())
    long_enough = [text for text in texts if len(model.encode(text).ids) >= FEWEST]
    for place in range(number):
        length = FEWEST + round((MOST - FEWEST) * place / max(1, number - 1))
        yield replace(model, spec=replace(spec, max_tokens=length)).attention(long_enough[place % len(long_enough)])


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def turn(maps: AttentionMaps, folder: Path) -> Turn:
    """One text, both ways."""
    heads = range(maps.n_heads)
    shown = heatmap_report(maps, (), FigureOptions(), (0,), heads)
    overview, head, *_ = (
        plan(picture, shown, LOOK) for picture in shown.pictures if isinstance(picture, Heatmap | HeatmapGrid)
    )
    tokens = maps.queries.pieces

    def ours() -> None:
        for name, content in figure.png(shown, LOOK):
            (folder / name).write_bytes(content)

    def naive_heads() -> None:
        for each in heads:
            size = head.width, head.height
            naive.draw_head(folder / f"{each}.png", each, maps.weights[0, each], tokens, size, LOOK.dpi)

    def naive_overview() -> None:
        size = overview.width, overview.height
        naive.draw_overview(folder / "all.png", maps.weights[0], tokens, size, LOOK.dpi)

    return Turn(seconds(ours), seconds(naive_heads), seconds(naive_overview))


def spread(values: Sequence[float], unit: str) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:7.2f} {unit} ({low:.2f} to {high:.2f})"


def against_naive(data: str, number: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        first, *rest = records(data, number)
        turn(first, Path(name))
        turns = [turn(maps, Path(name)) for maps in (first, *rest)]
    total = Turn(*(sum(times) for times in zip(*turns, strict=True)))
    print(
        f"{number} texts of {FEWEST} to {MOST} tokens, 8 heads each and an overview: median of a text (quartiles), sum"
    )
    for label, column in zip(("ours", "naive, heads", "naive, overview"), zip(*turns, strict=True), strict=True):
        print(f"  {label:16} {spread(column, 's')} {sum(column):8.1f} s")
    without = [each.naive_heads / each.ours for each in turns]
    both = [(each.naive_heads + each.naive_overview) / each.ours for each in turns]
    print(f"  naive / ours     {spread(both, '×')} {(total.naive_heads + total.naive_overview) / total.ours:8.1f} ×")
    print(f"  … of heads only  {spread(without, '×')} {total.naive_heads / total.ours:8.1f} ×")


def kinds() -> None:
    reports: dict[str, Report] = {name: report(picture) for name, picture in KINDS.items()}
    times: dict[str, list[float]] = {name: [] for name in reports}
    for _ in range(REPEATS + 1):
        for name, shown in reports.items():
            times[name].append(seconds(partial(list, figure.png(shown, LOOK))))
    one = statistics.median(times["1 head, 64 tokens"][1:])
    print(f"one picture alone, {REPEATS} times in turns after one that is not counted: median (quartiles)")
    for name, all_times in times.items():
        counted = all_times[1:]
        print(
            f"  {name:20} {spread([1000 * each for each in counted], 'ms')} {statistics.median(counted) / one:6.1f} ×"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="sample")
    parser.add_argument("--texts", type=int, default=60)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore", message="Glyph ")  # of characters that the naive figures have no font for
    kinds()
    against_naive(asked.data, asked.texts)


if __name__ == "__main__":
    main()
