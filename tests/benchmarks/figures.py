"""How many CPU seconds figures take, ours beside those that one writes down with seaborn (`tests.benchmarks.naive`).

    python -m tests.benchmarks.figures [path/to/imdb] [--texts 60]

Every head of each text, 12 to 64 tokens, text by text in turns, after one text that is not counted; both ways write
files, and ours writes all heads on one page beside them.
"""

import statistics
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from attnviz.records import AttentionMaps
from attnviz.renderers.figure import files as figure
from attnviz.renderers.figure.plan import plan
from attnviz.report import FigureStyle, Heatmap
from attnviz.specs import FigureOptions, ModelOptions, TextOptions
from attnviz.text import load_corpus
from attnviz.views.heatmap import heatmap_report
from tests.benchmarks import naive
from tests.benchmarks.timing import read_options, seconds
from tests.made import load_encoder

MODEL = "multi:8"
FEWEST, MOST = 12, 64  # tokens
LOOK = FigureStyle(dpi=150)


class Turn(NamedTuple):
    """Seconds that one text took."""

    ours: float
    naive: float


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


def turn(maps: AttentionMaps, folder: Path) -> Turn:
    """One text, both ways."""
    heads = range(maps.n_heads)
    shown = heatmap_report(maps, (), FigureOptions(), (0,), heads)
    head = next(plan(picture, shown, LOOK) for picture in shown.pictures if isinstance(picture, Heatmap))
    tokens = maps.queries.pieces

    def ours() -> None:
        for name, content in figure.png(shown, LOOK):
            (folder / name).write_bytes(content)

    def naive_heads() -> None:
        for each in heads:
            size = head.width, head.height
            naive.draw_head(folder / f"{each}.png", each, maps.weights[0, each], tokens, size, LOOK.dpi)

    return Turn(seconds(ours), seconds(naive_heads))


def spread(values: Sequence[float], unit: str) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:7.2f} {unit} ({low:.2f} to {high:.2f})"


def main() -> None:
    asked = read_options(__doc__, "sample", texts=60)
    warnings.filterwarnings("ignore", message="Glyph ")  # of characters that the naive figures have no font for
    with tempfile.TemporaryDirectory() as name:
        first, *rest = records(asked.data, asked.texts)
        turn(first, Path(name))
        turns = [turn(maps, Path(name)) for maps in (first, *rest)]
    print(f"{asked.texts} texts of {FEWEST} to {MOST} tokens, 8 heads each: median of a text (quartiles), sum")
    for label, column in zip(Turn._fields, zip(*turns, strict=True), strict=True):
        print(f"  {label:16} {spread(column, 's')} {sum(column):8.1f} s")
    ratio = sum(each.naive for each in turns) / sum(each.ours for each in turns)
    print(f"  naive / ours     {spread([each.naive / each.ours for each in turns], '×')} {ratio:8.1f} ×")


if __name__ == "__main__":
    main()
