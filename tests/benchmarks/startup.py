"""What a command costs before it does anything, and one text's eight heads from nothing to files.

    python -m tests.benchmarks.startup [--rounds 9]

Seconds of processor time of whole processes, the rows in turns: medians and quartiles, and the median as a multiple of
what it is to be compared with. A machine that does other things takes more time for the same work.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.timing import read_options

ROOT = Path(__file__).parents[2]
ATTNVIZ = str(Path(sys.executable).with_name("attnviz"))
TEXT = "the film was not good but the acting saved the film and the end"
NOTHING = "python -c pass"
BOTH = "import of torch, and of matplotlib's figure and Agg"
IMPORTS = """
import torch
from matplotlib.figure import Figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
"""


class Row(NamedTuple):
    """One kind of process, and what it is a multiple of."""

    name: str
    command: Sequence[str]
    against: tuple[str, ...]


def rows(folder: str) -> list[Row]:
    small = (NOTHING,)
    return [
        Row(NOTHING, (sys.executable, "-c", "pass"), ()),
        Row("attnviz --help", (ATTNVIZ, "--help"), small),
        Row("attnviz heatmpa (no such command)", (ATTNVIZ, "heatmpa"), small),
        Row("attnviz heatmap --hads 8 (no such option)", (ATTNVIZ, "heatmap", "--hads", "8"), small),
        Row("attnviz heatmap --heads 7 (not possible)", (ATTNVIZ, "heatmap", "--text", "x", "--heads", "7"), small),
        Row(BOTH, (sys.executable, "-c", IMPORTS), ()),
        Row(
            "attnviz heatmap --heads 8 (8 heads, overview, tables, record)",
            (ATTNVIZ, "heatmap", "--text", TEXT, "--heads", "8", "--out", f"{folder}/ours"),
            (BOTH,),
        ),
    ]


def seconds(row: Row) -> float:
    """Processor time of one process, with one thread everywhere."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(row.command, env=environment, cwd=ROOT, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    rounds = read_options(__doc__, rounds=9).rounds
    with tempfile.TemporaryDirectory() as folder:
        everything = rows(folder)
        for row in everything:  # files in the cache, byte code, fonts
            seconds(row)
        taken: dict[str, list[float]] = {row.name: [] for row in everything}
        for _ in range(rounds):
            for row in everything:
                taken[row.name].append(seconds(row))
    print(f"| process | seconds of processor time (quartiles of {rounds}) | as a multiple |")
    print("|---|---|---|")
    for row in everything:
        low, middle, high = statistics.quantiles(taken[row.name], n=4)
        multiples = [f"{middle / statistics.median(taken[name]):.2f} × {name}" for name in row.against]
        print(f"| {row.name} | {middle:.3f} ({low:.3f} to {high:.3f}) | {'; '.join(multiples)} |")


if __name__ == "__main__":
    main()
