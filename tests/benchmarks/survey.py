"""What a survey takes: CPU time for each text, and memory.

    python -m tests.benchmarks.survey [path/to/imdb] [--texts 640]

multi:8 over reviews from all over a split, at most 512 tokens each, without nulls; the first block is not counted. One
line for the headline (with the patterns that name heads, which are always measured) and one for all measures, each
with what it comes to for the 25,000 reviews of a split. The bars are 4 and 8 minutes of one core.
"""

import json
import os
import resource
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the command does

from attnviz.commands.survey.measure import BLOCK
from attnviz.commands.survey.spec import SurveySpec
from attnviz.options import build
from attnviz.running import Progress
from attnviz.specs import TextOptions
from attnviz.text.dataset import stream_corpus
from tests.benchmarks.timing import read_options
from tests.starting import survey

REVIEWS, BARS = 25_000, {"headline": 4.0, "all": 8.0}  # minutes of one core


def cpu() -> float:
    """Seconds of this process and of those that have ended."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def spread(dataset: str, n_texts: int, file: Path) -> Path:
    """Every n-th text of a data set, as a file."""
    texts = [document.text for document in stream_corpus(TextOptions(dataset=dataset)).documents()]
    chosen = texts[:: max(1, len(texts) // n_texts)]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in chosen), encoding="utf-8")
    return file


def seconds_per_text(file: Path, measure: str, folder: Path) -> float:
    """CPU seconds for each text but those of the first block, and what comes after the last."""
    measures = () if measure == "headline" else (measure,)
    events = survey(build(SurveySpec, dataset=str(file), null=("none",), measure=measures, out=str(folder)))
    progress = (event for event in events if isinstance(event, Progress) and event.what == "texts")
    seen = [(event.done, cpu()) for event in progress if event.done >= BLOCK]
    (first, begun), (last, ended) = seen[0], seen[-1]
    return (ended - begun) / (last - first)


def main() -> None:
    asked = read_options(__doc__, "sample", texts=640)
    with tempfile.TemporaryDirectory() as place:
        file = spread(asked.data, asked.texts, Path(place) / "spread.jsonl")
        for measure, bar in BARS.items():
            found = seconds_per_text(file, measure, Path(place) / measure)
            minutes = found * REVIEWS / 60
            print(f"{measure}: {found * 1e3:.1f} ms a text, {minutes:.1f} min for {REVIEWS:,} (bar {bar:g})")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
