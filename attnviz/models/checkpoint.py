"""A classifier as a folder: model.safetensors, tokenizer.json, config.json. Never pickle.

Embeddings lie there in fewer bits, all else in float32.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import inf
from pathlib import Path
from typing import Any, get_args

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from attnviz import store
from attnviz.bounded import MAX_JSON, check_room, parse_json, read_bytes
from attnviz.errors import InvalidModel
from attnviz.models import tokenizer
from attnviz.models.classifier import Classifier, ClassifierConfig
from attnviz.models.encoder import EncoderConfig
from attnviz.models.sizes import MAX_D_MODEL, head_size
from attnviz.models.tokenizer import TextTokenizer
from attnviz.specs import KeepKind, NormKind, PoolKind, StorageKind
from attnviz.store.tensors import read_header

SCHEMA = 3
EARLIER = 2  # with sinusoids
MAX_SIZE = 2**31 - 1  # of any size in a configuration
WHILE_READ = 6  # the file, its tensors, and these as float32, each at most four times as large
MAX_LAYERS = 1_000  # a damaged number must not build layers until the memory is full
WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
HOLDS = f"A checkpoint holds {WEIGHTS}, {VOCABULARY}, {CONFIG}."
MAX_INT8 = 127  # of int8, symmetric around 0
SCALE = ".scale"  # beside a matrix of int8: what a one stands for in each of its rows


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A classifier, its vocabulary and how much of a text it reads. `revision` is the sha256 of the weights' file."""

    classifier: Classifier
    tokenizer: TextTokenizer
    max_tokens: int
    keep: KeepKind
    trained: bool = True
    revision: str = ""


def save_checkpoint(folder: Path, saved: Checkpoint, storage: StorageKind = "float32") -> None:
    """Write the three files, the weights last: until then an older checkpoint of the same shape stays whole."""
    config = {
        "schema": SCHEMA,
        "trained": saved.trained,
        "max_tokens": saved.max_tokens,
        "keep": saved.keep,
        **asdict(saved.classifier.config),
    }
    store.make_folder(folder)
    store.write(folder / VOCABULARY, saved.tokenizer.to_json().encode())
    store.write(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())
    modules = saved.classifier.named_modules()
    embeddings = frozenset(f"{name}.weight" for name, module in modules if isinstance(module, nn.Embedding))
    packed = pack_weights(saved.classifier.state_dict(), embeddings, storage)
    store.write(folder / WEIGHTS, bytes(safetensors.torch.save(packed)))


def load_checkpoint(folder: Path, max_memory: float = 4.0) -> Checkpoint:
    """Load what `save_checkpoint` wrote.

    Raises InvalidModel naming the file that is missing, damaged or does not fit, TooLarge before weights that take more
    than `max_memory` GiB while they are read.
    """
    found = _read_config(folder / CONFIG)
    config = found["classifier"]
    n_bytes = read_header(folder / WEIGHTS, InvalidModel, HOLDS).n_bytes
    check_room(f"the weights of {folder}", WHILE_READ * n_bytes, max_memory)
    data = read_bytes(folder / WEIGHTS, inf, InvalidModel, HOLDS)
    vocabulary = tokenizer.load(folder / VOCABULARY, classify=config.pool == "cls")
    if len(vocabulary) > config.encoder.n_words:
        raise InvalidModel(
            f"{folder / VOCABULARY} has {len(vocabulary)} entries, {folder / CONFIG} says {config.encoder.n_words}",
            hint="The files are of two checkpoints.",
        )
    try:
        with torch.device("meta"):  # sizes only: what the file holds is checked before memory is taken
            classifier = Classifier(config)
        classifier.load_state_dict(unpack_weights(safetensors.torch.load(data)), strict=True, assign=True)
    except (SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        problem = f"{folder / WEIGHTS} does not fit {CONFIG}: {reason}"
        raise InvalidModel(problem, hint="Copy the folder again.") from error
    if not all(bool(tensor.isfinite().all()) for tensor in classifier.state_dict().values()):
        raise InvalidModel(f"{folder / WEIGHTS} holds numbers that are not finite", hint="Copy the folder again.")
    if not (temperature := float(classifier.temperature)) > 0:
        problem = f"temperature {temperature:g} in {folder / WEIGHTS} must be greater than 0: logits are divided by it"
        raise InvalidModel(problem, hint="Copy the folder again.")
    revision = hashlib.sha256(data).hexdigest()
    return Checkpoint(classifier.eval(), vocabulary, found["max_tokens"], found["keep"], found["trained"], revision)


def _read_config(file: Path) -> dict[str, Any]:
    try:
        found = parse_json(read_bytes(file, MAX_JSON, InvalidModel, HOLDS))
        if not isinstance(found, dict) or found.get("schema") not in (EARLIER, SCHEMA):
            raise ValueError(f"schema {SCHEMA} expected")
        for sizes in (found, found.get("encoder")):  # a 0 says that pairs of words had no weights or vectors
            if isinstance(sizes, dict) and sizes.pop("n_bigrams", 0) != 0:
                raise InvalidModel(
                    f"{file} is of a model with n-grams beside its attention (n_bigrams), as earlier versions had them",
                    hint="This version reads models without them: train it again with attnviz train.",
                )
        if type(found["trained"]) is not bool:
            raise ValueError("trained is true or false")
        if type(found["max_tokens"]) is not int or found["max_tokens"] < 1:
            raise ValueError("max_tokens is a positive whole number")
        labels = found["labels"]
        if not isinstance(labels, list) or len(labels) < 2 or not all(isinstance(label, str) for label in labels):
            raise ValueError("labels are two names or more")
        if len(set(labels)) < len(labels):
            raise ValueError("no two labels have one name")
        pool: PoolKind = _one_of(found, "pool", PoolKind)
        classifier = ClassifierConfig(_encoder(found["encoder"]), tuple(labels), pool)
        keep = _one_of(found, "keep", KeepKind)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidModel(f"{file} is not an attnviz configuration: {error}", hint="Copy the folder again.") from error
    head_size(classifier.encoder.d_model, classifier.encoder.n_heads)
    return {**found, "classifier": classifier, "keep": keep}


def _encoder(sizes: dict[str, Any]) -> EncoderConfig:
    sizes = {"max_distance": 0, **sizes}
    expected = {field.name for field in fields(EncoderConfig)}
    numbers = {name: size for name, size in sizes.items() if name != "norm"}
    if set(sizes) != expected or not all(
        type(size) is int and (name != "max_distance") <= size <= MAX_SIZE for name, size in numbers.items()
    ):
        raise ValueError(f"positive whole numbers {', '.join(sorted(expected - {'norm'}))} and norm expected")
    if sizes["n_layers"] > MAX_LAYERS:
        raise ValueError(f"at most {MAX_LAYERS} layers expected")
    if sizes["d_model"] > MAX_D_MODEL:
        raise ValueError(f"d_model of at most {MAX_D_MODEL} expected")
    return EncoderConfig(**numbers, norm=_one_of(sizes, "norm", NormKind))


def _one_of(found: dict[str, Any], name: str, kind: Any) -> Any:
    if found[name] not in get_args(kind):
        raise ValueError(f"{name} is {' or '.join(get_args(kind))}")
    return found[name]


def pack_weights(weights: Mapping[str, Tensor], embeddings: frozenset[str], storage: StorageKind) -> dict[str, Tensor]:
    """Pack the weights named in `embeddings` as `storage`; int8 is 127 steps on either side of 0, a scale per row."""
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        tensor = tensor.detach().cpu().contiguous()
        if name not in embeddings or storage == "float32":
            found[name] = tensor
        elif storage == "float16":
            found[name] = tensor.half()
        else:
            largest = tensor.abs().amax(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
            scale = (largest / MAX_INT8).bfloat16()  # of float32's range, in half the bytes
            found[name] = (tensor / scale.float()).round().clamp(-MAX_INT8, MAX_INT8).to(torch.int8)
            found[name + SCALE] = scale
    return found


def unpack_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Unpack what `pack_weights` packed, but for rounding. Raises KeyError for int8 without a scale."""
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name, tensor in found.items():
        if tensor.dtype == torch.int8:
            found[name] = tensor.float() * tensors[name + SCALE].float()
        elif tensor.is_floating_point():
            found[name] = tensor.float()
    return found
