"""`predict` as a function: labels, probabilities and scores, of models that come with attnviz and of others."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz.errors import InvalidOption
from attnviz.models.built_in import SHIPPED
from attnviz.report import Report
from attnviz.running import Result
from attnviz.running.metrics import load_metrics
from tests import events as of
from tests.made import known, notes, table
from tests.pretrained import saved
from tests.process import ROOT
from tests.starting import predict, vocab
from tests.text.corpora import write_csv

PRAISE = "a wonderful film , moving and perfect . i loved every minute"
BLAME = "a terrible , boring film . the worst acting , a waste of time"
JUDGED = {"dataset": "sample", "split": "test"}
FOUR = ("multi-2", "multi-4", "multi-8", "single")


def predictions(**settings: object) -> list[Any]:
    """The answers, as the report gives them to machines."""
    data: Any = report(**settings).data
    return list(data["predictions"])


def positive(answer: Any) -> float:
    return float(answer["probabilities"]["positive"])


def report(**settings: object) -> Report:
    return of.report(of.result(predict(**settings)))


@pytest.mark.parametrize("model", ["single", "multi:2", "multi:4", "multi:8"])
def test_praise_and_blame(model: str) -> None:
    assert report(text=(PRAISE,), model=model).title.startswith(f"{model} says ‘positive’ (")
    found = predictions(text=(PRAISE, BLAME), model=model)
    assert [each["label"] for each in found] == ["positive", "negative"]
    assert all(each["probability"] > 0.8 for each in found)
    assert all(sum(each["probabilities"].values()) == pytest.approx(1) for each in found)


def test_a_pair_of_words_is_read() -> None:
    """What "good" says depends on the word before it. "Not" speaks against it and for "bad": no sum over words does."""
    words = ("good", "not good", "bad", "not bad")
    good, not_good, bad, not_bad = predictions(text=tuple(f"the acting is {each}" for each in words))
    assert positive(good) > positive(not_good) + 0.1
    assert positive(not_bad) > positive(bad)


def test_the_sample_is_as_hard_as_the_documentation_says() -> None:
    data: Any = report(dataset="sample", split="train+test").data
    judged, share = data["scored"], data["accuracy"]
    assert data["texts"] == judged
    said = " ".join((ROOT / "docs/reading.md").read_text(encoding="utf-8").split())
    assert f"{judged * share:.0f} of the {judged} packaged reviews rightly" in said


@pytest.mark.parametrize(
    ("head", "given", "said"),
    [
        ("1.7", JUDGED, "70.0% are: +5.0 points (-5.5 to +15.5); 1 of 20 answers changes."),
        ("0.4", JUDGED, "70.0% are: +0.0 points; 0 of 20 answers change."),
        ("0.1", {"text": (PRAISE, BLAME)}, "0 of 2 answers change."),
    ],
)
def test_how_many_answers_a_head_changes_is_held_against_how_many_are_right(
    head: str, given: dict[str, object], said: str
) -> None:
    assert f"With all heads {said}" in notes(report(without=(head,), **given))


def test_a_long_text_is_read_at_its_beginning_and_end() -> None:
    """What stands between is left out: blame there changes nothing, blame at the end does."""
    filler = "it is a film about a man and a house . " * 40
    plain = filler + "word " * 300 + filler
    between = filler + f"{BLAME} " * 20 + filler
    at_the_end = filler + "word " * 300 + f"{BLAME} " * 20
    one, two, three = predictions(text=(plain, between, at_the_end))
    assert (one["tokens"], one["tokens_read"]) == (1180, 512)
    assert positive(one) == pytest.approx(positive(two), abs=1e-5)
    assert positive(three) < positive(one) - 0.1


@pytest.mark.slow
def test_accuracy_on_imdb_is_that_of_the_card(shared: Path) -> None:
    """On some of the test split: within what chance does to 300 texts (three standard errors)."""
    split = "test[:150]+test[-150:]"
    data = report(dataset=str(shared / "data/imdb"), split=split, model="multi:4").data
    tested = known(load_metrics(SHIPPED / "multi-4").tested)
    assert data["accuracy"] == pytest.approx(tested.accuracies[0], abs=3 * np.sqrt(0.9 * 0.1 / 300))
    assert data["calibration_error"] < 0.05  # type: ignore[operator]


def test_what_is_shipped_is_measured_and_small() -> None:
    """Four models of equal size, measured with every seed that was trained, rounding that changes few labels."""
    found = {folder.name: load_metrics(folder) for folder in sorted(SHIPPED.iterdir()) if folder.name in FOUR}
    assert tuple(found) == FOUR
    sizes = [metrics.n_parameters for metrics in found.values()]
    n_biases = 2 * (2 * 48 + 1)  # of each head of two layers, by distance: all else is equally large
    assert max(sizes) == min(sizes) + (8 - 1) * n_biases
    assert {metrics.sizes["n_heads"] for metrics in found.values()} == {1, 2, 4, 8}
    for metrics in found.values():
        tested, held_out = known(metrics.tested), metrics.held_out
        assert len(tested.seeds) == len(tested.accuracies)
        assert tested.mean.low < np.mean(tested.accuracies) < tested.mean.high
        assert held_out.labels_changed <= held_out.n_texts / 500
        assert tested.seeds[0] == 0
        assert tested.mean.value >= 0.88
    assert sum(file.stat().st_size for file in SHIPPED.rglob("*.*")) < 16e6


@pytest.mark.parametrize("model", ["single-zh", "multi-zh"])
def test_a_chinese_model_is_measured_on_reviews_that_it_has_not_seen(model: str) -> None:
    tested = known(load_metrics(SHIPPED / model).tested)
    assert (tested.n_texts, tested.seeds) == (4_000, (0, 1, 2))
    assert tested.mean.value >= 0.84
    texts = ("这家酒店的服务不好，很失望", "房间很干净，早餐也不错，我很喜欢")
    answers = predictions(text=texts, model=model)
    assert [each["label"] for each in answers] == ["negative", "positive"]


# --- `predict` with third-party models: labels in any order, several labels, numbers, and what is not compared ---


TEXTS = (("the acting saved the film", 1), ("a cat sat on the mat", 0), ("it was not good", 0), ("xyzzy plugh", 1))
KIND = {"auto": "AutoModelForSequenceClassification", "kind": "bert"}


def named(*names: str) -> dict[str, Any]:
    return {"id2label": dict(enumerate(names)), "label2id": {name: place for place, name in enumerate(names)}}


def run(folder: Path, settings: dict[str, Any], texts: Any = TEXTS, **options: Any) -> Result:
    """The folder beside holds the texts."""
    data = write_csv(folder.parent / "texts.csv", texts)
    saved(folder, **KIND, **settings)
    return of.result(predict(model=str(folder), dataset=str(data), device="cpu", **options))


def test_labels_in_another_order_are_found_by_their_names(tmp_path: Path) -> None:
    found = run(tmp_path / "third", named("POS", "NEG"))
    report = of.report(found)
    data: Any = report.data
    assert [each["given"] for each in data["predictions"]] == ["POS", "NEG", "NEG", "POS"]
    judged = data["predictions"][:3]
    right = [each["label"] == each["given"] for each in judged]
    assert 0 < sum(right) < 3
    assert data["accuracy"] == pytest.approx(sum(right) / 3)
    assert data["predictions"][3]["label"] is None  # of unknown words
    assert "Given labels are read by the names of the model's own: 0 as NEG, 1 as POS." in notes(report)
    assert report.subtitle.startswith("weights sha256 ")
    assert [row[1] for row in list(found.rows)[1:]] == [*(each["label"] for each in judged), None]


def test_names_that_say_no_number_are_not_judged(tmp_path: Path) -> None:
    report = of.report(run(tmp_path / "third", named("joy", "anger")))
    data: Any = report.data
    assert "accuracy" not in data
    assert [each["given"] for each in data["predictions"]] == [1, 0, 0, 1]
    assert "Given labels are not compared: the names of the model's own (joy, anger) do not say" in notes(report)


def test_a_regressor_gives_its_number_and_no_accuracy(tmp_path: Path) -> None:
    found = run(tmp_path / "third", {"num_labels": 1})
    report = of.report(found)
    data: Any = report.data
    assert "accuracy" not in data
    numbers = [each["scores"] and each["scores"]["score"] for each in data["predictions"]]
    assert len(set(numbers)) == 4
    assert numbers[3] is None  # of unknown words
    assert report.title.startswith("third scores ")
    assert [row[1] for row in table(report, "predictions").rows] == [*numbers[:3], "-"]
    header, *rows = found.rows
    assert header == ("text", "given", "tokens", "tokens_read", "score")
    assert [row[-1] for row in rows] == [*numbers[:3], None]
    assert "the model answers with a number, not with a label" in notes(report)
    assert "probability" not in notes(report)
    many = of.report(run(tmp_path / "third", {"num_labels": 1}, TEXTS * 6))
    ((name, n_texts, mean, _, largest),) = table(many, "predictions").rows
    assert (name, n_texts) == ("score", 18)
    assert mean == pytest.approx(sum(numbers[:3]) / 3)
    assert largest == pytest.approx(max(numbers[:3]), abs=1e-6)  # in another batch the last bit may differ


def test_a_text_may_have_several_labels_or_none(tmp_path: Path) -> None:
    settings = {**named("joy", "anger", "fear"), "problem_type": "multi_label_classification"}
    found = run(tmp_path / "third", settings)
    report = of.report(found)
    data: Any = report.data
    assert "accuracy" not in data
    for each in data["predictions"][:3]:
        assert each["predicted"] == [name for name, p in each["probabilities"].items() if p >= 0.5]
    assert data["predictions"][3]["predicted"] is None
    assert list(found.rows)[1][1] == data["predictions"][0]["predicted"]
    assert "the model gives a text any number of labels" in notes(report)
    assert "a text has those of 0.5 or more" in notes(report)
    many = of.report(run(tmp_path / "third", settings, TEXTS * 6))
    counts = {row[0]: row[1] for row in table(many, "predictions").rows}
    assert counts["joy"] == 6 * sum("joy" in each["predicted"] for each in data["predictions"][:3])
    assert counts["not judged"] == 6


# --- `vocab`: the file, and the numbers against counting by hand ---


def counted(folder: Path, texts: str) -> Any:
    """What `vocab` says of a file of these lines."""
    (folder / "all.txt").write_text(texts, encoding="utf-8")
    return of.data(of.result(vocab(dataset=str(folder / "all.txt"), min_frequency=1, out=str(folder / "v"))))


def test_numbers_are_those_counted_by_hand(tmp_path: Path) -> None:
    numbers = counted(tmp_path, "good film good\nbad film\n")
    assert (numbers["texts"], numbers["tokens"], numbers["entries"]) == (2, 5, 3 + 3)
    assert numbers["commonest"] == [["good", 2], ["film", 2], ["bad", 1]]


def test_the_tokenizer_of_a_model_stays(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("good film", encoding="utf-8")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidOption, match="holds a model"):
        vocab(dataset=str(tmp_path / "all.txt"), out=str(tmp_path))


def test_every_tenth_text_is_held_out(tmp_path: Path) -> None:
    assert counted(tmp_path, "seen\n" * 5 + "unseen\n" + "seen\n" * 14)["coverage"] == 1.0
    found = counted(tmp_path, "new\n" + "seen\n" * 19)
    assert found["coverage"] == 0.5  # "new" is only in the held-out tenth
    assert "new" in json.loads((tmp_path / "v/tokenizer.json").read_bytes())["model"]["vocab"]  # what is saved knows it
