"""What a lesson says of when several heads help is what cards and the study of capacity say.

`ATTNVIZ_WRITE_README=1` writes the lesson's own copy of their results anew.
"""

import json
import os
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from attnviz.commands.lesson import content
from attnviz.commands.lesson.content import LETTERS, MODELS, SEEDS, describe_measured, describe_recall, draw_sequence
from attnviz.models.built_in import SHIPPED
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies
from attnviz.specs import ModelOptions
from attnviz.text import Document
from tests import study
from tests.browser import Opened

FILE = Path(content.__file__).with_name(content.MEASURED)


def interval(shares: list[float]) -> list[float]:
    return [round(each, 4) for each in study.interval(shares)]


def quote_study() -> dict[str, Any]:
    found, results = study.study(), study.results()
    equal = {heads: results[found.GRID[heads, 8].slug] for heads in found.HEADS}
    rest = {kind.heads: results[kind.slug] for kind in found.NETWORKS if kind.rest and kind.width == 32}
    (steps,) = {step for each in equal.values() for step in each["steps"]}
    (parameters,) = {each["parameters"] for each in equal.values()}
    return {
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


def quote_card(heads: int) -> dict[str, Any]:
    """Of a card; "change" is how much more than of one head is right, seed by seed: overlap does not say that."""
    names = ("single", "single" if heads == 1 else f"multi-{heads}")
    first, card = (json.loads((SHIPPED / name / "metrics.json").read_bytes()) for name in names)
    tested, ends = card["tested"], ("value", "low", "high")
    pairs = [after - before for before, after in zip(first["tested"]["accuracies"], tested["accuracies"], strict=True)]
    half = 4.302653 * stdev(pairs) / 3**0.5  # Student's t of three seeds
    (uniform,) = (cost["seeds"] for cost in tested["costs"] if cost["what"] == "every key alike")
    return {
        "heads": heads,
        "nTexts": tested["n_texts"],
        "nSeeds": len(tested["seeds"]),
        "accuracy": [tested["mean"][end] for end in ends],
        "loss": card["history"]["masked_word_loss"],
        "cost": [uniform[end] for end in ends],
        "change": [round(each, 6) for each in (fmean(pairs), fmean(pairs) - half, fmean(pairs) + half)],
    }


def test_studies_and_cards_are_quoted_to_the_letter() -> None:
    quoted = {"reviews": [quote_card(heads) for heads in (1, 2, 4, 8)], "capacity": quote_study()}
    if os.environ.get("ATTNVIZ_WRITE_README"):
        FILE.write_text(json.dumps(quoted, indent=1) + "\n", encoding="utf-8")
    assert describe_measured() == quoted


# --- The task on which several heads help, to try: sequences as the models were trained on, and what these report ---


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sequence_has_every_letter_once(seed: int) -> None:
    tokens, values = draw_sequence(seed)
    assert len(tokens) == 24
    lettered = {token[0]: int(token[1:]) for token in tokens if token[0].isalpha()}
    assert [lettered[letter] for letter in LETTERS] == values
    assert all(0 <= int(token.lstrip(LETTERS)) < 16 for token in tokens)


def report(model: str, text: str, off: tuple[int, ...]) -> list[int]:
    """What the model says with these heads left out, by `attnviz predict`."""
    options = ModelOptions(model=model, without=tuple(f"0.{head}" for head in off))
    opened = find_model(options).open(())
    assert isinstance(opened, Classifies)
    (prediction,) = opened.classify([Document(text, "text", "text")])
    by_label = dict(zip(opened.answers.labels, prediction.probabilities, strict=True))
    return [max(range(16), key=lambda value: by_label[f"{letter}{value}"]) for letter in LETTERS]


def test_each_head_answers_for_some_of_the_letters() -> None:
    """As the page says of the model of eight heads: without it they are not right, and others are."""
    found = describe_recall()["models"][1]
    reported = np.array(found["reported"])
    values = np.array([draw_sequence(seed)[1] for seed in SEEDS])
    for head in range(8):
        right = (reported[:, 1 << head] == values).mean(axis=0)
        assert 1 <= (right < 0.5).sum() < len(LETTERS), head
        assert (right == 1).sum() >= len(LETTERS) / 2, head


@pytest.mark.slow
@pytest.mark.parametrize(("sequence", "off"), [(0, ()), (1, (2, 5))])
def test_what_is_reported(page: Opened, sequence: int, off: tuple[int, ...]) -> None:
    page.page.locator("#recall select").select_option(index=sequence)
    for head in off:
        page.page.locator("#recall .switch-head").nth(head).click()
    switches = page.page.locator("#recall .switch-head").all()
    assert [each.get_attribute("aria-checked") == "false" for each in switches] == [head in off for head in range(8)]
    tokens, values = draw_sequence(SEEDS[sequence])
    assert page.page.locator("#recall .sequence").inner_text().split() == tokens
    rows = page.page.locator("#recall tbody tr").all()
    for model, name, row, without in zip(MODELS, ("one head", "eight heads"), rows, ((), off), strict=True):
        expected = report(model, " ".join(tokens), without)
        cells = [cell.split()[0] for cell in row.locator("td").all_inner_texts()]
        assert cells == ["✓" if a == b else str(a) for a, b in zip(expected, values, strict=True)]
        right = cells.count("✓")
        assert row.locator("th").inner_text() == f"{name}: {right} right"
        assert row.locator(".wrong").count() == 8 - right


def test_one_head_fails_as_often_as_was_measured() -> None:
    measured, values = describe_measured()["capacity"]["shares"][-1], [draw_sequence(seed)[1] for seed in SEEDS]
    for model, (share, _, _) in zip(describe_recall()["models"], (measured[0], measured[-1]), strict=True):
        reported = np.array(model["reported"])[:, 0]
        assert sum(map(np.array_equal, reported, values)) == round(share * len(SEEDS))
