"""What a command costs before it does anything, and one text's eight heads from nothing to files.

    python -m tests.benchmarks.startup [--rounds 9]

Seconds of processor time of whole processes, the rows in turns: medians, and as a multiple of the row above that is
nothing but Python, or imports.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.timing import read_options

ROOT = Path(__file__).parents[2]
PYTHON = [sys.executable, "-c"]
ATTNVIZ = str(Path(sys.executable).with_name("attnviz"))
TEXT = "the film was not good but the acting saved the film and the end"
IMPORTS = "import torch; from matplotlib.figure import Figure; import matplotlib.backends.backend_agg"
COMMANDS = {
    "python -c pass": [*PYTHON, "pass"],
    "attnviz --help": [ATTNVIZ, "--help"],
    "attnviz heatmpa (no such command)": [ATTNVIZ, "heatmpa"],
    "attnviz heatmap --heads 7 (not possible)": [ATTNVIZ, "heatmap", "--text", "x", "--heads", "7"],
    "import of torch, and of matplotlib's figure and Agg": [*PYTHON, IMPORTS],
    "attnviz heatmap --heads 8": [ATTNVIZ, "heatmap", "--text", TEXT, "--heads", "8", "--out", "ours"],
}


def seconds(command: list[str], folder: str) -> float:
    """Processor time of one process, with one thread everywhere."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    rounds = read_options(__doc__, rounds=9).rounds
    with tempfile.TemporaryDirectory() as folder:
        turns = [[seconds(command, folder) for command in COMMANDS.values()] for _ in range(1 + rounds)]
    taken = dict(zip(COMMANDS, map(statistics.median, zip(*turns[1:], strict=True)), strict=True))  # the first warms up
    for name, median in taken.items():
        against = "import of" if "--heads 8" in name else "python"
        (base,) = (found for other, found in taken.items() if other.startswith(against))
        print(f"{median:7.3f} s {median / base:7.2f} × {name}")


if __name__ == "__main__":
    main()
