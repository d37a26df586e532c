"""Files of a model that name code: kernels of the hub, modules beside the model, adapters, other files. None is loaded.

A stub stands for the package `kernels`: it notes what would have been fetched and run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attnviz.errors import InvalidModel
from attnviz.models.huggingface.files import drop_choices
from tests import pretrained as made
from tests.attacks.endings import RunHere, environment, refused, worked

pytest.importorskip("transformers", reason=made.NEEDS)

CONFIG = "config.json"
KERNEL = "someone/a-kernel"
STUB = """
import types
def note(*asked, **more):
    with open("asked", "a") as file:
        file.write(f"{asked}\\n")
    raise RuntimeError(f"would have run {asked}")
get_kernel = has_kernel = load_kernel = get_local_kernel = note
class Anything:
    INFERENCE, TRAINING, TORCH_COMPILE, ALL = 1, 2, 4, 8
    def __init__(self, *_, **__): pass
    def load(self): note("a layer")
CUDAProperties = Device = KernelizeFallback = LayerRepository = LocalLayerRepository = Mode = ROCMProperties = Anything
def register_kernel_mapping(*_, **__): pass
def replace_kernel_forward_from_hub(*_, **__): pass
use_kernel_mapping = kernelize = note
def use_kernel_forward_from_hub(_): return lambda each: each
def use_kernelized_func(*_): return lambda each: each
"""
# A machine on which every library for kernels is installed and a Hopper is, as far as transformers asks.
RUN = """
import importlib.metadata, sys
import torch
held = importlib.metadata.version
named = {"kernels": "0.18.2", "nvidia-cutlass-dsl": "99.0", "apache-tvm-ffi": "99.0", "ninja": "99.0"}
importlib.metadata.version = lambda name: named.get(name) or held(name)
torch.cuda.is_available = lambda: True
torch.cuda.get_device_capability = lambda *_: (9, 0)
torch.cuda.get_device_properties = lambda *_: __import__("types").SimpleNamespace(major=9, minor=0)
from transformers.utils import import_utils
for name in ("is_torch_cuda_available", "is_ninja_available", "is_cuda_platform"):
    setattr(import_utils, name, lambda: True)
from attnviz.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def run_with_stub(folder: Path, *args: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """What attnviz says, and what was asked of `kernels`."""
    stub = folder / "stub"
    (stub / "kernels-0.18.2.dist-info").mkdir(parents=True)
    (stub / "kernels.py").write_text(STUB)
    (stub / "kernels-0.18.2.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.2\n"
    )
    command = [sys.executable, "-c", RUN, *args, "--device", "cpu"]
    env = environment() | {"PYTHONPATH": str(stub), "USE_HUB_KERNELS": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    asked = folder / "asked"
    return done, asked.read_text() if asked.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("mixtral", {"experts_implementation": "sonicmoe"}),
        ("mixtral", {"_experts_implementation": "sonicmoe"}),
        ("mixtral", {"attn_implementation": {"": KERNEL}, "experts_implementation": {"": "sonicmoe"}}),
        ("bert", {"attn_implementation": KERNEL, "_attn_implementation": KERNEL}),
        ("bert", {"attn_implementation": "flash_attention_2", "use_kernels": True}),
        ("bert", {"quantization_config": {"quant_method": "eetq", "weights": "int8"}}),
        ("rwkv", {}),
    ],
)  # fmt: skip
def test_no_kernel_is_loaded(kind: str, settings: dict[str, Any], tmp_path: Path) -> None:
    made.saved(tmp_path / "model", kind)
    made.configured(tmp_path / "model", **settings)
    done, asked = run_with_stub(tmp_path, "heatmap", "the cat sat", "--model", "model", "--out", "out")
    assert asked == ""
    if kind == "rwkv" or "quantization_config" in settings:
        assert done.returncode in (1, 2), done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_settings_that_choose_code_are_dropped_at_every_depth() -> None:
    chosen = {
        "attn_implementation": KERNEL,
        "_attn_implementation_internal": {"": KERNEL},
        "experts_implementation": "sonicmoe",
        "some_new_implementation": KERNEL,
        "attn_impl": "flash",
        "use_kernels": True,
        "kernel_config": {"RMSNorm": KERNEL},
        "chunkwise_kernel": "triton",
        "kernels": [KERNEL],
        "auto_map": {"AutoModel": "theirs.Model"},
        "fusion_config": {"patch": True},
        "configuration_files": ["config.5.0.0.json"],
        "transformers_weights": "adapter_model.bin",
    }
    sizes = {
        "conv_kernel": [10, 3],
        "window_kernel_size": [[2, 2]],
        "adapter_kernel_size": 3,
        "use_mamba_kernels": False,
        "simple": True,
        "scale_attn_weights": True,
    }
    part = chosen | sizes
    found = drop_choices(part | {"text_config": part, "parts": [part, {"encoder": part}]}, Path(CONFIG))
    assert found == sizes | {"text_config": sizes, "parts": [sizes, {"encoder": sizes}]}


@pytest.mark.parametrize("at", [(), ("text_config",)])
def test_weights_that_need_a_kernel_are_refused(at: tuple[str, ...]) -> None:
    for method in ("eetq", "metal", "nvfp4", "quark", None, 7):
        settings: Any = {"quantization_config": {"quant_method": method}}
        for name in at:
            settings = {name: settings}
        with pytest.raises(InvalidModel, match=rf"config\.json says that its weights are quantized \({method}\)"):
            drop_choices(settings, Path(CONFIG))


def test_weights_of_eight_bits_become_float32(tmp_path: Path) -> None:
    """Blocks of float8 with a scale each, as DeepSeek has them: read by torch alone."""
    pytest.importorskip("accelerate", reason="transformers asks for it")
    import torch
    from safetensors.torch import load_file, save_file

    from attnviz.models.huggingface.files import find_files
    from attnviz.models.huggingface.weights import load_weights

    folder = made.saved(tmp_path / "model", "mistral")
    tensors = load_file(folder / "model.safetensors")
    whole = dict(tensors)
    for name, tensor in whole.items():
        if name.endswith("proj.weight"):
            tensors[name] = tensor.to(torch.float8_e4m3fn)
            tensors[f"{name}_scale_inv"] = torch.ones(1, 1)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}
    made.configured(folder, quantization_config=settings)
    loaded = load_weights(find_files(folder, "", 4.0), "model", torch.device("cpu"), 4.0)
    read = dict(loaded.model.state_dict())
    name = "layers.0.self_attn.q_proj.weight"
    assert read[name].dtype == torch.float32
    assert torch.equal(read[name], whole[name].to(torch.float8_e4m3fn).float())


def test_an_adapter_beside_a_model_is_refused(run_here: RunHere, tmp_path: Path) -> None:
    """Where `peft` is installed the library would add it, from the hub if need be; elsewhere it would not."""
    made.saved(tmp_path / "model", "bert")
    (tmp_path / "model" / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": KERNEL}))
    refused(run_here("heatmap", "the cat", "--model", "model", "--out", "out"), "model holds an adapter beside a model")


def test_a_setting_that_names_another_file_is_not_followed(run_here: RunHere, tmp_path: Path) -> None:
    made.saved(tmp_path / "model", "bert")
    other = json.loads((tmp_path / "model" / CONFIG).read_text()) | {"num_hidden_layers": 10**6}
    (tmp_path / "model" / "config.4.0.0.json").write_text(json.dumps(other))
    made.configured(
        tmp_path / "model", configuration_files=["config.4.0.0.json"], transformers_weights="no.safetensors"
    )
    worked(run_here("heatmap", "the cat", "--model", "model", "--out", "out"))
