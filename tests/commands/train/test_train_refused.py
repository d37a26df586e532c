"""What cannot be trained: refused before anything is written, or stopped with what was good kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attnviz.commands.train.inputs import STATE, train_inputs
from attnviz.commands.train.spec import MAX_LENGTH, TrainSpec
from attnviz.errors import ExecutionError, InvalidOption, InvalidSource, InvalidText
from attnviz.models.sizes import MAX_LAYERS
from attnviz.options import replace_values
from attnviz.python.api import parse_settings
from attnviz.running.metrics import load_metrics
from tests.commands.train.runs import CHECKPOINT, SPEC, after_step, finished, resumed
from tests.made import content
from tests.text.corpora import write_csv

pytestmark = pytest.mark.usefixtures("few_probes", "drawn_once")
BAD: dict[str, list[object]] = {
    "epochs": [0, -1],
    "size": [3, 10**7 + 1],
    "min_frequency": [0, 10**12 + 1],
    "batch_size": [0, -1],
    "crop": [1, 0],
    "max_tokens": [1, 0, None, MAX_LENGTH + 1, 10**30],
    "patience": [0],
    "layers": [0, -1, None, MAX_LAYERS + 1, 10**9],
    "seed": [-1, 2**63],
    "dropout": [1, -0.1, float("nan"), float("inf")],
    "word_dropout": [1, -0.1, float("nan")],
    "label_smoothing": [1, -0.1, float("nan")],
    "validation": [0, 0.5, 0.9, -0.1, float("nan")],
    "learning_rate": [0, -1, float("nan"), float("inf"), 1.5, 1e300],
    "heads": [3, 0, -1, None],
    "d_model": [0, -1, None, 10**18 - 1],  # the divisors of the last are not tried: it would take years
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_number_that_cannot_be(name: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=f"^{name}=|^d_model"):
        train_inputs(parse_settings(TrainSpec, **{name: value}))


def test_at_the_limits_it_trains(tmp_path: Path) -> None:
    spec = replace(SPEC, dropout=0.999, word_dropout=0.999, label_smoothing=0.999, seed=2**63 - 1, learning_rate=1.0)
    finished(spec, tmp_path)
    assert np.isfinite([point.loss or np.nan for point in load_metrics(tmp_path).history.points]).all()


GOOD, POOR = ("a good film", 1), ("a bad film", 0)


@pytest.mark.parametrize(
    ("rows", "error", "said"),
    [
        ([POOR, GOOD, ("fine", "joy")], InvalidSource, r"train\[0\] has no label\..* 'label' holds '0', '1', 'joy'"),
        ([GOOD, POOR, ("no label", -1)], InvalidSource, r"data.csv:1: 'label' holds -1, 0 and 1"),
        ([GOOD] * 4, InvalidSource, "every text has the label 1"),
        ([GOOD, GOOD, POOR], InvalidSource, "only one text has the label 0"),
        ([POOR, POOR, ("fine", 2), ("fine", 2)], InvalidSource, "the labels are 0, 2. They have to be 0, 1, 2"),
    ],
    ids=["no label", "-1", "one label", "a label of one text", "a gap"],
)
def test_texts_that_cannot_be_learned_from(
    rows: list[tuple[str, object]], error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        finished(replace_values(SPEC, dataset=str(write_csv(tmp_path / "data.csv", rows))), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_text_without_tokens_is_named_by_its_place_in_the_data(tmp_path: Path) -> None:
    """Not by its place among the texts that were chosen."""
    data = str(write_csv(tmp_path / "data.csv", [*([GOOD, POOR] * 3), (" ", 1)]))
    with pytest.raises(InvalidText, match=r"data.csv train\[6\] has no tokens"):
        finished(replace_values(SPEC, dataset=data, split="train[2:]"), tmp_path / "model")


@pytest.mark.parametrize(
    ("spec", "after", "said", "left", "n_done"),
    [
        (SPEC, 5, "after step 5 weights or losses are not finite", {STATE}, 0),
        (SPEC, 7, "the loss of step 8 is nan", {STATE, *CHECKPOINT}, 5),
    ],
)
def test_training_that_diverges(
    spec: TrainSpec, after: int, said: str, left: set[str], n_done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no number is kept neither as a model nor as a state."""
    with monkeypatch.context() as patch:
        after_step(patch, after, lambda training: training.classifier.output.weight.data.fill_(torch.nan))
        with pytest.raises(ExecutionError, match=f"diverged: {said}.*--learning-rate"):
            finished(spec, tmp_path / "model")
    assert set(content(tmp_path / "model")) == left
    assert resumed(spec, tmp_path / "model")[0].done == n_done
