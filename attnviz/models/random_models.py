"""Models with random weights: the same for the same seed and vocabulary on every device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from attnviz.bounded import expand_path
from attnviz.errors import InvalidModel
from attnviz.models import tokenizer
from attnviz.models.attention import DotAttention
from attnviz.models.device import enough_memory, pick, seeded
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.models.encoder_model import EncoderModel, encoder_parts, size_of
from attnviz.specs import ModelOptions, VocabularyOptions

Parts: TypeAlias = dict[str, Any]  # what an EncoderModel is made of


@dataclass(frozen=True)
class Architecture:
    """How large an encoder is, and whether its heads project what they attend to."""

    n_layers: int
    n_heads: int
    d_model: int
    projected: bool = True  # False: q, k and v are the embeddings themselves


def _encoder_parts(sizes: Architecture, n_words: int, device: torch.device) -> tuple[nn.Module, Parts]:
    """A transformer encoder with learned parts that were never trained."""
    config = EncoderConfig(n_words, sizes.d_model, sizes.n_heads, sizes.n_layers, 4 * sizes.d_model)
    encoder = Encoder(config)
    return encoder, {**encoder_parts(encoder, device), "settings": tuple(asdict(encoder.config).items())}


def _dot_parts(sizes: Architecture, n_words: int, device: torch.device) -> tuple[nn.Module, Parts]:
    """Attention without projections over random word embeddings (standard normal, as torch makes them)."""
    words, attention = nn.Embedding(n_words, sizes.d_model).to(device), DotAttention()

    def forward(ids: Tensor, attendable: Tensor) -> list[Tensor]:
        embedded = words(ids)
        return [attention(embedded, embedded, attendable).weights]

    return words, {
        "n_layers": 1,
        "n_heads": 1,
        "d_model": sizes.d_model,
        "n_attention_parameters": 0,
        "forward": forward,
        "attentions": (attention,),
        "device": device,
        "settings": (("n_words", n_words), ("d_model", sizes.d_model)),
    }


def random_model(name: str, spec: ModelOptions, sizes: Architecture, texts: Iterable[str]) -> EncoderModel:
    """A model of these sizes, with a vocabulary of `texts`, or of the file that `spec` names."""
    device = pick(spec.device)
    with enough_memory():
        if spec.vocab is None:
            vocabulary = tokenizer.train(texts, VocabularyOptions(tokenizer=spec.tokenizer, min_frequency=1))
        else:
            vocabulary = tokenizer.load(expand_path(spec.vocab, InvalidModel))
        with seeded(spec.seed):
            make = _encoder_parts if sizes.projected else _dot_parts
            module, parts = make(sizes, len(vocabulary), device)
    return EncoderModel(
        name=name,
        revision=f"random, seed {spec.seed}",
        trained=False,
        n_parameters=size_of(module),
        tokenizer=vocabulary,
        spec=spec,
        **parts | {"settings": (*parts["settings"], ("seed", spec.seed))},
    )
