"""`train` as a function: which files, the same bytes each time and after every way to stop, numbers made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image

from attnviz import store
from attnviz.errors import BadModel, BadOption, BadSource, BadText, OutputFailed, WorkFailed
from attnviz.models import checkpoint, storage
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.predicting import logits, probabilities
from attnviz.models.training import Training, TrainingStep
from attnviz.specs import SourceSpec, StorageKind, TrainSpec
from attnviz.text import open_corpus
from attnviz.workflows.metrics import load_metrics
from attnviz.workflows.train import MOST_LAYERS, MOST_TOKENS, STATE, Event, Started, Trained, check, train

CHECKPOINT = ("model.safetensors", "tokenizer.json", "config.json")
FILES = (*CHECKPOINT, "metrics.json", "README.md", "learning-curve.png")
SPEC = TrainSpec(dataset="sample", epochs=2, batch_size=8, d_model=16, heads=2, bigrams=50, size=300)
N_STEPS = 10  # 36 texts in batches of 8, twice
GOING_BACK = replace(
    SPEC, epochs=8, learning_rate=0.02, patience=3, storage="float32"
)  # its best epoch is not its last


def finished(spec: TrainSpec, folder: Path) -> Trained:
    """A run from beginning to end."""
    *_, last = train(replace(spec, out=str(folder)))
    assert isinstance(last, Trained)
    return last


def stopped(spec: TrainSpec, folder: Path, n_steps: int) -> None:
    """A run that was left after so many steps."""
    events = train(replace(spec, out=str(folder)))
    for event in events:
        if isinstance(event, TrainingStep) and event.number == n_steps:
            events.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*"))}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `SPEC`. Not to be changed."""
    folder = tmp_path_factory.mktemp("run") / "model"
    finished(SPEC, folder)
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., str]:
    """Writes a data set and gives its path."""

    def write(*rows: tuple[str, object], name: str = "data.csv", header: str = "text,label") -> str:
        lines = [header, *(f"{text},{label}" for text, label in rows)]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(tmp_path / name)

    return write


# Files


def test_what_a_run_leaves(run: Path, tmp_path: Path) -> None:
    last = finished(SPEC, tmp_path / "new/model")
    assert set(contents(tmp_path / "new/model")) == set(FILES)
    assert [path.name for path in last.files] == list(FILES)
    assert all(path.parent == tmp_path / "new/model" for path in last.files)
    with Image.open(run / "learning-curve.png") as picture:
        picture.load()
        told: dict[str, str] = dict(picture.text)  # type: ignore[attr-defined]  # of PNG only
    assert told["data"] == "sample train"


def test_same_run_same_bytes_in_every_file(run: Path, tmp_path: Path) -> None:
    """Whatever the folder is called, and whoever has drawn random numbers before."""
    torch.manual_seed(99)
    finished(SPEC, tmp_path / "else where")
    assert contents(tmp_path / "else where") == contents(run)


def test_another_seed_makes_other_weights(run: Path, tmp_path: Path) -> None:
    finished(replace(SPEC, seed=1), tmp_path / "model")
    first, second = contents(run), contents(tmp_path / "model")
    assert {name for name in FILES if first[name] != second[name]} == set(FILES) - {"tokenizer.json", "config.json"}


def test_where_it_is_trained_is_not_in_the_files(run: Path) -> None:
    assert not [name for name, data in contents(run).items() if str(run).encode() in data]
    assert "out" not in load_metrics(run).settings


def test_storage_changes_the_size_of_the_file_and_hardly_an_answer(tmp_path: Path) -> None:
    sizes, answers, histories = {}, {}, set()
    kinds: tuple[StorageKind, ...] = ("float32", "float16", "int8")
    for kind in kinds:
        folder = tmp_path / kind
        finished(replace(SPEC, storage=kind), folder)
        sizes[kind] = (folder / "model.safetensors").stat().st_size
        answers[kind] = answered(folder)
        histories.add(load_metrics(folder).history)
    n_embedded = 16 * (277 + 29)  # entries and pairs
    assert sizes["float32"] - sizes["float16"] == pytest.approx(2 * n_embedded, abs=1000)
    assert sizes["float16"] - sizes["int8"] == pytest.approx(n_embedded, abs=1000)  # but for the scales
    assert len(histories) == 1
    for kind in kinds:
        np.testing.assert_allclose(answers[kind], answers["float32"], atol=0.02)
        assert (answers[kind].argmax(axis=1) == answers["float32"].argmax(axis=1)).mean() >= 0.95


def answered(folder: Path, split: str = "test") -> np.ndarray:
    """Probabilities of the model in `folder` on the sample's texts, of which none is longer than it reads."""
    saved = load_checkpoint(folder)
    texts = [document.text for document in open_corpus(SourceSpec(dataset="sample", split=split)).documents]
    return probabilities(saved.classifier, logits(saved.classifier, list(saved.tokenizer.ids(texts))))


# Events


def test_what_is_told_on_the_way(tmp_path: Path) -> None:
    started, *steps, last = train(replace(SPEC, out=str(tmp_path / "model")))
    assert isinstance(started, Started)
    assert (started.data, started.n_texts, started.n_held_out) == ("sample train", 36, 4)
    assert (started.n_done, started.n_kept, started.n_steps, started.notices) == (0, 0, N_STEPS, ())
    assert [step.number for step in steps if isinstance(step, TrainingStep)] == list(range(1, N_STEPS + 1))
    assert isinstance(last, Trained)
    assert started.n_parameters == last.metrics.n_parameters
    assert last.metrics == load_metrics(tmp_path / "model")


def test_an_epoch_is_on_disk_when_it_is_told(tmp_path: Path) -> None:
    """Model and state: what is killed from now on has lost nothing of it."""
    for event in train(replace(SPEC, out=str(tmp_path))):
        if isinstance(event, TrainingStep) and event.ends_epoch:
            assert set(contents(tmp_path)) == {*CHECKPOINT, STATE}
            load_checkpoint(tmp_path)


def test_left_before_the_first_step_nothing_is_written(tmp_path: Path) -> None:
    events = train(replace(SPEC, out=str(tmp_path / "model")))
    assert isinstance(next(events), Started)
    events.close()
    assert not (tmp_path / "model").exists()


# Numbers


def test_the_metrics_tell_of_this_run(tmp_path: Path) -> None:
    steps: list[TrainingStep] = []
    last: Event | None = None
    for last in train(replace(GOING_BACK, out=str(tmp_path / "model"))):
        if isinstance(last, TrainingStep):
            steps.append(last)
    assert isinstance(last, Trained)
    told = json.loads((tmp_path / "model/metrics.json").read_bytes())

    epochs = [asdict(step.held_out) for step in steps if step.held_out]
    assert told["history"]["epochs"] == epochs
    points = told["history"]["points"]  # with fewer steps than points in an epoch each step is one
    assert [point["loss"] for point in points] == pytest.approx([step.loss for step in steps])
    assert [point["accuracy"] for point in points] == pytest.approx([step.accuracy for step in steps])
    assert [point["epoch"] for point in points] == pytest.approx([step.number / 5 for step in steps])

    best = max(epochs, key=lambda epoch: (epoch["accuracy"], -epoch["loss"]))
    assert best["number"] < epochs[-1]["number"] == best["number"] + 3 < 8, "patience has to be tried here"
    assert [step.epoch for step in steps if step.improved][-1] == best["number"]
    assert told["settings"] == {
        name: value
        for name, value in asdict(GOING_BACK).items()
        if name not in ("dataset", "split", "text_column", "device", "out", "resume", "json")
    }
    assert (told["n_texts"], told["labels"], told["tested"]) == (36, ["negative", "positive"], None)


def test_the_best_epoch_is_the_one_that_is_kept(tmp_path: Path) -> None:
    """Held against a run that ends with that epoch; the rate must not fall before, as it would with fewer epochs."""
    last = finished(GOING_BACK, tmp_path / "all")
    best = last.metrics.history.best
    assert best is not None
    assert last.run is not None
    weights = safetensors.torch.load_file(tmp_path / "all/model.safetensors")
    kept = last.run.training.best_weights
    assert set(weights) == set(kept)
    assert [name for name in kept if not torch.equal(weights[name].double(), kept[name].double())] == []

    one_epoch = tmp_path / "until"
    for event in train(replace(GOING_BACK, out=str(one_epoch))):
        if isinstance(event, TrainingStep) and event.ends_epoch and event.epoch == best.number:
            break
    assert (one_epoch / "model.safetensors").read_bytes() == (tmp_path / "all/model.safetensors").read_bytes()


def test_held_out_numbers_are_those_of_the_files(run: Path) -> None:
    """Of each label the last two texts, by hand from the checkpoint as others would load it."""
    told = load_metrics(run).held_out
    assert told is not None
    documents = open_corpus(SourceSpec(dataset="sample", split="train")).documents
    gold = np.array([document.label for document in documents])
    held = np.concatenate([np.flatnonzero(gold == label)[-2:] for label in (0, 1)])
    said = answered(run, "train")[held]
    assert told.n_texts == len(held) == 4
    assert told.accuracy.value == pytest.approx((said.argmax(axis=1) == gold[held]).mean())
    assert told.accuracy.low < told.accuracy.value < told.accuracy.high
    assert told.loss == pytest.approx(-np.log(said[range(4), gold[held]]).mean(), rel=1e-6)
    assert told.temperature == pytest.approx(load_checkpoint(run).classifier.temperature.item())


def test_labels_that_rounding_changed_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against what was in memory, and so coarsely that there are some."""
    monkeypatch.setattr(storage, "LARGEST", 1)
    last = finished(replace(SPEC, validation=0.49), tmp_path)
    assert last.run is not None
    texts = last.run.training.held_out.texts
    before, after = (logits(one, texts) for one in (last.run.training.best(), load_checkpoint(tmp_path).classifier))
    assert last.metrics.held_out is not None
    assert last.metrics.held_out.labels_changed == (before.argmax(dim=1) != after.argmax(dim=1)).sum() > 0


def test_weights_and_data_are_named_by_their_sha256(run: Path, table: Callable[..., str], tmp_path: Path) -> None:
    assert load_metrics(run).weights_sha256 == hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()
    assert load_metrics(run).weights_sha256 == load_checkpoint(run).revision

    rows = [("a good film", 1), ("a bad film", 0)] * 4
    found = set()
    for number, change in enumerate(
        (rows, rows[::-1], [*rows[:-1], ("a bad movie", 0)], [(t, 1 - n) for t, n in rows])
    ):
        finished(replace(SPEC, dataset=table(*change)), tmp_path / str(number))
        found.add(load_metrics(tmp_path / str(number)).data_sha256)
    assert len(found) == 4


@pytest.mark.parametrize("n_texts", [40, 10])
def test_nothing_held_out(n_texts: int, tmp_path: Path) -> None:
    last = finished(replace(SPEC, validation=0.0, split=f"train[:{n_texts}]"), tmp_path / "model")
    assert last.metrics.n_texts == n_texts
    assert last.metrics.held_out is None
    assert last.metrics.history.epochs == ()
    card = (tmp_path / "model/README.md").read_text(encoding="utf-8")
    assert "No epoch was measured on texts held out." in card
    assert "accuracy (95" not in card
    assert set(contents(tmp_path / "model")) == set(FILES)


@pytest.mark.parametrize(
    "change",
    [
        {"tokenizer": "bpe"},
        {"pool": "cls", "max_tokens": 2, "crop": 2},
        {"pool": "attention", "norm": "post", "keep": "head"},
        {"layers": 3, "heads": 16, "bigrams": 0},
        {"batch_size": 10**9, "crop": 10**9, "max_tokens": 10_000},
    ],
    ids=str,
)
def test_every_shape_trains_and_loads(change: dict[str, object], tmp_path: Path) -> None:
    last = finished(replace(SPEC, **change), tmp_path / "model")  # type: ignore[arg-type]
    assert load_checkpoint(tmp_path / "model").revision == last.metrics.weights_sha256
    for name, value in change.items():
        assert last.metrics.settings[name] == value


def test_a_column_is_named_in_the_settings(table: Callable[..., str], tmp_path: Path) -> None:
    """Else the card's command would read another column."""
    rows = [("a good film", 1), ("a bad film", 0)] * 4
    data = table(*rows, header="my words,label")
    last = finished(replace(SPEC, dataset=data, text_column="my words"), tmp_path / "model")
    assert last.metrics.settings["text_column"] == "my words"
    assert "--text-column 'my words'" in dict(last.report.facts)["command"]


# Going on


@pytest.mark.parametrize("n_steps", [1, 5, 6, N_STEPS])
def test_a_run_that_was_left_goes_on_to_the_same_bytes(n_steps: int, run: Path, tmp_path: Path) -> None:
    stopped(SPEC, tmp_path / "model", n_steps)
    assert set(contents(tmp_path / "model")) == ({STATE, *CHECKPOINT} if n_steps >= 5 else {STATE})
    started, *steps, last = train(replace(SPEC, out=str(tmp_path / "model"), resume=True))
    assert isinstance(started, Started)
    assert (started.n_done, started.n_kept) == (n_steps, n_steps // 5)
    assert len(steps) == N_STEPS - n_steps
    assert isinstance(last, Trained)
    assert contents(tmp_path / "model") == contents(run)


def test_a_run_that_is_left_again_and_again(run: Path, tmp_path: Path) -> None:
    for n_steps in range(1, N_STEPS):
        stopped(replace(SPEC, resume=True), tmp_path / "model", n_steps)
    finished(replace(SPEC, resume=True), tmp_path / "model")
    assert contents(tmp_path / "model") == contents(run)


def test_without_texts_held_out_a_run_goes_on_as_well(tmp_path: Path) -> None:
    spec = replace(SPEC, validation=0.0)
    finished(spec, tmp_path / "whole")
    stopped(spec, tmp_path / "model", 7)
    started, *_, _ = train(replace(spec, out=str(tmp_path / "model"), resume=True))
    assert isinstance(started, Started)
    assert started.n_kept == 1
    assert contents(tmp_path / "model") == contents(tmp_path / "whole")


def test_a_run_that_ran_out_of_patience_goes_on_to_its_end(tmp_path: Path) -> None:
    """Left after its last epoch: nothing more is trained, and the best epoch stays."""
    whole = finished(GOING_BACK, tmp_path / "whole")
    n_epochs = len(whole.metrics.history.epochs)
    stopped(GOING_BACK, tmp_path / "model", 5 * n_epochs)
    _, *steps = train(replace(GOING_BACK, out=str(tmp_path / "model"), resume=True))
    assert [type(event) for event in steps] == [Trained]
    assert contents(tmp_path / "model") == contents(tmp_path / "whole")


class Killed(BaseException):
    """As if the process were gone."""


@pytest.mark.slow
@pytest.mark.parametrize("half_written", [True, False])
def test_killed_at_every_file(half_written: bool, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each file in turn, with and without a half-written one left: the second run ends with the same bytes."""
    write, remove = store.write, store.remove
    left = 0

    def one_less(path: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            if half_written:
                path.with_name(f".{path.name}.999999999.part").write_bytes(b"half")
            raise Killed

    def killing_write(path: Path, data: bytes) -> None:
        one_less(path)
        write(path, data)

    def killing_remove(path: Path) -> None:
        one_less(path)
        remove(path)

    for n_files in range(100):
        folder = tmp_path / str(n_files)
        left = n_files
        with monkeypatch.context() as patch:
            patch.setattr(store, "write", killing_write)
            patch.setattr(store, "remove", killing_remove)
            try:
                finished(SPEC, folder)
            except Killed:
                pass
            else:
                break
        finished(replace(SPEC, resume=True), folder)
        assert contents(folder) == contents(run), n_files
    assert n_files == 1 + 2 * 4 + 3 + 1, "state, two epochs of model and state, what is said of it, and the state goes"


def test_a_finished_run_is_not_trained_again(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(SPEC, tmp_path / "model")
    (tmp_path / "model/README.md").unlink()
    monkeypatch.setattr(Training, "__init__", None)
    (only,) = train(replace(SPEC, out=str(tmp_path / "model"), resume=True))
    assert isinstance(only, Trained)
    assert only.run is None
    assert only.metrics == load_metrics(run)
    assert contents(tmp_path / "model") == contents(run)


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"other")], ids=["gone", "changed"])
def test_a_finished_run_without_its_weights(damage: Callable[[Path], object], tmp_path: Path) -> None:
    """It would be told that all is there."""
    finished(SPEC, tmp_path)
    damage(tmp_path / "model.safetensors")
    with pytest.raises(BadModel, match=r"model.safetensors is not what metrics.json tells of. Delete metrics.json"):
        finished(replace(SPEC, resume=True), tmp_path)


@pytest.mark.parametrize("n_steps", [3, N_STEPS], ids=["unfinished", "finished"])
def test_another_run_is_not_gone_on_with(n_steps: int, run: Path, tmp_path: Path) -> None:
    """The setting that differs is named with both values."""
    folder = tmp_path / "model"
    if n_steps < N_STEPS:
        stopped(SPEC, folder, n_steps)
    else:
        finished(SPEC, folder)
    before = contents(folder)
    others: dict[str, dict[str, object]] = {
        "--seed 0, not 5": {"seed": 5},
        "--epochs 2, not 3": {"epochs": 3},
        "--learning-rate 0.002, not 0.0020000001": {"learning_rate": 0.0020000001},
        "--pool mean, not cls": {"pool": "cls"},
        "--storage int8, not float32": {"storage": "float32"},
        "--patience 2, not 1": {"patience": 1},
        "other texts": {"split": "train[:-1]"},
    }
    for said, change in others.items():
        with pytest.raises(BadOption, match=f"the run in {folder} has {said}"):
            finished(replace(SPEC, resume=True, **change), folder)  # type: ignore[arg-type]
    assert contents(folder) == before


def test_where_nothing_is_it_starts_from_the_beginning_and_says_so(run: Path, tmp_path: Path) -> None:
    started, *_ = train(replace(SPEC, out=str(tmp_path / "model"), resume=True))
    assert isinstance(started, Started)
    assert started.notices == (
        f"{tmp_path / 'model'} holds no training run to go on with: starting from the beginning",
    )
    finished(replace(SPEC, resume=True), tmp_path / "model")
    assert contents(tmp_path / "model") == contents(run)


@pytest.mark.parametrize(
    ("n_steps", "said"), [(1, "an unfinished training run"), (7, "an unfinished training run"), (N_STEPS, "a model")]
)
def test_nothing_is_overwritten(n_steps: int, said: str, tmp_path: Path) -> None:
    if n_steps < N_STEPS:
        stopped(SPEC, tmp_path, n_steps)
    else:
        finished(SPEC, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(BadOption, match=f"holds {said}. Go on with it by --resume"):
        train(replace(SPEC, seed=1, out=str(tmp_path)))
    assert contents(tmp_path) == before


def test_files_of_others_are_left_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_bytes(b"mine")
    finished(SPEC, tmp_path)
    assert contents(tmp_path) == {**contents(run), "mine.txt": b"mine"}


# What is refused


BAD: dict[str, list[object]] = {
    "epochs": [0, -1],
    "batch_size": [0, -1],
    "crop": [1, 0],
    "max_tokens": [1, 0, None, MOST_TOKENS + 1, 10**30],
    "patience": [0],
    "bigrams": [-1],
    "layers": [0, -1, None, MOST_LAYERS + 1, 10**9],
    "seed": [-1, 2**63],
    "dropout": [1, -0.1, float("nan"), float("inf")],
    "word_dropout": [1, -0.1, float("nan")],
    "label_smoothing": [1, -0.1, float("nan")],
    "validation": [0.5, 0.9, -0.1, float("nan")],
    "learning_rate": [0, -1, float("nan"), float("inf"), 1.5, 1e300],
    "heads": [3, 0, -1, None],
    "d_model": [0, -1, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_number_that_cannot_be(name: str, value: object) -> None:
    option = "d_model" if name in ("heads", "d_model") else "--" + name.replace("_", "-")
    with pytest.raises(BadOption, match=option):
        check(replace(TrainSpec(), **{name: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 1, "batch_size": 1, "crop": 2, "max_tokens": 2, "patience": 1, "bigrams": 0, "layers": 1},
        {"dropout": 0.0, "word_dropout": 0.0, "label_smoothing": 0.0, "validation": 0.0, "seed": 0},
        {"dropout": 0.999, "word_dropout": 0.999, "label_smoothing": 0.999, "validation": 0.499, "seed": 2**63 - 1},
        {"learning_rate": 1.0, "heads": 1, "d_model": 1, "layers": MOST_LAYERS, "max_tokens": MOST_TOKENS},
        {"learning_rate": 5e-324, "heads": 32},
    ],
    ids=str,
)
def test_the_least_and_the_most_that_can_be(change: dict[str, object]) -> None:
    check(replace(TrainSpec(), **change))  # type: ignore[arg-type]


def test_no_more_layers_are_trained_than_can_be_loaded() -> None:
    assert MOST_LAYERS == checkpoint.MOST_LAYERS


def test_at_the_limits_it_trains(tmp_path: Path) -> None:
    spec = replace(SPEC, dropout=0.999, word_dropout=0.999, label_smoothing=0.999, seed=2**63 - 1, learning_rate=1.0)
    assert np.isfinite([point.loss for point in finished(spec, tmp_path).metrics.history.points]).all()


def test_numbers_are_refused_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="--epochs 0"):
        train(replace(SPEC, dataset="no such data", epochs=0, out=str(tmp_path / "model")))


GOOD, POOR = ("a good film", 1), ("a bad film", 0)


@pytest.mark.parametrize(
    ("rows", "error", "said"),
    [
        ([GOOD, POOR, ("no label", "")], BadSource, r"data.csv train\[2\] has no label"),
        ([GOOD, POOR, ("no label", -1)], BadSource, r"data.csv train\[2\] has no label"),
        ([GOOD] * 4, BadSource, "every text has the label 1"),
        ([GOOD, GOOD, POOR], BadSource, "only one text has the label 0"),
        ([POOR, POOR, ("fine", 2), ("fine", 2)], BadSource, "the labels are 0, 2. They have to be 0, 1, 2"),
        ([GOOD, POOR] * 2 + [(" ", 1)], BadText, "text 4 of the split has no tokens"),
        ([GOOD, POOR] * 2 + [("<br />", 1)], BadText, "text 4 of the split has no tokens"),
    ],
    ids=["no label", "-1", "one label", "a label of one text", "a gap", "blank", "line breaks only"],
)
def test_texts_that_cannot_be_learned_from(
    rows: list[tuple[str, object]], error: type[Exception], said: str, table: Callable[..., str], tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        finished(replace(SPEC, dataset=table(*rows)), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def astray(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Weights that are no numbers once so many steps are done."""
    learn = Training._learn

    def learned(self: Training, batch: np.ndarray) -> tuple[float, float]:
        found = learn(self, batch)
        if self.done + 1 == after:
            self.classifier.output.weight.data.fill_(torch.nan)
        return found

    monkeypatch.setattr(Training, "_learn", learned)


@pytest.mark.parametrize(
    ("after", "said", "left", "n_done"),
    [
        (1, "the loss of step 2 is nan", {STATE}, 0),
        (5, "the held-out loss is nan", {STATE}, 0),
        (7, "the loss of step 8 is nan", {STATE, *CHECKPOINT}, 5),
    ],
)
def test_training_that_goes_astray(
    after: int, said: str, left: set[str], n_done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no number is kept neither as a model nor as a state."""
    with monkeypatch.context() as patch:
        astray(patch, after)
        with pytest.raises(WorkFailed, match=f"went astray: {said}.*--learning-rate"):
            finished(SPEC, tmp_path / "model")
    assert set(contents(tmp_path / "model")) == left
    started, *_, last = train(replace(SPEC, out=str(tmp_path / "model"), resume=True))
    assert isinstance(started, Started)
    assert started.n_done == n_done
    assert isinstance(last, Trained)


def test_a_disk_that_refuses_does_so_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise OutputFailed(f"cannot write {path}: Read-only file system")

    monkeypatch.setattr(store, "write", refuse)
    events: Iterator[Event] = train(replace(SPEC, out=str(tmp_path / "model")))
    assert isinstance(next(events), Started)
    with pytest.raises(OutputFailed):
        next(events)


def test_a_state_every_so_often_within_a_long_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnviz.workflows import train as workflow

    monkeypatch.setattr(workflow, "SAVED_EVERY", 0.0)
    states = set()
    for event in train(replace(SPEC, out=str(tmp_path))):
        if isinstance(event, TrainingStep):
            states.add((tmp_path / STATE).read_bytes())
    assert len(states) == N_STEPS
