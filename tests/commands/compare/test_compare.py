"""`compare` as a function: models that come with attnviz, random ones, checkpoints, one text and many."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz import store
from attnviz.commands.compare.comparison import without_markers
from attnviz.errors import InvalidOption
from attnviz.measures.concentration import entropy
from attnviz.models import tokenizer
from attnviz.models.checkpoint import Checkpoint, Classifier, ClassifierConfig, save_checkpoint
from attnviz.models.encoder import EncoderConfig
from attnviz.running import Progress, Result
from attnviz.specs import VocabularyOptions
from tests.events import data, report, result
from tests.made import cross_maps, notes, record, softmax, tokens
from tests.starting import compare

pytestmark = pytest.mark.usefixtures("undrawn")
TEXT = "not a good film , but the acting saves it"


def outcome(tmp_path: Path, *models: str, **settings: Any) -> Result:
    return result(compare(models=models or ("single", "multi"), out=str(tmp_path / "out"), **settings))


def test_the_numbers_are_those_of_the_records(tmp_path: Path) -> None:
    found = outcome(tmp_path, text=(TEXT,))
    several = store.load(tmp_path / "out" / "multi-8.safetensors")
    alone = store.load(tmp_path / "out" / "single.safetensors")
    of_heads = data(found)["measures"]["entropy"]
    assert np.allclose(of_heads["per_head"][1], entropy(several).values)
    assert np.allclose(of_heads["per_head"][0], entropy(alone).values)
    mean = float(entropy(several).values.mean())
    assert of_heads["means"] == pytest.approx([float(entropy(alone).values.mean()), mean])
    assert of_heads["differences"][0]["value"] == pytest.approx(mean - of_heads["means"][0])
    assert of_heads["uniform"] == pytest.approx(np.log(len(several.keys)))


def test_several_texts_have_intervals_and_are_counted(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"models": ("single", "multi"), "dataset": "sample", "split": "test"}
    first, *done, last = compare(**asked, out=str(tmp_path / "out"))
    assert isinstance(first, Progress)
    assert (first.done, first.total, first.what) == (0, 20, "texts")
    texts = [each for each in done if isinstance(each, Progress) and each.what == "texts"]
    assert [each.done for each in texts] == list(range(1, 21))
    assert isinstance(last, Result)
    assert {file.name for file in last.files} == {"distributions.png", "similarity.png"}
    (right,) = data(last)["accuracy_differences"]
    accuracies = [each["accuracy"] for each in data(last)["models"]]
    assert right["value"] == pytest.approx(accuracies[1] - accuracies[0])
    assert "right on" in notes(report(last))


def test_numbers_of_several_texts_are_means_of_each(tmp_path: Path) -> None:
    one, other = (outcome(tmp_path / i, dataset="sample", index=(i,)) for i in ("0", "7"))
    both = outcome(tmp_path / "both", dataset="sample", index=("0,7",))
    assert np.allclose(data(both)["divergences"], (data(one)["divergences"] + data(other)["divergences"]) / 2)
    for name in ("entropy", "vendi_score"):
        means = [data(each)["measures"][name]["means"] for each in (one, other)]
        assert data(both)["measures"][name]["means"] == pytest.approx(np.mean(means, axis=0).tolist())
    for cost in ("projections", "weights", "memory"):
        costs = [data(each)["models"][1]["cost"][cost] for each in (one, other)]
        assert data(both)["models"][1]["cost"][cost] == pytest.approx(np.mean(costs))


@pytest.mark.parametrize(("index", "reason"), [("0-4", "fewer than 10 texts"), ("0-9", "all texts differ alike")])
def test_a_model_compared_with_itself_differs_in_nothing(index: str, reason: str, tmp_path: Path) -> None:
    """And no interval says how sure that is."""
    found = outcome(tmp_path, "multi:4", "multi:4", dataset="sample", index=(index,))
    assert [each["name"] for each in data(found)["models"]] == ["multi:4 (1)", "multi:4 (2)"]
    for name, measure in data(found)["measures"].items():
        (difference,) = measure["differences"]
        assert (difference["value"], difference["low"], difference["no_interval"]) == (0, None, reason), name
    divergences, n_heads = data(found)["divergences"], 2 * 4  # of both layers
    assert divergences.shape == (2 * n_heads, 2 * n_heads)
    assert np.allclose(divergences[:n_heads, n_heads:].diagonal(), 0)


def test_a_text_that_stands_there_twice_counts_once(tmp_path: Path) -> None:
    """Each of 6 reviews twice had intervals of 12. A blank one ended it all."""
    reviews = tuple(f"a {word} film" for word in ("good", "bad", "fine", "poor", "dull", "great"))
    first, *_, last = compare(models=("single", "multi:2"), text=(*reviews, " ", *reviews), out=str(tmp_path))
    assert [said[:26] for said in first.notices] == ["leaving out 1 of 13 texts:", "leaving out 6 of 13 texts:"]
    assert isinstance(last, Result)
    assert data(last)["texts"]["number"] == 6
    assert data(last)["measures"]["entropy"]["differences"][0]["no_interval"] == "fewer than 10 texts"


def test_different_tokenisers_meet_in_words(tmp_path: Path) -> None:
    """BPE of few merges cuts words that the other knows whole."""
    vocabulary = tokenizer.train([TEXT], VocabularyOptions(tokenizer="bpe", size=30, min_frequency=1))
    classifier = Classifier(ClassifierConfig(EncoderConfig(len(vocabulary), d_model=16, n_heads=2)))
    save_checkpoint(tmp_path / "cut", Checkpoint(classifier, vocabulary, max_tokens=64, keep="head"), "float32")
    found = outcome(tmp_path, "single", str(tmp_path / "cut"), text=(TEXT,))
    several = store.load(tmp_path / "out" / "cut.safetensors")
    assert len(vocabulary.encode(TEXT).ids) > len(TEXT.split())
    assert several.queries.pieces == tuple(TEXT.split())
    assert "Tokens are joined until all models have the same" in notes(report(found))
    assert data(found)["texts"]["tokens"].tolist() == [len(TEXT.split())]


def test_a_word_is_asked_about(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"text": (TEXT,), "query": "saves"}
    names = {file.name for file in outcome(tmp_path, **asked).files}
    assert {"query-8-layer-0.png", "query-8-layer-1.png"} <= names
    assert "query-8.png" in {file.name for file in outcome(tmp_path / "one", layer=("1",), **asked).files}


@pytest.mark.parametrize("texts", [{"text": (TEXT,)}, {"dataset": "sample", "index": ("0-2",)}])
def test_of_one_model_the_heads_are_compared_with_one_another(texts: dict[str, Any], tmp_path: Path) -> None:
    found = outcome(tmp_path, "multi", **texts)
    assert "similarity.png" in {file.name for file in found.files}
    assert report(found).title.startswith("multi:8 on ")
    assert data(found)["divergences"].shape == (16, 16)
    said = notes(report(found))
    assert "Heads most alike here" in said
    assert [len(table.columns) for table in report(found).tables] == [3, 2]
    assert not any(word in said for word in ("difference", "against", "interval"))


def test_pictures_of_other_texts_or_models_go_and_those_of_the_same_stay(tmp_path: Path) -> None:
    """Also where no record says what they show: each picture does."""
    n_pictures = sum(file.suffix == ".png" for file in outcome(tmp_path, text=(TEXT,)).files)
    assert n_pictures > 4
    several = {"dataset": "sample", "index": ("0-2",)}
    first = outcome(tmp_path, **several, format=("svg",))
    assert any(f"removed {n_pictures} pictures of an earlier run" in notice for notice in first.notices)
    second = outcome(tmp_path, **several, format=("png",))
    assert any("also holds 2 pictures of an earlier run, such as distributions.svg" in said for said in second.notices)
    for change in ({"index": ("0-3",)}, {"models": ("single", "multi:2"), "format": ("svg",)}):
        last = outcome(tmp_path, *change.pop("models", ()), **{**several, **change})
        assert any("removed" in notice for notice in last.notices)
        assert {file.name for file in (tmp_path / "out").iterdir()} == {file.name for file in last.files}


# --- Records without markers ---


MARKED = tokens("[CLS]", "the", "cat", "[SEP]", special=("[CLS]", "[SEP]"))


def test_what_went_to_markers_goes_to_the_sink_and_nothing_is_renormalised() -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 3, 4, 4)), np.ones((4, 4), dtype=bool))
    found = without_markers(record(weights, MARKED))
    assert without_markers(found) is found
    assert found.queries.pieces == ("the", "cat")
    assert found.queries is found.keys
    assert found.weights.tolist() == weights[:, :, 1:3, 1:3].tolist()
    assert found.sink == pytest.approx(weights[:, :, 1:3, [0, 3]].sum(axis=-1))


def test_what_went_to_a_sink_already_is_added() -> None:
    sink = np.full((1, 1, 4), 0.5)
    found = without_markers(record(np.full((1, 1, 4, 4), 0.125), MARKED, sink=sink))
    assert found.sink == pytest.approx(np.full((1, 1, 2), 0.75))
    causal = np.tri(4, dtype=bool)  # masks go with their tokens
    found = without_markers(record(softmax(np.zeros((1, 1, 4, 4)), causal), MARKED, attendable=causal))
    assert found.attendable[0].tolist() == [[True, False], [True, True]]


def test_only_markers_and_other_texts_are_refused() -> None:
    with pytest.raises(InvalidOption, match="all tokens are markers"):
        without_markers(record(np.full((1, 1, 1, 1), 1), tokens("[CLS]", special=("[CLS]",))))
    with pytest.raises(InvalidOption, match="self-attention"):
        without_markers(cross_maps())
