"""Every command, family of models and kernel gives on a GPU what it gives on the CPU: `make accelerator`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.models.device import available
from tests.attacks.endings import worked
from tests.made import content
from tests.models.captures import ALLOWED, KEY, QUERY, SDPA, VALUE, only
from tests.pretrained import FAMILIES, saved
from tests.process import RunCli
from tests.test_emulated_device import COMMANDS, TEXT, assert_alike, run_in_one_process

DEVICES = available()[1:]
pytestmark = pytest.mark.skipif(not DEVICES, reason="needs a GPU, and ATTNVIZ_ACCELERATOR=1")
MODEL_TEXT = "the acting saved the film but it was not good"
LONG = " ".join([TEXT] * 60)
MORE = {
    "explain": ["explain", TEXT, "--json"],
    "a long text": ["heatmap", LONG, "--heads", "1", "--json"],
    "factors": ["heatmap", TEXT, "--factored", "--json"],
    "without a head": ["predict", TEXT, "--without", "0.1", "--json"],
    "survey with costs": ["survey", "--dataset", "sample", "--split", "train[:12]", "--ablate", "zero", "--json"],
}
SCRIPT = """
import contextlib, io, json, sys
from attnviz.cli import app
found = {}
for name, device, args in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = app.run([*args, "--device", device])
    found.setdefault(name, []).append([code, out.getvalue(), err.getvalue()[-800:]])
print(json.dumps(found))
"""


def run_on_both(folder: Path, commands: dict[str, list[str]]) -> dict[str, list[list[Any]]]:
    """Run each command on the CPU and on the accelerator, in one process: exit codes, standard output and error."""
    asked = [
        (name, device, [*args, *(["--out", f"{number}-{place}"] if args[0] != "predict" else [])])
        for number, (name, args) in enumerate(commands.items())
        for place, device in enumerate(("cpu", DEVICES[0]))
    ]
    return run_in_one_process(SCRIPT, asked, folder)


@pytest.mark.parametrize("name", [*COMMANDS, *MORE])
def test_a_command_gives_what_it_gives_on_the_cpu(name: str, tmp_path: Path) -> None:
    (found,) = run_on_both(tmp_path, {name: {**COMMANDS, **MORE}[name]}).values()
    of_cpu, of_device = found
    assert (of_cpu[0], of_device[0]) == (0, 0), (of_cpu[2], of_device[2])
    if name != "train":
        # Which text has the largest number may differ where two have nearly the same.
        left_out = ("texts",) if name == "survey with costs" else ()
        assert_alike(json.loads(of_cpu[1]), json.loads(of_device[1]), name, left_out)


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_family_gives_what_it_gives_on_the_cpu(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    model = saved(tmp_path / kind, kind)
    asked = ["heatmap", MODEL_TEXT, "--model", str(model), "--json"]
    (found,) = run_on_both(tmp_path, {kind: asked}).values()
    of_cpu, of_device = found
    assert of_cpu[0] == of_device[0], (of_cpu[2], of_device[2])
    if of_cpu[0] == 0:
        assert_alike(json.loads(of_cpu[1]), json.loads(of_device[1]), kind)
    else:
        assert of_cpu[2] == of_device[2]


def _move(given: dict[str, Any], device: str, dtype: torch.dtype | None = None) -> dict[str, Any]:
    return {name: one.to(device, dtype) if isinstance(one, torch.Tensor) else one for name, one in given.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("given", [{}, {"is_causal": True}, {"scale": 0.7}, {"attn_mask": ALLOWED}], ids=str)
def test_a_kernel_is_read_as_on_the_cpu(given: dict[str, Any], dtype: torch.dtype) -> None:
    of_cpu, of_device = (
        only(
            partial(SDPA, **_move({"query": QUERY, "key": KEY, "value": VALUE}, device, dtype), **_move(given, device))
        )
        for device in ("cpu", DEVICES[0])
    )
    np.testing.assert_allclose(of_device.weights, of_cpu.weights, atol=1e-5 if dtype == torch.float32 else 1e-2)
    np.testing.assert_array_equal(of_device.attendable, of_cpu.attendable)


def _layer(norm_first: bool) -> torch.nn.TransformerEncoderLayer:
    torch.manual_seed(0)
    return torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first)


@pytest.mark.parametrize(
    "make",
    [
        # It has a path of its own for inference.
        lambda: torch.nn.TransformerEncoder(_layer(False), 2, enable_nested_tensor=False).eval(),
        lambda: torch.nn.TransformerEncoder(_layer(True), 2, enable_nested_tensor=False).eval(),
    ],
    ids=["after", "before"],
)
def test_a_module_of_torch_is_recorded_as_on_the_cpu(make: Callable[[], torch.nn.Module]) -> None:
    import attnviz

    states = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(2))
    recorded = []
    for device in ("cpu", DEVICES[0]):
        model = make().to(device)
        with attnviz.record() as recording, torch.no_grad():
            model(states.to(device))
        recorded.append(recording[0].weights)
    np.testing.assert_allclose(recorded[1], recorded[0], atol=1e-5)


def test_a_run_that_was_trained_on_one_is_not_trained_again_on_the_other(run_cli: RunCli, tmp_path: Path) -> None:
    found = []
    for device, more in ((DEVICES[0], []), ("cpu", ["--resume"])):
        worked(run_cli(*COMMANDS["train"], "--out", "model", "--device", device, *more))
        found.append(content(tmp_path / "model"))
    assert found[0] == found[1]
