"""Every command on a device, which mixes no tensors with the CPU's and has no float64, gives what the CPU gives."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.process import bare_environment, said_by

TEXT = "The film was not good, but the acting saved it."
TRAIN = "train --dataset sample --heads 2 --d-model 16 --size 300 --min-frequency 1 --epochs 1 --pretrain 1"
COMMANDS = {
    "train": [*TRAIN.split(), "--validation", "0.2", "--batch-size", "24"],
    "heatmap": ["heatmap", TEXT, "--json", "--rollout"],
    "factors": ["heatmap", TEXT, "--json", "--factored"],
    "predict": ["predict", TEXT, "--json"],
    "attribute": ["attribute", TEXT, "--json"],
    "survey": ["survey", "--dataset", "sample", "--split", "train[:2]", "--ablate", "zero,mean", "--json"],
    "explain": ["explain", TEXT, "--json"],
    "compare": ["compare", "single", "multi:2", "--text", TEXT, "--json"],
}
# How often a command waits, with models of two layers: once or twice a layer and pass, never once a head.
MAX_WAITS = {"train": 500, "heatmap": 6, "factors": 60, "predict": 8, "attribute": 60, "explain": 250}  # others: 160
SCRIPT = """
import contextlib, io, json, sys
import attnviz.models.device
from pytest import MonkeyPatch
from attnviz.cli import app
from tests.commands.train.runs import probe_little
from tests.made import draw_nothing
draw_nothing(MonkeyPatch())
probe_little(MonkeyPatch())
MonkeyPatch().setattr("attnviz.commands.survey.facts.N_RANDOM", 2)
other, commands = json.loads(sys.argv[1])
devices, counted = dict.fromkeys(("cpu", other), contextlib.nullcontext), {}
if other == "twin:0":
    from tests.emulated import Emulated, emulated
    attnviz.models.device.available = lambda: [*devices]
    devices[other], counted = emulated, vars(Emulated)
found = {}
for device, is_there in devices.items():
    with is_there():
        for name, args in commands.items():
            out, err, before = io.StringIO(), io.StringIO(), dict(counted)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                out_of_run = ["--out", name + device[:3]] if args[0] != "predict" else []
                code = app.run([*args, "--device", device, *out_of_run])
            numbers = [counted.get(each, 0) - before.get(each, 0) for each in ("n_operators", "n_waits")]
            found.setdefault(name, []).append([code, out.getvalue(), err.getvalue()[-800:], *numbers])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[Any]]]:
    return run_on_both("twin:0", COMMANDS, tmp_path_factory.mktemp("emulated"))


def run_on_both(device: str, commands: dict[str, list[str]], folder: Path) -> dict[str, list[list[Any]]]:
    """Run each command on the CPU and on a device, in one process: exit codes, standard output, error and counts."""
    asked = [sys.executable, "-c", SCRIPT, json.dumps([device, commands])]
    done = said_by(asked, cwd=folder, env={**bare_environment(folder), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[list[Any]]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_gives_on_a_device_what_it_gives_on_the_cpu(name: str, runs: dict[str, list[list[Any]]]) -> None:
    of_cpu, of_twin = runs[name]
    assert (of_cpu[0], of_twin[0]) == (0, 0), (of_cpu[2], of_twin[2])
    assert of_cpu[3] == 0
    assert of_twin[3] > 50, "the device was not used"
    assert of_twin[4] <= MAX_WAITS.get(name, 160)
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
