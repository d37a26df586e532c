"""A trained or saved encoder as a folder: model.safetensors, tokenizer.json, config.json. Never pickle."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError

from attnviz import store
from attnviz.errors import BadModel
from attnviz.models import tokenizer
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.models.sizes import head_size
from attnviz.models.tokenizer import TextTokenizer

SCHEMA = 1
MOST_LAYERS = 1_000  # a damaged number must not build layers until the memory is full
WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.json", "config.json"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """An encoder with its vocabulary. `revision` is the sha256 of the weights' file."""

    encoder: Encoder
    tokenizer: TextTokenizer
    trained: bool
    revision: str


def save_checkpoint(folder: Path, encoder: Encoder, vocabulary: TextTokenizer, *, trained: bool) -> None:
    """Write the three files, the configuration last: a folder without it is not a checkpoint."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.state_dict().items()}
    config = {"schema": SCHEMA, "trained": trained, "encoder": asdict(encoder.config)}
    store.make_folder(folder)
    store.write(folder / WEIGHTS, safetensors.torch.save(weights))
    store.write(folder / VOCABULARY, vocabulary.to_json().encode())
    store.write(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())


def load_checkpoint(folder: Path) -> Checkpoint:
    """What `save_checkpoint` wrote. Raises BadModel naming the file that is missing, damaged or does not fit."""
    config, trained = _config(folder / CONFIG)
    data = _read(folder / WEIGHTS)
    vocabulary = tokenizer.load(folder / VOCABULARY)
    if len(vocabulary) > config.n_words:
        raise BadModel(
            f"{folder / VOCABULARY} has {len(vocabulary)} entries, {folder / CONFIG} says {config.n_words}",
            hint="The files are of two checkpoints.",
        )
    try:
        with torch.device("meta"):  # sizes only: what the file holds is checked before memory is taken
            encoder = Encoder(config)
        weights = safetensors.torch.load(data)
        encoder.load_state_dict(weights, strict=True, assign=True)
    except (SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise BadModel(f"{folder / WEIGHTS} does not fit {CONFIG}: {reason}", hint="Copy the folder again.") from error
    return Checkpoint(encoder.float(), vocabulary, trained, hashlib.sha256(data).hexdigest())


def _config(file: Path) -> tuple[EncoderConfig, bool]:
    try:
        found = json.loads(_read(file))
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise ValueError(f"schema {SCHEMA} expected")
        sizes = found["encoder"]
        expected = {field.name for field in fields(EncoderConfig)}
        if set(sizes) != expected or not all(type(size) is int and size > 0 for size in sizes.values()):
            raise ValueError(f"positive whole numbers {', '.join(sorted(expected))} expected")
        if sizes["n_layers"] > MOST_LAYERS:
            raise ValueError(f"at most {MOST_LAYERS} layers expected")
        if type(found["trained"]) is not bool:
            raise ValueError("trained is true or false")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadModel(f"{file} is not a configuration of ours: {error}", hint="Copy the folder again.") from error
    config = EncoderConfig(**sizes)
    head_size(config.d_model, config.n_heads)
    return config, found["trained"]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadModel(
            f"cannot read {file}: {error.strerror}", hint=f"A checkpoint holds {WEIGHTS}, {VOCABULARY}, {CONFIG}."
        ) from error
