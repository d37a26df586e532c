"""From a GGUF file to a folder of safetensors that `transformers` reads in a second, number by number the same.

Its own reader gives a model that it refuses to save, because it counts as quantized: so the weights go into a fresh one
of the same class.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from safetensors.torch import load_file

from attnviz import store
from attnviz.errors import ExecutionError, InvalidModel
from attnviz.models.huggingface.files import WEIGHTS
from attnviz.models.huggingface.weights import quietly


def convert_gguf(source: Path, folder: Path) -> Iterator[None]:
    """Write model, configuration and tokenizer into an empty folder; yield when they are read, and when written.

    What was written is read again and compared. Raises InvalidModel for a file that cannot be read, ExecutionError
    where something else was written, OutputError when the disk refuses.
    """
    with quietly(bars=False):
        model, tokenizer = _read(source)
    yield
    with quietly(bars=False):
        config = deepcopy(model.config)
        del config.quantization_config
        with torch.device("meta"):
            fresh = type(model)(config)
        fresh.load_state_dict(model.state_dict(), strict=True, assign=True)
        fresh.tie_weights()
        store.fill(folder, fresh.save_pretrained)
        store.fill(folder, tokenizer.save_pretrained)
    weights, written = model.state_dict(), load_file(folder / WEIGHTS)
    kept = {tensor.data_ptr() for name, tensor in weights.items() if name in written}  # others are tied to these
    for name, tensor in weights.items():
        if tensor.data_ptr() not in kept or (name in written and not torch.equal(written[name], tensor)):
            raise ExecutionError(f"{name} was written to {folder / WEIGHTS} with other numbers", hint="Try again.")
    yield


def _read(source: Path) -> tuple[Any, Any]:
    """Return the model in float32, and the tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, modeling_gguf_pytorch_utils

    where: dict[str, Any] = {"gguf_file": source.name, "local_files_only": True, "trust_remote_code": False}
    try:
        # Its bar is not one of those that `quietly` knows, and would come into ours.
        with patch.object(modeling_gguf_pytorch_utils, "tqdm", lambda each, **_: each, create=True):
            model = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
        return model, AutoTokenizer.from_pretrained(source.parent, **where)
    except Exception as error:  # whatever the library lets through
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        problem = f"{source} cannot be converted: {reason}"
        raise InvalidModel(problem, hint="Another transformers or gguf may do.") from error
