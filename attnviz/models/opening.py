"""From a name to a model that is ready to attend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from attnviz.errors import BadOption
from attnviz.models import MODELS, tokenizer
from attnviz.models.attender import Attender
from attnviz.models.attention import attention_weights
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.device import enough_memory, pick
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.models.names import ModelName, resolve
from attnviz.models.tokenizer import TextTokenizer
from attnviz.registry import find, load
from attnviz.specs import ModelSpec, VocabularySpec

LARGEST_SEED = 2**63 - 1


def open_model(spec: ModelSpec, texts: Iterable[str]) -> Attender:
    """The model that a spec asks for. `texts` make the vocabulary of a model that brings none.

    Raises BadModel, BadOption or BadDevice before any text is read.
    """
    name = resolve(spec)
    if not 0 <= spec.seed <= LARGEST_SEED:
        raise BadOption(f"--seed {spec.seed} is out of range", hint=f"It is 0 to {LARGEST_SEED}.")
    device = pick(spec.device)
    if name.folder is not None:
        return open_checkpoint(name.folder, spec, device)
    opener = load(find(MODELS, name.kind, "model"))
    with enough_memory():
        attender: Attender = opener(name, spec, device, _vocabulary(spec, texts))
    return attender


def open_encoder(name: ModelName, spec: ModelSpec, device: torch.device, vocabulary: TextTokenizer) -> Attender:
    """A transformer encoder with random weights: the same for the same seed and vocabulary on every device."""
    config = EncoderConfig(
        n_words=len(vocabulary),
        d_model=spec.d_model,
        n_heads=name.n_heads,
        n_layers=spec.layers,
        d_feed_forward=4 * spec.d_model,
    )
    with _seeded(spec.seed):
        encoder = Encoder(config)
    return Attender(
        name=str(name),
        revision=f"random, seed {spec.seed}",
        trained=False,
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        tokenizer=vocabulary,
        forward=encoder.eval().to(device).attention,
        device=device,
        spec=spec,
        settings=(*asdict(config).items(), ("seed", spec.seed)),
    )


def open_dot(name: ModelName, spec: ModelSpec, device: torch.device, vocabulary: TextTokenizer) -> Attender:
    """Attention without projections over random word embeddings (standard normal, as torch makes them)."""
    with _seeded(spec.seed):
        words = nn.Embedding(len(vocabulary), spec.d_model).to(device)

    def forward(ids: Tensor, attendable: Tensor) -> list[Tensor]:
        embedded = words(ids)
        return [attention_weights(embedded, embedded, attendable).unsqueeze(0)]

    return Attender(
        name=str(name),
        revision=f"random, seed {spec.seed}",
        trained=False,
        n_layers=1,
        n_heads=1,
        tokenizer=vocabulary,
        forward=forward,
        device=device,
        spec=spec,
        settings=(("n_words", len(vocabulary)), ("d_model", spec.d_model), ("seed", spec.seed)),
    )


def open_checkpoint(folder: Path, spec: ModelSpec, device: torch.device) -> Attender:
    """What was saved. Raises BadModel naming the file that is missing or damaged."""
    saved = load_checkpoint(folder)
    config = saved.encoder.config
    return Attender(
        name=folder.resolve().name,  # not the whole path: the record is the same wherever the folder lies
        revision=saved.revision,
        trained=saved.trained,
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        tokenizer=saved.tokenizer,
        forward=saved.encoder.eval().to(device).attention,
        device=device,
        spec=spec,
        settings=tuple(asdict(config).items()),
    )


def _vocabulary(spec: ModelSpec, texts: Iterable[str]) -> TextTokenizer:
    if spec.vocab is not None:
        return tokenizer.load(Path(spec.vocab).expanduser())
    return tokenizer.train(texts, VocabularySpec(tokenizer=spec.tokenizer, min_frequency=1))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Torch's random numbers from `seed` on, and the caller's own untouched afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
