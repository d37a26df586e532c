"""`attribute` as a function: what is drawn, what adds up, and a card whose verdict goes no further than its numbers."""

import re
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from PIL import Image

from attnviz.commands.attribute.card import FRACTIONS, first_tokens, kendall
from attnviz.commands.attribute.card_report import CHANCE, NUMBERS, card_report, write_verdicts
from attnviz.errors import InvalidOption
from attnviz.models.attribution import METHODS
from attnviz.records import Provenance
from attnviz.renderers.terminal.show import Screen, lines
from attnviz.report import Heatmap, Report
from attnviz.table.numbers import Numbers
from tests import events as of
from tests.made import known, notes, unpack_page
from tests.pretrained import saved
from tests.starting import attribute

TEXT = "a boring plot, but a wonderful cast saves it"


def report(**settings: object) -> Report:
    return of.report(of.result(attribute(**settings)))


def test_a_text_is_shaded_by_sides_and_its_shares_are_said(tmp_path: Path) -> None:
    found = report(inline_text=TEXT, out=str(tmp_path), format=("png", "html"))
    assert {path.name for path in tmp_path.iterdir() if path.suffix in (".png", ".html")} == {
        "attribution.png",
        "attention.html",
    }
    (picture,) = (block for block in found.pictures if isinstance(block, Heatmap))
    assert known(picture.scale).kind == "diverging"
    data: Any = found.data
    assert data["tokens"]["pieces"][1] == "boring"
    relevance = data["methods"]["relevance"]
    np.testing.assert_allclose(picture.values[0], relevance["scores"], atol=1e-6)
    whole = sum(relevance["scores"]) + sum(relevance["others"].values())
    assert whole == pytest.approx(relevance["logit"], abs=1e-4)
    assert relevance["passes"] <= 4
    with Image.open(tmp_path / "attribution.png") as opened:
        red, _, blue = np.moveaxis(np.asarray(opened.convert("RGB")).astype(int), -1, 0)
    red, blue = (colour[: 2 * colour.shape[0] // 3] for colour in (red, blue))  # above the bar, which has both
    assert (red > blue + 60).sum() > 500  # for
    assert (blue > red + 60).sum() > 500  # against
    page = unpack_page(tmp_path / "attention.html")["content"]
    assert "where a head looked" not in page  # nothing on it is a weight


def test_a_terminal_shows_sides_with_and_without_colour(tmp_path: Path) -> None:
    found = report(inline_text=TEXT, out=str(tmp_path))
    plain = "".join(lines(found, "heads", Screen(80, False, "utf-8", False)))
    assert "+++boring" in plain
    assert "---wonderful" in plain
    coloured = "".join(lines(found, "heads", Screen(80, True, "utf-8", True)))
    assert "+++boring" not in coloured
    assert coloured.count("\x1b[38;5;") > 8


def test_all_are_all(tmp_path: Path) -> None:
    data: Any = report(inline_text="a fine film", out=str(tmp_path), method="all").data
    assert list(data["methods"]) == [method.name for method in METHODS]


def test_methods_are_drawn_side_by_side(tmp_path: Path) -> None:
    found = report(inline_text=TEXT, out=str(tmp_path), method="relevance,attention,leave-one-out", target="positive")
    (picture,) = (block for block in found.pictures if isinstance(block, Heatmap))
    assert picture.rows == ("relevance", "attention", "leave-one-out")
    assert np.abs(picture.values).max(axis=1).tolist() == pytest.approx([1, 1, 1])
    assert "leave-one-out 11" in notes(found)


def test_the_card_of_the_sample_tells_methods_from_chance() -> None:
    found = report(dataset="sample", split="test", card=True, method="attention,relevance", max_tokens=100)
    data: Any = found.data
    assert list(data["methods"]) == ["random", "attention", "relevance", "leave-one-out"]
    means = {name: of["comprehensiveness"]["mean"] for name, of in data["methods"].items()}
    assert means["random"] < means["attention"] < means["relevance"]
    assert data["methods"]["leave-one-out"]["tau_leave_one_out"]["mean"] == pytest.approx(1)
    assert data["methods"]["relevance"]["sufficiency"]["mean"] < data["methods"]["random"]["sufficiency"]["mean"]
    (ahead,) = re.findall(r"what is ranked first \(paired difference\) by: (.+?)\.\s", notes(found))
    assert "relevance +0." in ahead
    assert "Paired, these texts do not tell leave-one-out and relevance apart" in notes(found)


PROVENANCE = Provenance("tiny", "seed 0", True, "0" * 64)
EVEN = np.linspace(-0.1, 0.1, 20)  # of 20 texts, about a mean


def verdict(**lost: np.ndarray) -> str:
    """What a card says of methods by what is lost on each text, chance first."""
    rows = [
        {"text": str(text), "method": name.replace("_", "-"), **dict.fromkeys(NUMBERS, float(number))}
        for name, numbers in lost.items()
        for text, number in enumerate(numbers)
    ]
    return notes(card_report(Numbers.from_rows(rows, ("text", "method")), PROVENANCE, "texts"))


def test_a_verdict_is_of_paired_differences_and_goes_no_further() -> None:
    """Overlap of intervals says nothing of numbers of the same texts: every text has more, and intervals overlap."""
    chance, most = 0.1 + EVEN, 0.6 + 1.1 * EVEN
    varied = np.tile([0.9, 1.1], 10)
    apart = verdict(random=chance, relevance=most, attention=chance + 0.01 * varied)
    assert "by: relevance +0.500" in apart
    assert "attention +0.010" in apart
    assert "Paired, relevance is ahead of attention by 0.490" in apart
    assert "do not tell" not in apart
    noise = np.tile([0.02, -0.02], 10)
    alike = verdict(random=chance, relevance=most, attention=most + noise)
    assert "Paired, these texts do not tell relevance and attention apart" in alike
    none = verdict(random=chance, attention=chance + noise)
    assert "Not shown to cost the answer more than deleting tokens of the same texts at random" in none
    few = verdict(random=chance[:5], relevance=most[:5])
    assert "no verdict" in few
    assert "ranked first by" not in few


def test_verdicts_are_corrected_for_all_methods_that_were_looked_at() -> None:
    """Uncorrected, of eight equal methods one was ahead in 49 % of such runs, and beyond chance in 15 %."""
    drawn = np.random.default_rng(0)
    ahead = beyond = 0
    for _ in range(200):
        hard, noise = drawn.beta(2, 2, 12) * 0.8, drawn.normal(0, 0.1, (16, 12))  # what a text has to lose
        chance = drawn.normal(0, 0.05, 12)
        equal = {f"method {place}": hard + of for place, of in enumerate(noise[:8])}
        ahead += "is ahead of" in " ".join(write_verdicts({CHANCE: chance, **equal}))
        idle = {f"method {place}": of for place, of in enumerate(noise[8:])}
        beyond += "More than by chance" in " ".join(write_verdicts({CHANCE: chance, **idle}))
    assert ahead <= 10  # 5 % of 200
    assert beyond <= 10


def test_a_text_that_stands_there_twice_counts_once(tmp_path: Path) -> None:
    """Copies made any difference sure: of 5 texts twice there was a verdict."""
    texts = tuple(f"a {word} film" for word in ("good", "bad", "fine", "poor", "dull"))
    settings = {"text": texts * 2, "inline_text": None, "card": True, "method": "relevance", "out": str(tmp_path)}
    first, *others = attribute(**settings, format=("html",))
    found = of.result(iter(others))
    assert found.files == (tmp_path / "attention.html",)
    assert of.result(attribute(**settings)).notices[0].startswith("nothing was written")
    data: Any = of.report(found).data
    assert len(data["texts"]) == 5
    assert first.notices == ("leaving out 5 of 10 texts: the same text stands there before",)
    assert "Over 5 texts there is no interval" in notes(of.report(found))


@pytest.fixture
def regressor(tmp_path: Path) -> Path:
    return saved(tmp_path / "model" / "regressor", "bert", auto="AutoModelForSequenceClassification", num_labels=1)


def test_a_regressor_is_explained_by_its_number(regressor: Path, tmp_path: Path) -> None:
    text = "the acting saved the film"
    settings = {"inline_text": text, "model": str(regressor), "device": "cpu", "out": str(tmp_path / "out")}
    found = report(**settings, method="relevance,leave-one-out", target="score")
    data: Any = found.data
    assert (data["target"], data["against"], data["probability"]) == ("score", None, None)
    assert found.title == f"regressor gives ‘score’ ({data['score']:.2f})"
    relevance = data["methods"]["relevance"]
    assert "logit" not in relevance
    assert relevance["score"] == pytest.approx(data["score"], abs=1e-6)
    assert sum(relevance["scores"]) + sum(relevance["others"].values()) == pytest.approx(data["score"], abs=1e-4)
    assert "relevance adds up to score, " in notes(found)
    assert "Above 0 raises score, below 0 lowers it (relevance, leave-one-out)." in notes(found)
    assert "logit" not in notes(found)
    assert "probability" not in notes(found)
    with pytest.raises(InvalidOption, match="is for labels, and regressor answers with a number"):
        report(**settings, against="0")


def test_the_card_of_a_regressor_is_in_units_of_its_number(regressor: Path) -> None:
    texts = ("the acting saved the film", "a cat sat on the mat and it was good")
    found = report(text=texts, inline_text=None, model=str(regressor), device="cpu", card=True, method="relevance")
    data: Any = found.data
    assert data["answers"] == "score"
    lost = {name: of["comprehensiveness"]["mean"] for name, of in data["methods"].items()}
    assert lost["leave-one-out"] > lost["random"]
    assert "Comprehensiveness is what the answer loses of its probability, or of its number" in notes(found)


# --- What deleting first tokens costs, and rank correlation, beside other ways to work them out ---


Answer = Callable[[Sequence[int]], float]


def ferret(answer: Answer, scores: np.ndarray, keep: bool) -> float:
    """AOPC as ferret-xai 0.4.2 computes it: evaluators/faithfulness_measures.py, with perc thresholds, only_pos=False.

    The package itself asks for numpy 1 and transformers 4, which are not installed beside ours.
    """
    ids, baseline, last, found = np.arange(len(scores)), answer(list(range(len(scores)))), None, []
    for share in FRACTIONS:
        count = int(share * len(scores))
        if not 0 < count <= len(scores):
            continue
        top = np.array(scores).argsort()[-count:][::-1]
        if last == set(top.tolist()):
            continue
        last = set(top.tolist())
        left = ids[np.sort(top)] if keep else np.delete(ids, top)
        found.append(baseline - answer(left.tolist()))
    return mean(found)


@pytest.mark.parametrize("n_tokens", [2, 5, 7, 13, 19, 40, 131])
def test_losses_are_those_of_ferret(n_tokens: int) -> None:
    generator = np.random.default_rng(n_tokens)
    weights, scores = generator.normal(size=n_tokens), generator.normal(size=n_tokens)

    def answer(tokens: Sequence[int]) -> float:
        return float(1 / (1 + np.exp(-weights[list(tokens)].sum())))

    first = first_tokens(scores, np.ones(n_tokens, dtype=bool))
    whole = answer(range(n_tokens))
    for keep in (False, True):
        lost = [whole - answer(np.flatnonzero(chosen == keep).tolist()) for chosen in first]
        assert np.mean(lost) == pytest.approx(ferret(answer, scores, keep=keep), abs=1e-9)


def test_markers_are_never_chosen_and_of_equals_the_earliest_is() -> None:
    removable = np.array([False, *(True,) * 10, False])
    chosen = first_tokens(np.array([9.0, *(1.0,) * 10, 9.0]), removable)
    assert [np.flatnonzero(each).tolist() for each in chosen] == [[1], [1, 2], [1, 2, 3, 4, 5]]


def pairs(one: np.ndarray, other: np.ndarray) -> float:
    """τ-b by counting pairs."""
    signs = [(np.sign(one[i] - one[j]), np.sign(other[i] - other[j])) for i, j in combinations(range(len(one)), 2)]
    apart = [sum(1 for sides in signs if sides[side]) for side in (0, 1)]
    return float(sum(a * b for a, b in signs) / np.sqrt(apart[0] * apart[1]))


def test_tau_counts_pairs() -> None:
    generator = np.random.default_rng(0)
    for _ in range(5):
        one, other = generator.integers(6, size=(2, 20)).astype(np.float64)
        assert kendall(one, other) == pytest.approx(pairs(one, other), abs=1e-12)
    assert kendall(one, one) == pytest.approx(1)
    assert kendall(np.arange(4.0), -np.arange(4.0)) == -1
    assert np.isnan(kendall(np.ones(4), np.arange(4.0)))
