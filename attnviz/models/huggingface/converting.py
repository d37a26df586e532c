"""From a GGUF or ONNX file to a folder of safetensors that `transformers` reads in a second, number by number the same.

Of GGUF, its own reader gives a model that it refuses to save, because it counts as quantized: so the weights go into a
fresh one of the same class.
"""

from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from attnviz import store
from attnviz.errors import InvalidModel, describe_error, raising
from attnviz.models.huggingface.weights import quietly

QKVO = {f"attention.attention.{name}": name[0] for name in ("query", "key", "value")}  # as older releases had them
QKVO["attention.output.dense"] = "o"


def convert_gguf(source: Path, folder: Path) -> None:
    """Write model, configuration and tokenizer into an empty folder.

    Raises InvalidModel for a file that cannot be read, OutputError when the disk refuses.
    """
    with quietly(bars=False):
        model, tokenizer = _read(source)
        del model.config.quantization_config
        with torch.device("meta"):
            fresh = type(model)(model.config)
        fresh.load_state_dict(model.state_dict(), strict=True, assign=True)
        fresh.tie_weights()
        store.fill(folder, fresh.save_pretrained)
        store.fill(folder, tokenizer.save_pretrained)


def _read(source: Path) -> tuple[Any, Any]:
    """Return the model in float32, and the tokenizer."""
    import gguf
    from transformers import AutoModelForCausalLM, AutoTokenizer, modeling_gguf_pytorch_utils

    where: dict[str, Any] = {"gguf_file": source.name, "local_files_only": True, "trust_remote_code": False}
    # It reads the file three times, and lists all names of tensors for each module: half of the time.
    once: dict[str, Any] = {name: cache(getattr(gguf, name)) for name in ("GGUFReader", "get_tensor_name_map")}
    # Its bar is not one of those that `quietly` knows, and would come into ours.
    silent = patch.object(modeling_gguf_pytorch_utils, "tqdm", lambda each, **_: each, create=True)
    problem, hint = f"{source} cannot be converted:", "Another transformers or gguf may do."
    # Whatever the library lets through.
    with raising(InvalidModel, problem, hint, (Exception,), describe_error), patch.multiple(gguf, **once), silent:
        model = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
        return model, AutoTokenizer.from_pretrained(source.parent, **where)


def convert_dinov2(source: Path, folder: Path) -> None:
    """Write the vision transformer that stands in an ONNX graph under `backbone.`, and how an image is made ready.

    Its modules have the names of the library but for those of attention. A linear layer's weight has none: it is the
    matrix of the product to which the layer's bias is added. Raises as `convert_gguf` does.
    """
    import onnx
    from onnx.numpy_helper import to_array
    from transformers import BitImageProcessorPil, Dinov2Config, Dinov2Model

    graph = onnx.load(str(source)).graph
    arrays = {each.name: torch.tensor(to_array(each)) for each in graph.initializer}
    made_by = {output: node for node in graph.node for output in node.output}
    named = {name: array for name, array in arrays.items() if name.startswith("backbone.")}
    for node in (each for each in graph.node if each.op_type == "Add"):
        for bias, other in (tuple(node.input), tuple(node.input)[::-1]):
            product = made_by.get(other)
            if bias in named and product is not None and product.op_type == "MatMul":
                (matrix,) = (arrays[each] for each in product.input if each in arrays)
                named[bias.removesuffix("bias") + "weight"] = matrix.T.contiguous()
    state = {name.removeprefix("backbone."): array for name, array in named.items()}
    for old, new in QKVO.items():
        state = {name.replace(old, f"attention.{new}_proj"): array for name, array in state.items()}
    unnamed = {tuple(array.shape): array for name, array in arrays.items() if name not in named}
    state["embeddings.position_embeddings"] = torch.cat([unnamed[1, 1, 384], unnamed[1, 37**2, 384]], 1)
    with quietly(bars=False):
        model = Dinov2Model(Dinov2Config(hidden_size=384, num_attention_heads=6, image_size=518, use_mask_token=False))
        model.load_state_dict(state, strict=True)
        store.fill(folder, model.save_pretrained)
        colours = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)}  # of ImageNet
        reader = BitImageProcessorPil(size={"shortest_edge": 24 * 14}, do_center_crop=False, **colours)
        store.fill(folder, reader.save_pretrained)
