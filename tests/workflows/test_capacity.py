"""`attnviz capacity`: what ships, and how it is trained anew."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from attnviz.capacity import NOISES, Outcome, Trial
from attnviz.errors import ExecutionError, InvalidOption
from attnviz.measures.intervals import seeds_interval
from attnviz.models.loading import find_model
from attnviz.models.recall_model import RecallModel
from attnviz.models.recall_reference import TRIALS, RecallReference
from attnviz.models.recall_trial import measure_recall
from attnviz.options import build
from attnviz.report import Curves, Heatmap
from attnviz.specs import ModelOptions
from attnviz.specs.capacity import CapacitySpec
from attnviz.views.capacity import half_at
from attnviz.workflows import Result, capacity_trials
from attnviz.workflows.capacity import capacity
from attnviz.workflows.capacity_trials import plan, shipped
from attnviz.workflows.local_executor import WorkerDied
from tests.events import data, report, result
from tests.process import bare_environment, workers_of

SMALL = {"heads": "1", "items": "2", "seeds": 1, "d_model": 4, "length": 5, "steps": 1, "workers": 1, "train": True}


def outcome(tmp_path: Path, **settings: Any) -> Result:
    return result(capacity(build(CapacitySpec, out=str(tmp_path / "out"), **settings)))


def all_right(heads: int, items: int) -> tuple[float, float, float]:
    """Of what ships."""
    found = shipped()
    trials = [trial for trial in plan(CapacitySpec()).grid if (trial.heads, trial.items) == (heads, items)]
    return seeds_interval([found[replace(trial, seed=seed)].all_right for trial in trials for seed in range(3)])


def test_what_ships_meets_what_the_readme_says() -> None:
    (one, _, highest), (eight, lowest, _) = all_right(1, 8), all_right(8, 8)
    assert one <= 0.5
    assert eight >= 0.99
    assert highest < lowest
    assert all_right(1, 4)[0] < all_right(2, 4)[0] < all_right(4, 4)[0]


@pytest.mark.parametrize("heads", [1, 8])
def test_the_models_that_ship_are_those_that_were_measured(heads: int) -> None:
    reference = find_model(ModelOptions(model=f"recall:{heads}"))
    assert isinstance(reference, RecallReference)
    model = reference.open(())
    assert isinstance(model, RecallModel)
    again, before = measure_recall(model.network, TRIALS[heads]), shipped()[TRIALS[heads]]
    assert again.all_right == pytest.approx(before.all_right, abs=2e-3)  # other processors, other last bits
    assert again.text == before.text


def test_it_is_shown_at_once_and_whole(tmp_path: Path) -> None:
    found = outcome(tmp_path, theory=True)
    pictures = {picture.name: picture for picture in report(found).pictures}
    assert list(pictures) == ["accuracy", "controls", "distance", "heads-by-items", "maps-4-items", "maps-8-items"]
    accuracy = pictures["accuracy"]
    assert isinstance(accuracy, Curves)
    assert accuracy.title.endswith("mean of 3 seeds, bars: 95 % intervals")
    assert "seeds" not in report(found).subtitle  # maps are of one
    lines = {line.name: line for line in accuracy.charts[0].lines}
    assert lines["1 head"].y[-1] == pytest.approx(all_right(1, 8)[0])
    assert lines["1 head"].bounds[-1] == pytest.approx(all_right(1, 8)[1:])
    maps = pictures["maps-8-items"]
    assert isinstance(maps, Heatmap)
    assert (len(maps.rows), len(maps.columns)) == (1 + 8, 24)
    assert "theory" in [table.name for table in report(found).tables]
    assert len([*found.rows]) == 1 + len(data(found)["outcomes"]) == 1 + len(plan(CapacitySpec()).trials)
    written = json.loads((tmp_path / "out" / "capacity.json").read_bytes())
    assert written["outcomes"] == json.loads(json.dumps(data(found)["outcomes"]))


def test_showing_does_without_torch(tmp_path: Path) -> None:
    code = "import sys; from attnviz.cli.app import run; sys.exit(run(sys.argv[1:]) or 'torch' in sys.modules)"
    arguments = [sys.executable, "-c", code, "capacity", "--out", str(tmp_path / "out")]
    assert subprocess.run(arguments, check=False, env=bare_environment(tmp_path)).returncode == 0


def test_what_was_not_measured_has_to_be_trained(tmp_path: Path) -> None:
    assert len(data(outcome(tmp_path, heads="1,8", items="4,8"))["outcomes"]) < len(plan(CapacitySpec()).trials)
    with pytest.raises(InvalidOption, match=r"were not measured before.*--train trains"):
        outcome(tmp_path, steps=100)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"heads": "1,3"}, "d_model 32 is not divisible by 3"),
        ({"heads": "0"}, "--heads '0' are no numbers"),
        ({"items": "1,two"}, "--items '1,two' are no numbers"),
        ({"items": "30"}, "--items 30 is more than can be recalled"),
        ({"items": "8", "length": 7}, "--items 8 is more than"),
        ({"seeds": 0}, "--seeds 0 is out of range"),
        ({"length": 10**6}, "--length 1000000 is out of range"),
        ({"workers": 0}, "--workers 0 is out of range"),
        ({"workers": 2}, "nothing is trained that workers could share"),
    ],
)
def test_what_cannot_be(settings: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=problem):
        outcome(tmp_path, **settings)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """What `SMALL` comes to, by one process, and the folder with what it left. Not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    return folder, outcome(folder, **SMALL)


def test_training_goes_on_where_it_was_left(
    small: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, first = small
    shutil.copytree(folder / "out", tmp_path / "out")
    assert first.closing == ("none of these networks ships measured, so there is nothing to agree with",)
    done = sorted((tmp_path / "out" / "trials").glob("*.json"))
    trials = plan(build(CapacitySpec, **SMALL)).trials
    assert [file.stem for file in done] == sorted(trial.slug for trial in trials)
    done[0].unlink()
    done[1].write_text("{}")
    done[2].with_suffix(".safetensors").unlink()
    trained: list[str] = []

    def train(trial: Trial) -> tuple[Outcome, bytes]:
        trained.append(trial.slug)
        return of_training(trial)

    of_training = capacity_trials._train
    monkeypatch.setattr(capacity_trials, "_train", train)
    again = outcome(tmp_path, **SMALL)
    assert sorted(trained) == [file.stem for file in done[:3]]
    assert data(again) == data(first)


@pytest.mark.slow
def test_several_processes_come_to_the_same(small: tuple[Path, Result], tmp_path: Path) -> None:
    assert data(outcome(tmp_path, **SMALL | {"workers": 2})) == data(small[1])


def test_whether_it_agrees_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shipped()
    monkeypatch.setattr(capacity_trials, "_train", lambda trial: (before[trial], b""))
    again = outcome(tmp_path, train=True, workers=1)
    assert again.closing == (f"agrees with what ships: all {len(before)} networks come to the same numbers",)
    other = next(trial for trial in before if trial.items == 8)
    file = tmp_path / "out" / "trials" / f"{other.slug}.json"
    file.write_bytes(capacity_trials.outcomes_bytes([replace(before[other], all_right=0.0)]))
    (closing,) = outcome(tmp_path, train=True, workers=1).closing
    assert closing.startswith(f"{len(before) - 1} of {len(before)} networks come to the numbers that ship")
    assert closing.endswith(f"{other.slug}: 0.0000 here, {before[other].all_right:.4f} there")


def test_what_is_not_borne_out_is_not_said(small: tuple[Path, Result], tmp_path: Path) -> None:
    """Networks that learned nothing are not said to learn with more steps, nor to be halved by any noise."""
    shown, nothing_learned = (
        " ".join(note.text for note in report(found).notes) for found in (outcome(tmp_path), small[1])
    )
    assert "That is no bound: trained for 4 times" in shown
    assert "times the values' size halves" in shown
    assert "no bound" not in nothing_learned
    assert "halves" not in nothing_learned
    assert "nan" not in nothing_learned


def test_noise_that_halves_lies_between_those_that_were_tried() -> None:
    by_noise = (0.8, 0.8, 0.6, 0.2, *[0.0] * (len(NOISES) - 4))  # half of 0.8 lies midway between the third and fourth
    assert half_at(by_noise) == pytest.approx((NOISES[2] + NOISES[3]) / 2)
    assert isnan(half_at((1.0,) * len(NOISES)))


def test_a_process_that_dies_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does so twice; the first death costs the network that it was at, which another process trains."""
    ends = [0, 9]

    def end(_: Future[Any]) -> Any:
        raise WorkerDied(f"by signal {ends.pop()}")

    monkeypatch.setattr(capacity_trials, "result_of", end)
    said = "a process ended by signal 9, 2 times at the same network. The same command goes on with the rest."
    with pytest.raises(ExecutionError, match=said):
        outcome(tmp_path, **SMALL)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("number", "of_the_group"), [(signal.SIGTERM, True), (signal.SIGTERM, False), (signal.SIGINT, True)]
)
def test_asked_to_end_nobody_waits_for_what_is_being_trained(
    number: signal.Signals, of_the_group: bool, tmp_path: Path
) -> None:
    """As Ctrl-C ends everything else: at once, quietly, and without a process that goes on."""
    asked = ["capacity", "--train", "--workers", "2", "--steps", "100000", "--out", "out"]
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "attnviz", *asked],
            cwd=tmp_path,
            env=bare_environment(tmp_path),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while len(workers := workers_of(process.pid)) < 2 or min(map(seconds_at_work, workers)) < 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        (os.killpg if of_the_group else os.kill)(process.pid, number)
        try:
            assert process.wait(20) == 130
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert "error" not in (tmp_path / "log").read_text()
    assert "Traceback" not in (tmp_path / "log").read_text()
    assert not any(map(runs, workers))


def seconds_at_work(process: int) -> float:
    """Of its processor; it was forked from one that had imported all, and trains."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def runs(process: int) -> bool:
    """Also one that ended is listed, until its parent has looked; if that ended too, process 1 does, when it likes."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
