"""`train` as a function: which files, the same bytes each time, numbers made again."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image

from attnviz.commands.train import recipe
from attnviz.commands.train.recipe import Run
from attnviz.commands.train.run import PRINT_OPTIONS
from attnviz.commands.train.training import Training, TrainingStep
from attnviz.inputs import digest_texts
from attnviz.models import checkpoint
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.predicting import logits, probabilities
from attnviz.options import list_values
from attnviz.running.metrics import load_metrics
from attnviz.specs import OF_DATA_SETS, TextOptions
from attnviz.text import load_corpus
from tests.commands.train.runs import FILES, GOING_BACK, SPEC, finished, stopped
from tests.events import report, result
from tests.made import content, known, notes
from tests.starting import predict

pytestmark = pytest.mark.usefixtures("few_probes", "drawn_once")

# Files


def test_what_a_run_leaves(run: Path, tmp_path: Path) -> None:
    """In a folder that it makes, or beside files of others, which are left alone; where it is is in no file."""
    (tmp_path / "mine.txt").write_bytes(b"mine")
    last = finished(SPEC, tmp_path)
    assert content(tmp_path) == {**content(run), "mine.txt": b"mine"}
    assert set(content(run)) == set(FILES)
    assert list(last.files) == [tmp_path / name for name in FILES]
    with Image.open(run / "learning-curve.png") as picture:
        picture.load()
        told: dict[str, str] = dict(picture.text)  # type: ignore[attr-defined]  # of PNG only
    assert (told["data"], {"weights sha256", "command"} <= told.keys()) == ("sample train", True)


# Progress


def test_left_before_the_first_step_nothing_is_written(tmp_path: Path) -> None:
    stopped(SPEC, tmp_path / "model", 0)
    assert not (tmp_path / "model").exists()


# Numbers


def runs_of(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Every run that begins from now on."""
    runs = []

    def begun(*given: Any) -> Run:
        runs.append(begin(*given))
        return runs[-1]

    begin = recipe.begin
    monkeypatch.setattr("attnviz.commands.train.run.begin", begun)
    return runs


def test_the_metrics_tell_of_this_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[TrainingStep] = []
    take = Training.steps

    def taken(self: Training) -> Iterator[TrainingStep]:
        for step in take(self):
            steps.append(step)
            yield step

    monkeypatch.setattr(Training, "steps", taken)
    finished(GOING_BACK, tmp_path / "model")
    told = json.loads((tmp_path / "model/metrics.json").read_bytes())

    epochs = [asdict(step.held_out) for step in steps if step.held_out]
    assert told["history"]["epochs"] == epochs
    points = told["history"]["points"]  # with fewer steps than points in an epoch each step is one
    assert [point["loss"] for point in points] == pytest.approx([step.loss for step in steps])
    assert [point["accuracy"] for point in points] == pytest.approx([step.accuracy for step in steps])
    assert [point["epoch"] for point in points] == pytest.approx([number / 5 for number in range(1, len(steps) + 1)])

    best = max(epochs, key=lambda epoch: (epoch["accuracy"], -epoch["loss"]))
    assert best["number"] < epochs[-1]["number"] == best["number"] + 3 < 8, "patience has to be tried here"
    assert [step.epoch for step in steps if step.improved][-1] == best["number"]
    assert told["settings"] == {
        name: value
        for name, value in list_values(GOING_BACK).items()
        if name not in (*OF_DATA_SETS, "device", "out", "resume", *PRINT_OPTIONS) and value is not None
    }
    assert (told["n_texts"], told["labels"], told["tested"]) == (36, ["negative", "positive"], None)


def test_the_best_epoch_is_the_one_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held against a run that ends with that epoch; the rate must not fall before, as it would with fewer epochs."""
    runs = runs_of(monkeypatch)
    finished(GOING_BACK, tmp_path / "all")
    best = known(load_metrics(tmp_path / "all").history.best)
    weights = safetensors.torch.load_file(tmp_path / "all/model.safetensors")
    kept = runs[0].training.best_weights
    assert set(weights) == set(kept)
    assert [name for name in kept if not torch.equal(weights[name].double(), kept[name].double())] == []

    stopped(GOING_BACK, tmp_path / "until", 5 * best.number)
    assert (tmp_path / "until/model.safetensors").read_bytes() == (tmp_path / "all/model.safetensors").read_bytes()


def test_held_out_numbers_are_those_of_the_files(run: Path) -> None:
    """Of each label the last two texts, by hand from the checkpoint as others would load it."""
    told = load_metrics(run).held_out
    corpus, saved = load_corpus(TextOptions(dataset="sample", split="train")), load_checkpoint(run)
    gold = np.array([document.label for document in corpus.documents])
    held = np.concatenate([np.flatnonzero(gold == label)[-2:] for label in (0, 1)])
    # None of these texts is longer than the model reads.
    said = probabilities(saved.classifier, logits(saved.classifier, list(saved.tokenizer.ids(corpus.texts))))[held]
    assert told.n_texts == len(held) == 4
    assert known(load_metrics(run).heads).n_texts == 4, "each text once"
    assert told.accuracy.value == pytest.approx((said.argmax(axis=1) == gold[held]).mean())
    assert told.accuracy.low < told.accuracy.value < told.accuracy.high
    assert told.loss == pytest.approx(-np.log(said[range(4), gold[held]]).mean(), rel=1e-6)
    assert told.temperature == pytest.approx(saved.classifier.temperature.item())


def test_labels_that_rounding_changed_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against what was in memory, and so coarsely that there are some."""
    monkeypatch.setattr(checkpoint, "MAX_INT8", 1)
    runs = runs_of(monkeypatch)
    finished(replace(SPEC, validation=0.49), tmp_path)
    run = runs[0]
    texts = run.training.held_out.texts
    before, after = (logits(one, texts) for one in (run.training.copy_best(), load_checkpoint(tmp_path).classifier))
    held_out = load_metrics(tmp_path).held_out
    assert held_out.labels_changed == (before.argmax(dim=1) != after.argmax(dim=1)).sum() > 0


def test_weights_and_data_are_named_by_their_sha256(run: Path) -> None:
    assert load_metrics(run).weights_sha256 == hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()
    assert load_metrics(run).weights_sha256 == load_checkpoint(run).revision

    corpus = load_corpus(TextOptions(dataset="sample", split="train"))
    texts, back = list(corpus.documents), corpus.documents[::-1]
    relabelled = [replace(each, label=other.label) for each, other in zip(texts, back, strict=True)]
    several = texts, back, [*texts[:-1], replace(texts[-1], text="a bad movie")], relabelled
    assert load_metrics(run).data_sha256 == digest_texts(texts)
    assert len({digest_texts(each) for each in several}) == 4


def test_that_a_model_learned_from_texts_stands_beside_how_often_it_is_right_on_them(run: Path) -> None:
    splits = ("train", "train[:9]", "test")
    same, part, other = (report(result(predict(dataset="sample", split=each, model=str(run)))) for each in splits)
    assert other.subtitle.startswith("trained on sample train, weights sha256 ")
    assert "The model was trained on 36 of these texts: on others it may be right less often." in notes(same)
    assert "The model was trained on 36 texts of sample train: on others it may be right less often." in notes(part)
    assert "The model was trained" not in notes(other)
