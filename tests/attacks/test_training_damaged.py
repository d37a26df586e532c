"""Training that finds damaged files, files of another run or of somebody else in its folder: none is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests.attacks.endings import RunHere, refused, worked
from tests.attacks.test_checkpoints import DAMAGES, TRACE, Damage, a_folder, missing
from tests.attacks.trainings import CHECKPOINT, METRICS, STATE, TINY, check_whole, contents
from tests.process import RunCli
from tests.workflows.runs import SPEC, stopped


@pytest.fixture(scope="module")
def after_seven_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of ten. Not to be changed."""
    folder = tmp_path_factory.mktemp("stopped") / "model"
    stopped(SPEC, folder, 7)
    assert check_whole(folder) == {STATE, *CHECKPOINT}
    return folder


@pytest.fixture
def unfinished(after_seven_steps: Path, tmp_path: Path) -> Path:
    """A run that was left after seven steps of ten."""
    return Path(shutil.copytree(after_seven_steps, tmp_path / "model"))


@pytest.fixture
def ended(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def told(**changed: object) -> Damage:
    """Other words beside the tensors; None takes one away."""

    def change(file: Path) -> None:
        with safe_open(file, "pt") as opened:
            ((key, words),) = opened.metadata().items()
        found = {name: value for name, value in {**json.loads(words), **changed}.items() if value is not None}
        save_file(load_file(file), file, {key: json.dumps(found)})

    return change


def garbled(file: Path) -> None:
    with safe_open(file, "pt") as opened:
        save_file(load_file(file), file, dict.fromkeys(opened.metadata(), "{"))


def without_the_model(file: Path) -> None:
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata()
    save_file(
        {name: tensor for name, tensor in load_file(file).items() if not name.startswith("model.")}, file, metadata
    )


def no_metadata(file: Path) -> None:
    save_file(load_file(file), file)


STATES: dict[str, Damage] = {
    **{damage.__name__: damage for damage in DAMAGES if damage is not missing},
    "no metadata": no_metadata,
    "words that are no JSON": garbled,
    "no identity": told(identity=None),
    "an identity of another kind": told(identity=[1]),
    "a rest of another kind": told(rest=[1]),
    "a rest without a history": told(rest={"done": 7}),
    "no model": without_the_model,
}


@pytest.mark.parametrize("damage", STATES.values(), ids=STATES)
def test_a_damaged_state(damage: Damage, unfinished: Path, run_here: RunHere, tmp_path: Path) -> None:
    damage(unfinished / STATE)
    before = contents(tmp_path)
    run = refused(run_here(*TINY, "--resume"), f"model/{STATE} is no training run to go on with", "another --out")
    assert run.stderr.count("\n") == 1
    assert contents(tmp_path) == before
    assert not (tmp_path / TRACE).exists()


def test_a_damaged_state_does_as_its_hint_says(
    unfinished: Path, whole: Path, run_here: RunHere, tmp_path: Path
) -> None:
    (unfinished / STATE).write_bytes(b"")
    run = refused(run_here(*TINY, "--resume"), "Choose another --out to start from the beginning.")
    assert run.stderr.endswith("beginning.\n")
    worked(run_here(*TINY, "--resume", "--out", "another"))
    assert contents(tmp_path / "another") == contents(whole)


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage is not missing], ids=lambda d: d.__name__)
def test_damaged_metrics(damage: Damage, ended: Path, run_here: RunHere, tmp_path: Path) -> None:
    damage(ended / METRICS)
    said = "cannot read model/metrics.json: Is a directory" if damage is a_folder else "holds no metrics of ours"
    refused(run_here(*TINY, "--resume"), f"model/{METRICS}", said)
    assert not (tmp_path / TRACE).exists()


def test_a_model_that_was_changed_is_not_vouched_for(ended: Path, run_here: RunHere) -> None:
    weights = ended / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x55")
    refused(run_here(*TINY, "--resume"), "model/model.safetensors is not what metrics.json tells of")


@pytest.mark.parametrize("more", [(), ("--resume",)], ids=["", "--resume"])
def test_a_model_of_somebody(more: tuple[str, ...], run_here: RunHere, tmp_path: Path) -> None:
    """Which no run of ours can go on from."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.safetensors").write_bytes(b"mine")
    run = refused(run_here(*TINY, *more), "model holds a model, but nothing of the run that made it. Choose another")
    assert run.stderr.count("\n") == 1
    assert contents(tmp_path) == {"model/model.safetensors": b"mine"}


@pytest.mark.slow
def test_a_pickle_in_a_process(unfinished: Path, run_forked: RunCli, tmp_path: Path) -> None:
    (damage,) = (damage for damage in DAMAGES if damage.__name__ == "pickled")
    damage(unfinished / STATE)
    refused(run_forked(*TINY, "--resume"), f"model/{STATE}")
    assert not (tmp_path / TRACE).exists()


def test_another_run_in_the_folder(unfinished: Path, run_here: RunHere) -> None:
    before = contents(unfinished)
    refused(run_here(*TINY), "model holds an unfinished training run. Go on with it by --resume, or choose another")
    refused(run_here(*TINY, "--resume", "--seed", "3"), "the run in model has --seed 0, not 3")
    refused(run_here(*TINY, "--resume", "--split", "test"), "the run in model has other texts")
    assert contents(unfinished) == before
