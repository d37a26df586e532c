"""Folders of models that others made: damaged, hostile, or asking for code that would be fetched and run."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from attnviz.errors import InvalidModel
from attnviz.models.huggingface.files import drop_choices, find_files
from attnviz.models.huggingface.weights import load_weights
from tests import pretrained as made
from tests.attacks.endings import RunHere, environment, refused, worked
from tests.attacks.test_hostile_files import without
from tests.made import TRACE, half, pickled
from tests.process import said_by

pytest.importorskip("transformers", reason=made.NEEDS)

WEIGHTS, CONFIG, INDEX = "model.safetensors", "config.json", "model.safetensors.index.json"
CODE = f"open({TRACE!r}, 'w').close()\n"
KERNEL = "someone/a-kernel"
FAILS = "model fails by itself: "


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT as its author would save it. Not to be changed."""
    return made.saved(tmp_path_factory.mktemp("whole") / "bert", "bert")


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(whole, tmp_path / "model"))


def code_of_its_own(folder: Path, model_type: str) -> None:
    """What the hub calls remote code, for the configuration, the model and the tokenizer."""
    (folder / "theirs.py").write_text(CODE + "class Config: pass\nclass Model: pass\nclass Tokens: pass\n")
    mapped = {"AutoConfig": "theirs.Config", "AutoModel": "theirs.Model"}
    made.configured(folder, model_type=model_type, auto_map=mapped)
    file = folder / "tokenizer_config.json"
    tokens = json.loads(file.read_text()) | {"auto_map": {"AutoTokenizer": ["theirs.Tokens", None]}}
    file.write_text(json.dumps(tokens))


def indexed(*names: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        (folder / INDEX).write_text(json.dumps({"weight_map": {str(i): name for i, name in enumerate(names)}}))

    return damage


def header(content: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        written = json.dumps(content).encode()
        (folder / WEIGHTS).write_bytes(len(written).to_bytes(8, "little") + written)

    return damage


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "weights only pickled": (
        lambda f: pickled((f / WEIGHTS).rename(f / "pytorch_model.bin")),
        "pytorch_model.bin, a form that can run code",
    ),
    "a pickle called safetensors": (lambda f: pickled(f / WEIGHTS), f"{WEIGHTS} is not a whole safetensors file"),
    "code for an unknown type": (lambda f: code_of_its_own(f, "theirs"), "needs program code of its own"),
    "half of the weights": (lambda f: half(f / WEIGHTS), f"{WEIGHTS} is not a whole safetensors file: Error while"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), f"holds no {WEIGHTS}"),
    "a weight less": (
        lambda f: without("embeddings.word_embeddings.weight")(f / WEIGHTS),
        "lacks weights that its config.json asks for: embeddings.word_embeddings.weight",
    ),
    "an endless header": (
        lambda f: (f / WEIGHTS).write_bytes((2**60).to_bytes(8, "little") + b"{}"),
        "header too large",
    ),
    "a header that lies": (header({"a": {"shape": [2**40], "data_offsets": [0, 2**40]}}), "missing field `dtype`"),
    "an index into other folders": (indexed("../model.safetensors"), "names files that are not safetensors of this"),
    "an index of a file that is not there": (indexed("a.safetensors"), f"lacks a.safetensors, which {INDEX} names"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "holds no tokenizer.json"),
    "half of a tokenizer": (lambda f: half(f / "tokenizer.json"), "is not a tokenizer.json: it is not JSON"),
    "a type that nobody knows": (lambda f: made.configured(f, model_type="theirs"), "of a type that transformers"),
    "a million layers": (lambda f: made.configured(f, num_hidden_layers=10**6), "says 1,000,000 layers"),
    "a huge width": (lambda f: made.configured(f, hidden_size=10**7), "allowed are 4"),
    "other sizes": (lambda f: made.configured(f, vocab_size=64), "its weights have other sizes than config.json"),
    "a size that is a word": (lambda f: made.configured(f, hidden_size="wide"), "cannot be loaded"),
    # Where `peft` is installed the library would add it, from the hub if need be.
    "an adapter": (
        lambda f: (f / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": KERNEL})),
        "model holds an adapter beside a model",
    ),
    "heads below zero": (lambda f: made.configured(f, num_attention_heads=-1), f"{FAILS}RuntimeError: invalid shape"),
    "a decoder": (lambda f: made.configured(f, is_encoder_decoder=True), f"{FAILS}TypeError: BertEncoder.forward()"),
    "odd chunks": (lambda f: made.configured(f, chunk_size_feed_forward=3), f"{FAILS}ValueError: The dimension to be"),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_hostile_folder(
    damage: Callable[[Path], Any], says: str, folder: Path, run_here: RunHere, tmp_path: Path
) -> None:
    damage(folder)
    run = run_here("heatmap", "--model", "model", "--text", "the cat", "--out", "out")
    refused(run, says, code=1 if says.startswith(FAILS) else 2)
    assert not list(tmp_path.rglob(TRACE))
    assert not (tmp_path / "out").exists()


def test_code_of_its_own_is_not_run_where_the_library_has_the_model(
    folder: Path, run_here: RunHere, tmp_path: Path
) -> None:
    code_of_its_own(folder, "bert")
    worked(run_here("heatmap", "--model", folder, "--text", "the cat", "--out", "out"))
    assert not (tmp_path / TRACE).exists()


# --- Files of a model that name code: kernels of the hub, modules beside the model, adapters. None is loaded ---


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
for model in sys.argv[1:]:
    print(model, run(["heatmap", "the cat sat", "--model", model, "--device", "cpu", "-q", "--out", "of-" + model]))
"""


def run_with_stub(folder: Path, *models: str) -> tuple[dict[str, str], str]:
    """The exit code of each model that is drawn, and what was asked of `kernels`."""
    stub = folder / "stub"
    (stub / "kernels-0.18.2.dist-info").mkdir(parents=True)
    (stub / "kernels.py").write_text(STUB)
    (stub / "kernels-0.18.2.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.2\n"
    )
    env = environment() | {"PYTHONPATH": str(stub), "USE_HUB_KERNELS": "1"}
    done = said_by([sys.executable, "-c", RUN, *models], cwd=folder, env=env)
    asked = folder / "asked"
    return dict(line.split() for line in done.stdout.splitlines()), asked.read_text() if asked.exists() else ""


@pytest.mark.slow
def test_no_kernel_is_loaded(tmp_path: Path) -> None:
    """Settings that name one are dropped, in whichever way they do, and what cannot do without one is refused."""
    cases: list[tuple[str, dict[str, Any]]] = [
        ("mixtral", {"experts_implementation": "sonicmoe"}),
        ("mixtral", {"_experts_implementation": "sonicmoe"}),
        ("mixtral", {"attn_implementation": {"": KERNEL}, "experts_implementation": {"": "sonicmoe"}}),
        ("bert", {"attn_implementation": KERNEL, "_attn_implementation": KERNEL}),
        ("bert", {"attn_implementation": "flash_attention_2", "use_kernels": True}),
        ("bert", {"quantization_config": {"quant_method": "eetq", "weights": "int8"}}),
        ("rwkv", {}),
    ]
    for number, (kind, settings) in enumerate(cases):
        made.configured(made.saved(tmp_path / f"{number}-{kind}", kind), **settings)
    ended, asked = run_with_stub(tmp_path, *(f"{number}-{kind}" for number, (kind, _) in enumerate(cases)))
    assert asked == ""
    assert [*ended.values()] == ["0", "0", "0", "0", "0", "2", "2"]


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
