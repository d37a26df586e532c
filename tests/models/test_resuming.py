"""A training run as a file: it goes on from there as if it had never stopped, and no other file is believed."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from attnviz.errors import InvalidModel
from attnviz.models.recipe import begin
from attnviz.models.resuming import KEY, MAX_REASON_LENGTH, resume, state_bytes, state_identity
from attnviz.models.training import Training
from attnviz.options import build, with_values
from attnviz.specs.train import TrainSpec
from tests.made import Bomb

TEXTS = [f"{text} number {n}" for text in ("a bad film", "so bad", "a good film", "so good") for n in range(6)]
SPEC = build(
    TrainSpec,
    epochs=3,
    batch_size=8,
    d_model=8,
    heads=2,
    dropout=0.1,
    word_dropout=0.1,
    learning_rate=0.02,
    size=50,
    pretrain=0,
)
IDENTITY = {"data": "sample", "seed": 0, "rates": [0.5, 0.02], "name": "Größe 大"}


def run(n_steps: int = 0, spec: TrainSpec = SPEC) -> Training:
    """Three steps are an epoch."""
    training = begin(TEXTS, [0] * 12 + [1] * 12, spec).training
    for _ in islice(training.steps(), n_steps):
        pass
    return training


@cache
def after_four_steps() -> bytes:
    return state_bytes(run(4), IDENTITY)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "training.safetensors"
    file.write_bytes(after_four_steps())
    return file


def contents(training: Training) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Weights, those of the best epoch, what the optimizers remember; and all else."""
    tensors, rest = training.state()
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}, rest


@pytest.mark.parametrize("n_steps", [0, 1, 3, 4, 9])
def test_a_run_taken_up_is_the_run(n_steps: int, tmp_path: Path) -> None:
    file = tmp_path / "training.safetensors"
    first, second = run(n_steps), run()
    file.write_bytes(state_bytes(first, IDENTITY))
    resume(second, file)
    assert contents(second) == contents(first)
    assert second.done == first.done == n_steps
    assert second.history == first.history
    assert len(second.history.epochs) == n_steps // 3
    assert any(name.startswith("optimizer.") for name in contents(second)[0]) == (n_steps > 0)
    assert bool(second.best_weights) == (n_steps >= 3)


def test_it_goes_on_as_if_it_had_never_stopped(file: Path) -> None:
    first, second = run(4), run()
    resume(second, file)
    assert next(second.steps()) == next(first.steps())
    assert contents(second) == contents(first)


def test_a_point_of_the_curve_counts_the_steps_before_the_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnviz.models.training.POINTS", 1)  # per epoch
    file = tmp_path / "training.safetensors"
    file.write_bytes(state_bytes(run(4), IDENTITY))
    training = run()
    resume(training, file)
    for _ in training.steps():
        pass
    assert [point.epoch for point in training.history.points] == [1, 2, 3]
    assert training.history == run(9).history


def test_a_run_that_was_under_way_is_replaced(file: Path) -> None:
    training = run(7)
    resume(training, file)
    assert contents(training) == contents(run(4))


def test_a_file_says_which_run_it_is_of(file: Path) -> None:
    assert state_identity(file) == IDENTITY


def test_writing_a_state_changes_no_run() -> None:
    training = run(4)
    before = contents(training)
    state_bytes(training, IDENTITY)
    assert contents(training) == before


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def header(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[8:40] = b"\xff" * 32
    file.write_bytes(content)


def named(metadata: dict[str, str] | None) -> Callable[[Path], None]:
    """The same tensors beside other metadata."""

    def change(file: Path) -> None:
        tensors = safetensors.torch.load_file(file)
        file.write_bytes(bytes(safetensors.torch.save(tensors, metadata)))

    return change


NOT_SAFETENSORS: list[Callable[[Path], object]] = [
    Path.unlink,
    folder,
    header,
    lambda file: file.write_bytes(b""),
    lambda file: file.write_bytes(b"\xff" * 64),
    lambda file: file.write_bytes(file.read_bytes()[:-10]),
    lambda file: file.write_bytes(file.read_bytes()[:100]),
    lambda file: file.write_text("{}", encoding="utf-8"),
]


@pytest.mark.parametrize(
    "damage", [*NOT_SAFETENSORS, named(None), named({"rest": "{}"}), named({"identity": "{", "rest": "{}"})]
)
def test_a_file_that_says_of_no_run_is_named(file: Path, damage: Callable[[Path], object]) -> None:
    damage(file)
    with pytest.raises(InvalidModel, match=r"training\.safetensors is no training run .* Choose another --out"):
        state_identity(file)


@pytest.mark.parametrize(
    "damage",
    [
        *NOT_SAFETENSORS,
        named(None),
        named({"identity": "{}"}),
        *(named({"identity": "{}", "rest": rest}) for rest in ("{", "{}", "[]", '{"done": 1, "history": {}}')),
        lambda file: file.write_bytes(state_bytes(run(spec=replace(SPEC, d_model=16)), IDENTITY)),
        lambda file: file.write_bytes(state_bytes(run(spec=replace(SPEC, layers=2)), IDENTITY)),
        lambda file: file.write_bytes(state_bytes(run(spec=replace(SPEC, pool="attention")), IDENTITY)),
        lambda file: file.write_bytes(state_bytes(run(spec=with_values(SPEC, size=8)), IDENTITY)),
    ],
)
def test_a_file_that_no_run_can_go_on_from_is_named(file: Path, damage: Callable[[Path], object]) -> None:
    damage(file)
    with pytest.raises(InvalidModel, match=r"training\.safetensors is no training run .* Choose another --out"):
        resume(run(), file)


def test_a_file_that_holds_more_than_the_run_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = safetensors.torch.load_file(file)
    more = {**tensors, "best.more": torch.zeros(2**20)}
    metadata = {KEY: json.dumps({"identity": IDENTITY, "rest": run(4).state()[1]})}
    safetensors.torch.save_file(tensors, file, metadata)
    resume(run(), file)
    safetensors.torch.save_file(more, file, metadata)
    monkeypatch.delattr(Training, "restore")
    with pytest.raises(InvalidModel, match=r"it holds more than this run can \(1\.\d+ MiB\)"):
        resume(run(), file)


def test_a_long_reason_is_cut_so_that_the_hint_is_seen(file: Path) -> None:
    """torch lists every tensor that does not fit."""
    file.write_bytes(state_bytes(run(spec=replace(SPEC, layers=2, pool="attention")), IDENTITY))
    with pytest.raises(InvalidModel) as told:
        resume(run(), file)
    assert len(str(told.value.__cause__)) > 500, "the reason has to be long here"
    reason = told.value.problem.removeprefix(f"{file} is no training run to go on with: ")
    assert len(reason) == MAX_REASON_LENGTH
    assert reason.endswith("…")
    assert str(told.value).endswith(". Choose another --out to start from the beginning.")


@pytest.mark.parametrize("dump", [pickle.dump, torch.save])
def test_pickle_is_never_run(dump: Callable[..., None], file: Path, tmp_path: Path) -> None:
    with file.open("wb") as opened:
        dump({"model.temperature": Bomb(tmp_path / "exploded")}, opened)
    for read in (state_identity, lambda file: resume(run(), file)):
        with pytest.raises(InvalidModel, match=r"training\.safetensors"):
            read(file)
    assert not (tmp_path / "exploded").exists()
    pickle.loads(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert (tmp_path / "exploded").exists()  # the bomb works
