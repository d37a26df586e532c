"""The recipes for well-known projects: each runs as it is written, on a small model with random weights."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image

import attnviz
from tests import pretrained
from tests.models.test_recording import GPT
from tests.process import ROOT

PATCHES: dict[str, Any] = {"image_size": 16, "patch_size": 4}
PIXELS = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def llava(transformers: Any) -> dict[str, Any]:
    vision = pretrained.configuration("clip_vision_model", **PATCHES)
    model = {"vision_config": vision, "text_config": pretrained.configuration("llama"), "vision_feature_layer": -1}
    built = pretrained.built("llava", "sdpa", "AutoModelForImageTextToText", **model, image_token_id=31)
    return {"model": built, "inputs": {"input_ids": torch.tensor([[1, 5, *[31] * 16, 7, 8]]), "pixel_values": PIXELS}}


def qwen_vl(transformers: Any) -> dict[str, Any]:
    vision = {"depth": 2, "embed_dim": 16, "hidden_size": 16, "num_heads": 4, "patch_size": 4, "temporal_patch_size": 1}
    rope = {"rope_type": "default", "mrope_section": [1, 1, 0], "rope_theta": 1e4}
    text = pretrained.configuration("qwen2_vl_text", rope_parameters=rope, bos_token_id=0, eos_token_id=0)
    model = {"vision_config": vision, "text_config": text.to_dict(), "image_token_id": 31, "vision_start_token_id": 30}
    ids = torch.tensor([[1, 30, *[31] * 6, 29, 7, 8]])
    read = {"pixel_values": torch.rand(24, 48), "image_grid_thw": torch.tensor([[1, 4, 6]])}
    built = pretrained.built("qwen2_vl", "sdpa", "AutoModelForImageTextToText", **model)
    return {"model": built, "inputs": {"input_ids": ids, "mm_token_type_ids": (ids == 31).int(), **read}}


def dinov2(transformers: Any) -> dict[str, Any]:
    return {"model": pretrained.built("dinov2", "sdpa", **PATCHES), "inputs": {"pixel_values": PIXELS}}


def whisper(transformers: Any) -> dict[str, Any]:
    model = pretrained.built("whisper", "sdpa", "AutoModelForSpeechSeq2Seq", max_source_positions=20, bos_token_id=0)
    return {"model": model, "features": torch.rand(1, 4, 40), "tokens": torch.tensor([[1, 5, 6]])}


def esm(transformers: Any) -> dict[str, Any]:
    model = pretrained.built("esm", "sdpa", position_embedding_type="rotary")
    return {"model": model, "tokenizer": pretrained.tokenizer(), "protein": "the cat sat"}


def vllm(transformers: Any) -> dict[str, Any]:
    pretrained.built("llama", "sdpa", "AutoModelForCausalLM").save_pretrained("served")
    pretrained.tokenizer().save_pretrained("served")
    written = SimpleNamespace(prompt_token_ids=[2, 4, 5], outputs=[SimpleNamespace(token_ids=[6, 7])])
    autos = {name: getattr(transformers, name) for name in ("AutoModelForCausalLM", "AutoTokenizer")}
    return {"folder": "served", "output": written, **autos}


def nanogpt(_: Any) -> dict[str, Any]:
    words = ["the", "cat", "sat", "on", "mat"]
    encoding = SimpleNamespace(encode=lambda text: [*map(words.index, text.split())], decode=lambda ids: words[ids[0]])
    return {"model": GPT(), "encoding": encoding}


def timm_(timm: Any) -> dict[str, Any]:
    sizes = {"img_size": 16, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 4}
    return {"model": timm.create_model("vit_base_patch16_224", **sizes).eval(), "pixels": PIXELS}


def diffusers_(diffusers: Any) -> dict[str, Any]:
    blocks = {"down_block_types": ("CrossAttnDownBlock2D",), "up_block_types": ("CrossAttnUpBlock2D",)}
    sizes = {"block_out_channels": (8,), "norm_num_groups": 4, "cross_attention_dim": 8, "attention_head_dim": 4}
    unet = diffusers.UNet2DConditionModel(sample_size=8, layers_per_block=1, **blocks, **sizes).eval()
    return {"unet": unet, "latents": torch.rand(1, 4, 8, 8), "step": 1, "prompt": torch.rand(1, 5, 8)}


def pyg(geometric: Any) -> dict[str, Any]:
    layer = geometric.nn.GATConv(8, 4, heads=2)
    return {"layer": layer, "states": torch.rand(3, 8), "edge_index": torch.tensor([[0, 1], [1, 2]]), "nodes": [*"abc"]}


# By the heading of a recipe: the package that it needs, and the names that it begins with.
RECIPES: dict[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "LLaVA": ("transformers", llava),
    "Qwen-VL": ("transformers", qwen_vl),
    "DINOv2": ("transformers", dinov2),
    "timm": ("timm", timm_),
    "nanoGPT": ("torch", nanogpt),
    "Whisper": ("transformers", whisper),
    "ESM": ("transformers", esm),
    "diffusers": ("diffusers", diffusers_),
    "PyG": ("torch_geometric", pyg),
    "vLLM": ("transformers", vllm),
}
PAGE = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("recipe", re.findall(r"^## (.+)\n(?:(?!^## ).*\n)*?```py\n", PAGE, re.MULTILINE))
def test_a_recipe_runs_as_it_is_written(recipe: str, here: Path) -> None:
    package, given = RECIPES[recipe]
    names = given(pytest.importorskip(package, reason=f"needs {package}"))
    (code,) = re.findall(r"```py\n(.*?)```", PAGE.partition(f"\n## {recipe}\n")[2].partition("\n## ")[0], re.DOTALL)
    exec(code, {"attnviz": attnviz, "torch": torch, "image": Image.new("RGB", (16, 16)), **names})
