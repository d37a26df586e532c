"""A run that was stopped, in every way there is: it goes on to the same bytes, and nothing of others is lost."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from safetensors.numpy import load_file, save_file

from attnviz import store
from attnviz.commands.train.inputs import STATE
from attnviz.commands.train.spec import TrainSpec
from attnviz.commands.train.training import load_state, state_bytes
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.options import replace_values
from attnviz.running.metrics import load_metrics
from tests.commands.train.runs import GOING_BACK, N_STEPS, SPEC, finished, probe_little, resumed, stopped
from tests.made import DAMAGES, content
from tests.process import leave_part
from tests.starting import train

pytestmark = pytest.mark.usefixtures("few_probes", "drawn_once")
PRETRAINED = replace(SPEC, pretrain=2, max_distance=8)  # two steps an epoch


@cache
def whole(spec: TrainSpec) -> dict[str, bytes]:
    """What a run leaves that nobody stopped."""
    with TemporaryDirectory() as folder:
        finished(spec, Path(folder) / "model")
        return content(Path(folder) / "model")


@pytest.mark.parametrize(
    ("spec", "n_steps", "saved"),
    [
        (replace(SPEC, epochs=4, patience=4), 17, 15),  # the mean of the last six steps begins before
        (SPEC, N_STEPS, N_STEPS),
        (PRETRAINED, 3, 2),
        (PRETRAINED, 10, 9),
    ],
)
def test_a_run_goes_on_after_the_last_whole_epoch_to_the_same_bytes(
    spec: TrainSpec, n_steps: int, saved: int, tmp_path: Path
) -> None:
    stopped(spec, tmp_path / "model", n_steps)
    begun, *steps = resumed(spec, tmp_path / "model")
    assert begun.done == saved
    assert (f"going on after step {saved} of {begun.total}" in begun.log) == (saved > 0)
    assert [step.done for step in steps] == [saved + 1 + n for n in range(len(steps))]
    assert content(tmp_path / "model") == whole(spec)


def test_a_run_that_ran_out_of_patience_goes_on_to_its_end(tmp_path: Path) -> None:
    """Left after its last epoch: nothing more is trained, and the best epoch stays."""
    finished(GOING_BACK, tmp_path / "whole")
    stopped(GOING_BACK, tmp_path / "model", 5 * len(load_metrics(tmp_path / "whole").history.epochs))
    assert len(resumed(GOING_BACK, tmp_path / "model")) == 1
    assert content(tmp_path / "model") == content(tmp_path / "whole")


@pytest.mark.slow
def test_killed_at_a_file_of_each_kind(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder as it was before a file of each kind, with a half-written one: it ends with the same bytes."""
    folders: list[Path] = []

    def keeping(act: Callable[..., None]) -> Callable[..., None]:
        def keep_and_act(path: Path, *data: bytes) -> None:
            folders.append(tmp_path / str(len(folders)))
            shutil.copytree(path.parent, folders[-1])
            leave_part(folders[-1])
            act(path, *data)

        return keep_and_act

    with monkeypatch.context() as patch:
        for act in (store.write, store.remove):
            patch.setattr(store, act.__name__, keeping(act))
        finished(SPEC, tmp_path / "whole")
    assert len(folders) == 1 + 2 * 4 + 3 + 1, "state, two epochs of model and state, what is said of it, the state goes"
    for killed in (folders[n_files] for n_files in (0, 1, 3, 6, 8, 10, 12)):
        finished(replace(SPEC, resume=True), killed)
        assert content(killed) == content(run), killed


# Damage


def changed(**tensors: torch.Tensor) -> Callable[[Path], None]:
    """A whole state with a right checksum, and other tensors, as another version of the program would write it."""

    def change(file: Path) -> None:
        about, given, run = load_state(file)
        file.write_bytes(state_bytes(about, {**given, **tensors}, run))

    return change


def a_device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/null")


def one_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)


def about(text: str) -> Callable[[Path], None]:
    """The same tensors beside other words."""
    return lambda file: save_file(load_file(file), file, {"attnviz": text})


OF_STATES: dict[str, Callable[[Path], object]] = {
    **DAMAGES,
    "one bit": one_bit,
    "a device": a_device,
    "a model": lambda file: shutil.copy(file.with_name("model.safetensors"), file),
    "no JSON": about("{"),
    "words without a checksum": about(json.dumps({"run": {}, "done": 5})),
    "of another shape": changed(**{"model.output.weight": torch.zeros(2, 3)}),
    "of an optimizer of more": changed(**{"optimizer.0.x.step": torch.zeros(())}),
}


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run leaves that was stopped in its second epoch. Not to be changed."""
    folder = tmp_path_factory.mktemp("unfinished") / "model"
    with pytest.MonkeyPatch.context() as patch:
        probe_little(patch)
        stopped(SPEC, folder, 6)
    return folder


@pytest.mark.parametrize("damage", OF_STATES.values(), ids=OF_STATES)
def test_a_damaged_state_is_a_damaged_file(damage: Callable[[Path], object], unfinished: Path, tmp_path: Path) -> None:
    shutil.copytree(unfinished, tmp_path, dirs_exist_ok=True)
    damage(tmp_path / STATE)
    names = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(
        InvalidModel, match=r"training\.safetensors.*\. Choose another --out to start from the beginning"
    ):
        finished(replace(SPEC, resume=True), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names, "nothing is written, and no pickle is run"


# Runs and models of others


def test_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    """The setting that differs is named with both values."""
    stopped(SPEC, folder := tmp_path / "model", 3)
    before = content(folder)
    others: dict[str, dict[str, object]] = {
        "--seed 0, not 5": {"seed": 5},
        "--epochs 2, not 3": {"epochs": 3},
        "--learning-rate 0.005, not 0.0050000001": {"learning_rate": 0.0050000001},
        "--pool mean, not cls": {"pool": "cls"},
        "other texts": {"split": "train[:-1]"},
    }
    for said, change in others.items():
        with pytest.raises(InvalidOption, match=f"the run in {folder} has {said}"):
            finished(replace_values(SPEC, resume=True, **change), folder)
    assert content(folder) == before


def test_a_setting_that_is_left_out_now_is_another(tmp_path: Path) -> None:
    """It went on with the rate at its default."""
    stopped(replace(PRETRAINED, pretrain_rate=0.01), tmp_path / "model", 5)
    with pytest.raises(InvalidOption, match=r"has --pretrain-rate 0\.01, not None"):
        finished(replace_values(PRETRAINED, resume=True), tmp_path / "model")


def test_where_nothing_is_it_starts_from_the_beginning_and_says_so(tmp_path: Path) -> None:
    begun, *_ = resumed(SPEC, tmp_path / "model")
    assert begun.notices[0] == f"{tmp_path / 'model'} holds no training run to go on with: starting from the beginning"


def test_an_unfinished_run_is_not_overwritten(tmp_path: Path) -> None:
    stopped(SPEC, folder := tmp_path / "model", 1)
    before = content(folder)
    with pytest.raises(InvalidOption, match="holds an unfinished training run"):
        train(replace(SPEC, seed=1, out=str(folder)))
    assert content(folder) == before


@pytest.mark.parametrize("resume", [False, True])
def test_a_model_is_not_overwritten(resume: bool, run: Path, tmp_path: Path) -> None:
    """There is no run to go on with, so `--resume` does not begin one over it and is not suggested."""
    shutil.copy(run / "model.safetensors", tmp_path)
    before = content(tmp_path)
    with pytest.raises(InvalidOption, match=r"holds a model, and no run that stopped\. Choose another --out\.$"):
        finished(replace(SPEC, resume=resume), tmp_path)
    assert content(tmp_path) == before
