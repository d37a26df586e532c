"""A classifier as a folder: model.safetensors, tokenizer.json, config.json. Never pickle.

Embeddings lie there in fewer bits, all else in float32.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from attnviz import store
from attnviz.bounded import MAX_JSON, check_room, decode_json, parse_json, read_bytes
from attnviz.errors import InvalidModel
from attnviz.models import tokenizer
from attnviz.models.classifier import Classifier, ClassifierConfig
from attnviz.models.encoder import EncoderConfig
from attnviz.models.sizes import MAX_D_MODEL
from attnviz.models.tokenizer import TextTokenizer
from attnviz.specs import KeepKind, PoolKind, StorageKind
from attnviz.store.tensors import read_header

SCHEMA = 3
MAX_SIZE = 2**31 - 1  # of any size in a configuration
WHILE_READ = 6  # the file, its tensors, and these as float32, each at most four times as large
LARGEST = {"n_layers": 1_000, "d_model": MAX_D_MODEL}  # a damaged number must not build layers until the memory is full
WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
HOLDS = f"A checkpoint holds {WEIGHTS}, {VOCABULARY}, {CONFIG}."
MAX_INT8 = 127  # of int8, symmetric around 0
SCALE = ".scale"  # beside a matrix of int8: what a one stands for in each of its rows


@dataclass(frozen=True)
class Config:
    """What config.json says beside its schema."""

    trained: bool
    max_tokens: int
    keep: KeepKind
    encoder: EncoderConfig
    labels: tuple[str, ...]
    pool: PoolKind


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
    config = _read_config(folder / CONFIG)
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
            classifier = Classifier(ClassifierConfig(config.encoder, config.labels, config.pool))
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
    return Checkpoint(classifier.eval(), vocabulary, config.max_tokens, config.keep, config.trained, revision)


def _read_config(file: Path) -> Config:
    try:
        found = parse_json(read_bytes(file, MAX_JSON, InvalidModel, HOLDS))
        if not isinstance(found, dict) or found.pop("schema", None) != SCHEMA:
            raise ValueError(f"schema {SCHEMA} expected, as this version writes it")
        config: Config = decode_json(Config, found, "")
        if len(set(config.labels)) < max(2, len(config.labels)):
            raise ValueError("labels are two names or more, no two of them alike")
        for name, number in {**vars(config.encoder), "max_tokens": config.max_tokens}.items():
            least, most = int(name != "max_distance"), LARGEST.get(name, MAX_SIZE)
            if name != "norm" and not least <= number <= most:
                raise ValueError(f"{name} is {least} to {most:,}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidModel(f"{file} is not an attnviz configuration: {error}", hint="Copy the folder again.") from error
    return config


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
