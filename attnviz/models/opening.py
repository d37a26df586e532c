"""From a name to a model that is ready to attend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import torch
from torch import Tensor, nn

from attnviz.errors import BadModel
from attnviz.inputs import user_path
from attnviz.models import MODELS, tokenizer
from attnviz.models.attender import Attender
from attnviz.models.attention import DotAttention
from attnviz.models.checkpoint import Checkpoint, load_checkpoint
from attnviz.models.device import enough_memory, pick
from attnviz.models.encoder import Encoder, EncoderBlock, EncoderConfig
from attnviz.models.names import ModelName, folder_name, resolve
from attnviz.models.tokenizer import TextTokenizer
from attnviz.registry import find, load
from attnviz.specs.model import ModelOptions
from attnviz.specs.train import VocabularyOptions


def open_model(spec: ModelOptions, texts: Iterable[str]) -> Attender:
    """The model of ours that a spec asks for. `texts` make the vocabulary of a model that brings none.

    Raises BadModel, BadOption or BadDevice before any text is read.
    """
    name = resolve(spec)
    device = pick(spec.device)
    if name.checkpoint is not None:
        return attending(load_checkpoint(name.checkpoint, spec.max_memory), called(name), spec, device)
    opener = load(find(MODELS, name.kind, "model"))
    with enough_memory():
        attender: Attender = opener(name, spec, device, _vocabulary(spec, texts))
    return attender


def open_encoder(name: ModelName, spec: ModelOptions, device: torch.device, vocabulary: TextTokenizer) -> Attender:
    """A transformer encoder with random weights: the same for the same seed and vocabulary on every device."""
    config = EncoderConfig(
        n_words=len(vocabulary),
        d_model=name.d_model,
        n_heads=name.n_heads,
        n_layers=name.n_layers,
        d_feed_forward=4 * name.d_model,
    )
    with seeded(spec.seed):
        encoder = Encoder(config)
    return Attender(
        name=str(name),
        revision=f"random, seed {spec.seed}",
        trained=False,
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        d_model=config.d_model,
        n_parameters=_size(encoder),
        n_attention_parameters=_attention_size(encoder),
        tokenizer=vocabulary,
        forward=encoder.eval().to(device).attention,
        attentions=_attentions(encoder),
        device=device,
        spec=spec,
        settings=(*asdict(config).items(), ("seed", spec.seed)),
        embeds_pairs=bool(config.n_bigrams),
    )


def open_dot(name: ModelName, spec: ModelOptions, device: torch.device, vocabulary: TextTokenizer) -> Attender:
    """Attention without projections over random word embeddings (standard normal, as torch makes them)."""
    with seeded(spec.seed):
        words = nn.Embedding(len(vocabulary), name.d_model).to(device)
    attention = DotAttention()

    def forward(ids: Tensor, attendable: Tensor) -> list[Tensor]:
        embedded = words(ids)
        return [attention(embedded, embedded, attendable).weights]

    return Attender(
        name=str(name),
        revision=f"random, seed {spec.seed}",
        trained=False,
        n_layers=1,
        n_heads=1,
        d_model=name.d_model,
        n_parameters=_size(words),
        n_attention_parameters=0,
        tokenizer=vocabulary,
        forward=forward,
        attentions=(attention,),
        device=device,
        spec=spec,
        settings=(("n_words", len(vocabulary)), ("d_model", name.d_model), ("seed", spec.seed)),
    )


def attending(saved: Checkpoint, name: str, spec: ModelOptions, device: torch.device) -> Attender:
    """The encoder of a checkpoint."""
    config = saved.classifier.config.encoder
    return Attender(
        name=name,
        revision=saved.revision,
        trained=saved.trained,
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        d_model=config.d_model,
        n_parameters=_size(saved.classifier),
        n_attention_parameters=_attention_size(saved.classifier.encoder),
        tokenizer=saved.tokenizer,
        forward=saved.classifier.encoder.eval().to(device).attention,
        attentions=_attentions(saved.classifier.encoder),
        device=device,
        spec=spec,
        settings=(*asdict(config).items(), ("made_for_tokens", saved.max_tokens)),
        made_for_tokens=saved.max_tokens,
        embeds_pairs=bool(config.n_bigrams),
    )


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _attention_size(encoder: Encoder) -> int:
    return sum(map(_size, _attentions(encoder)))


def _attentions(encoder: Encoder) -> tuple[nn.Module, ...]:
    return tuple(block.attention for block in encoder.blocks if isinstance(block, EncoderBlock))


def called(name: ModelName) -> str:
    """A checkpoint is called by its folder, not by the whole path: the record is the same wherever that lies."""
    return folder_name(name.folder) if name.kind == "checkpoint" and name.folder else str(name)


def _vocabulary(spec: ModelOptions, texts: Iterable[str]) -> TextTokenizer:
    if spec.vocab is not None:
        return tokenizer.load(user_path(spec.vocab, BadModel))
    return tokenizer.train(texts, VocabularyOptions(tokenizer=spec.tokenizer, min_frequency=1))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Torch's random numbers from `seed` on, and the caller's own untouched afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
