"""Forty pairs of short sentences that a negation or a contrast turns around: which of them a model orders.

    python -m tests.benchmarks.pairs [model ...]

They were written before any model was measured on them, and none was trained on them (tests/models/test_pairs.py).
"""

import csv
import sys
from pathlib import Path

from attnviz.models.classifier_model import ClassifierModel
from attnviz.specs import ModelOptions
from attnviz.text import Document
from tests.made import load_encoder

PAIRS = Path(__file__).parents[1] / "minimal_pairs.tsv"


def load_pairs() -> list[dict[str, str]]:
    with PAIRS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def positive(model: ClassifierModel, texts: list[str]) -> list[float]:
    """How probable each text's positive label is."""
    return [said.probabilities[1] for said in model.classify([Document(text, text, "") for text in texts])]


def main() -> None:
    pairs = load_pairs()
    for name in sys.argv[1:] or ["single", "multi:8"]:
        model = load_encoder(ModelOptions(model=name, device="cpu"))
        assert isinstance(model, ClassifierModel), "a trained model is needed"
        first, second = (positive(model, [pair[side] for pair in pairs]) for side in ("positive", "negative"))
        for pair, high, low in zip(pairs, first, second, strict=True):
            print(f"{high:.2f} {low:.2f} {'ok' if high > low else '--'} {pair['positive']} | {pair['negative']}")
        ordered = sum(high > low for high, low in zip(first, second, strict=True))
        both = sum(high > 0.5 > low for high, low in zip(first, second, strict=True))
        print(f"{name}: {ordered} of {len(pairs)} ordered, both labels right in {both}")


if __name__ == "__main__":
    main()
