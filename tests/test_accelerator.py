"""Every command, family of models and kernel gives on a GPU what it gives on the CPU: `make accelerator`."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.models.device import available
from tests.models.captures import ALLOWED, KEY, QUERY, SDPA, VALUE, only, recorded
from tests.pretrained import FAMILIES, saved
from tests.test_emulated_device import COMMANDS, TEXT, assert_alike, run_on_both

DEVICES = available()[1:]
pytestmark = pytest.mark.skipif(not DEVICES, reason="needs a GPU, and ATTNVIZ_ACCELERATOR=1")
LONG = " ".join([TEXT] * 60)
MORE = {
    "a long text": ["heatmap", LONG, "--heads", "1", "--json"],
    "without a head": ["predict", TEXT, "--without", "0.1", "--json"],
    "survey with costs": ["survey", "--dataset", "sample", "--split", "train[:12]", "--ablate", "zero", "--json"],
}


@pytest.mark.parametrize("name", [*COMMANDS, *MORE])
def test_a_command_gives_what_it_gives_on_the_cpu(name: str, tmp_path: Path) -> None:
    of_cpu, of_device = run_on_both(DEVICES[0], {name: {**COMMANDS, **MORE}[name]}, tmp_path)[name]
    assert (of_cpu[0], of_device[0]) == (0, 0), (of_cpu[2], of_device[2])
    if name != "train":
        # Which text has the largest number may differ where two have nearly the same.
        left_out = ("texts",) if name == "survey with costs" else ()
        assert_alike(json.loads(of_cpu[1]), json.loads(of_device[1]), name, left_out)


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_family_gives_what_it_gives_on_the_cpu(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    model = saved(tmp_path / kind, kind)
    asked = ["heatmap", "the acting saved the film but it was not good", "--model", str(model), "--json"]
    of_cpu, of_device = run_on_both(DEVICES[0], {kind: asked}, tmp_path)[kind]
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


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_module_of_torch_is_recorded_as_on_the_cpu(norm_first: bool, padding: bool) -> None:
    """It has a path of its own for inference, and where texts are padded, one for nested tensors."""
    states = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(2))
    is_padded = torch.arange(6) >= torch.tensor([[6], [4]]) if padding else None
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=padding and not norm_first).eval()
    one, other = (
        recorded(lambda at=at: model.to(at)(states.to(at), src_key_padding_mask=_move({"": is_padded}, at)[""]))  # type: ignore[misc]
        for at in ("cpu", DEVICES[0])
    )
    assert len(one) == len(other) == 2
    for of_cpu, of_device in zip(one, other, strict=True):
        np.testing.assert_allclose(of_device.weights, of_cpu.weights, atol=1e-5)
