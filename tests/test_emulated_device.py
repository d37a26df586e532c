"""Every command on a device, which mixes no tensors with the CPU's and has no float64, gives what the CPU gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.process import bare_environment

TEXT = "The film was not good, but the acting saved it."
TRAIN = "train --dataset sample --heads 2 --d-model 16 --size 300 --min-frequency 1 --epochs 1 --pretrain 1"
COMMANDS = {
    "train": [*TRAIN.split(), "--validation", "0.2", "--batch-size", "8"],
    "heatmap": ["heatmap", TEXT, "--json", "--rollout"],
    "factors": ["heatmap", TEXT, "--json", "--factored"],
    "predict": ["predict", TEXT, "--json"],
    "attribute": ["attribute", TEXT, "--json"],
    "survey": ["survey", "--dataset", "sample", "--split", "train[:4]", "--json"],
    "compare": ["compare", "single", "multi:2", "--text", TEXT, "--json"],
}
# How often a command waits, with models of two layers: once or twice a layer and pass, never once a head.
MAX_WAITS = {"train": 500, "heatmap": 6, "factors": 60, "predict": 8, "attribute": 60, "survey": 400, "compare": 160}
SCRIPT = """
import contextlib, io, json, sys
import attnviz.models.device
from attnviz.cli import app
from tests.emulated import Emulated, emulated
attnviz.models.device.available = lambda: ["cpu", "twin:0"]
found = {}
def run(name, args, device):
    out, err, before = io.StringIO(), io.StringIO(), (Emulated.n_operators, Emulated.n_waits)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = app.run([*args, "--device", device])
    counted = (Emulated.n_operators - before[0], Emulated.n_waits - before[1])
    found.setdefault(name, {})[device] = [code, out.getvalue(), err.getvalue()[-500:], *counted]
commands = json.loads(sys.argv[1])
for device in ("cpu", "twin:0"):
    with emulated() if device != "cpu" else contextlib.nullcontext():
        for name, args in commands.items():
            run(name, args + (["--out", name + device[:3]] if name != "predict" else []), device)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[Any]]]:
    folder = tmp_path_factory.mktemp("emulated")
    return run_in_one_process(SCRIPT, COMMANDS, folder)


def run_in_one_process(script: str, asked: object, folder: Path) -> dict[str, Any]:
    """What a script prints of what it is asked, at last and as JSON."""
    command = [sys.executable, "-c", script, json.dumps(asked)]
    environment = {**bare_environment(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_gives_on_a_device_what_it_gives_on_the_cpu(name: str, runs: dict[str, dict[str, list[Any]]]) -> None:
    of_cpu, of_twin = runs[name]["cpu"], runs[name]["twin:0"]
    assert (of_cpu[0], of_twin[0]) == (0, 0), (of_cpu[2], of_twin[2])
    assert of_cpu[3] == 0
    assert of_twin[3] > 50, "the device was not used"
    assert of_twin[4] <= MAX_WAITS[name]
    if name != "train":
        assert_alike(json.loads(of_cpu[1]), json.loads(of_twin[1]), name)


OF_WHERE_IT_RAN = ("device", "files", "settings", "seconds", "folder")


def assert_alike(one: Any, other: Any, place: str, left_out: tuple[str, ...] = ()) -> None:
    """Numbers to 1e-5; of where and how long it ran nothing is compared, nor what is left out."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            if key not in OF_WHERE_IT_RAN + left_out:
                assert_alike(one[key], other[key], f"{place}.{key}", left_out)
    elif isinstance(one, list):
        assert len(one) == len(other), place
        for number, (first, second) in enumerate(zip(one, other, strict=True)):
            assert_alike(first, second, f"{place}[{number}]", left_out)
    elif isinstance(one, float):
        assert other == pytest.approx(one, abs=1e-5, rel=1e-4), place
    else:
        assert one == other, place
