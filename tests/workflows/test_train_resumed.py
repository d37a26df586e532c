"""A run that was stopped, in every way there is: it goes on to the same bytes, and nothing of others is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from attnviz import store
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models.training import Training
from attnviz.options import with_values
from attnviz.workflows.metrics import load_metrics
from attnviz.workflows.train import STATE, Started, Trained, train
from tests.workflows.runs import CHECKPOINT, GOING_BACK, N_STEPS, SPEC, contents, finished, stopped

pytestmark = pytest.mark.usefixtures("few_probes", "drawn_once", "without_shape_checks")


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


@pytest.mark.parametrize("n_steps", [1, 9])  # within pretraining, and after it
def test_a_run_with_pretraining_goes_on_as_well(n_steps: int, tmp_path: Path) -> None:
    spec = replace(SPEC, pretrain=2, max_distance=8)
    whole = finished(spec, tmp_path / "whole")
    assert [point.epoch for point in whole.metrics.history.words][-1] == 2.0
    stopped(spec, tmp_path / "model", n_steps)
    started, *steps, _ = train(replace(spec, out=str(tmp_path / "model"), resume=True))
    assert isinstance(started, Started)
    assert (started.n_done, started.n_steps) == (n_steps, n_steps + len(steps))
    assert contents(tmp_path / "model") == contents(tmp_path / "whole")
    assert "pretraining-curve.png" in contents(tmp_path / "model")


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
def test_killed_at_every_file(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each file in turn, with a half-written one left: the second run ends with the same bytes."""
    write, remove = store.write, store.remove
    left = 0

    def one_less(path: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            path.with_name(f".{path.name}.999999999.attnviz.part").write_bytes(b"half")
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
    assert n_files == 1 + 2 * 4 + 4 + 1, "state, two epochs of model and state, what is said of it, and the state goes"


def test_a_finished_run_is_not_trained_again(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(run, tmp_path / "model")
    (tmp_path / "model/README.md").unlink()
    monkeypatch.setattr(Training, "__init__", None)
    (only,) = train(replace(SPEC, out=str(tmp_path / "model"), resume=True))
    assert isinstance(only, Trained)
    assert only.run is None
    assert only.metrics == load_metrics(run)
    assert contents(tmp_path / "model") == contents(run)


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"other")], ids=["gone", "changed"])
def test_a_finished_run_without_its_weights(damage: Callable[[Path], object], run: Path, tmp_path: Path) -> None:
    """It would be told that all is there."""
    shutil.copytree(run, tmp_path / "model")
    damage(tmp_path / "model/model.safetensors")
    with pytest.raises(
        InvalidModel, match=r"model.safetensors is not what metrics.json tells of. Choose another --out"
    ):
        finished(replace(SPEC, resume=True), tmp_path / "model")


def left_after(n_steps: int, run: Path, folder: Path) -> Path:
    """What a training leaves that was stopped then, or the whole one."""
    if n_steps < N_STEPS:
        stopped(SPEC, folder / "model", n_steps)
    else:
        shutil.copytree(run, folder / "model")
    return folder / "model"


@pytest.mark.parametrize("n_steps", [3, N_STEPS], ids=["unfinished", "finished"])
def test_another_run_is_not_gone_on_with(n_steps: int, run: Path, tmp_path: Path) -> None:
    """The setting that differs is named with both values."""
    before = contents(folder := left_after(n_steps, run, tmp_path))
    others: dict[str, dict[str, object]] = {
        "--seed 0, not 5": {"seed": 5},
        "--epochs 2, not 3": {"epochs": 3},
        "--learning-rate 0.005, not 0.0050000001": {"learning_rate": 0.0050000001},
        "--pool mean, not cls": {"pool": "cls"},
        "--storage int8, not float32": {"storage": "float32"},
        "--patience 2, not 1": {"patience": 1},
        "other texts": {"split": "train[:-1]"},
    }
    for said, change in others.items():
        with pytest.raises(InvalidOption, match=f"the run in {folder} has {said}"):
            finished(with_values(SPEC, resume=True, **change), folder)
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
def test_nothing_is_overwritten(n_steps: int, said: str, run: Path, tmp_path: Path) -> None:
    before = contents(folder := left_after(n_steps, run, tmp_path))
    with pytest.raises(InvalidOption, match=f"holds {said}. Go on with it by --resume"):
        train(replace(SPEC, seed=1, out=str(folder)))
    assert contents(folder) == before


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("names", [CHECKPOINT, ("model.safetensors",), ("model.safetensors", "README.md")], ids=len)
def test_a_model_of_others_is_not_overwritten(names: tuple[str, ...], resume: bool, run: Path, tmp_path: Path) -> None:
    """There is no run to go on with, so `--resume` does not begin one over it and is not suggested."""
    for name in names:
        shutil.copy(run / name, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(
        InvalidOption, match=r"holds a model, but nothing of the run that made it\. Choose another --out\.$"
    ):
        finished(replace(SPEC, resume=resume), tmp_path)
    assert contents(tmp_path) == before


def test_files_of_others_are_left_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_bytes(b"mine")
    finished(SPEC, tmp_path)
    assert contents(tmp_path) == {**contents(run), "mine.txt": b"mine"}
