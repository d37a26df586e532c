"""What a lesson says of when several heads help is what cards and the study of capacity say.

`ATTNVIZ_WRITE_README=1` writes the lesson's own copy of the study's results anew.
"""

import json
import os
from pathlib import Path
from statistics import fmean, stdev

import pytest

from attnviz.commands.lesson import measured
from attnviz.models.built_in import SHIPPED
from tests import study

FILE = Path(measured.__file__).with_name(measured.CAPACITY)


def interval(shares: list[float]) -> list[float]:
    return [round(each, 4) for each in study.interval(shares)]


def test_the_study_is_quoted_to_the_letter() -> None:
    found, results = study.study(), study.results()
    equal = {heads: results[found.GRID[heads, 8].slug] for heads in found.HEADS}
    rest = {kind.heads: results[kind.slug] for kind in found.NETWORKS if kind.rest and kind.width == 32}
    (steps,) = {step for each in equal.values() for step in each["steps"]}
    (parameters,) = {each["parameters"] for each in equal.values()}
    quoted = {
        "heads": list(found.HEADS),
        "items": list(found.ITEMS),
        "steps": steps,
        "parameters": parameters,
        "shares": [
            [interval(results[found.GRID[heads, items].slug]["all_right"]) for heads in found.HEADS]
            for items in found.ITEMS
        ],
        "halving": [round(float(found.halving(equal[heads])), 4) for heads in found.HEADS],
        "rest": {
            str(heads): {
                "share": interval(each["all_right"]),
                "steps": fmean(each["steps"]),
                "halving": round(float(found.halving(each)), 4),
            }
            for heads, each in sorted(rest.items())
        },
    }

    if os.environ.get("ATTNVIZ_WRITE_README"):
        FILE.write_text(json.dumps(quoted, indent=1) + "\n", encoding="utf-8")
    assert measured.describe_capacity() == quoted


def test_reviews_are_those_of_the_cards() -> None:
    found = {each["heads"]: each for each in measured.describe_reviews()}
    assert list(found) == [1, 2, 4, 8]
    first: list[float] = []
    for heads, each in found.items():
        card = json.loads((SHIPPED / ("single" if heads == 1 else f"multi-{heads}") / "metrics.json").read_bytes())
        assert each["accuracy"] == [card["tested"]["mean"][name] for name in ("value", "low", "high")]
        accuracies = card["tested"]["accuracies"]
        first = first or accuracies
        pairs = [after - before for before, after in zip(first, accuracies, strict=True)]
        half = 4.302653 * stdev(pairs) / 3**0.5  # Student's t of three seeds
        assert each["change"] == pytest.approx([fmean(pairs), fmean(pairs) - half, fmean(pairs) + half], abs=1e-7)
        assert each["nTexts"] == card["tested"]["n_texts"]
        assert each["loss"] == card["history"]["masked_word_loss"]
