"""Models with random weights: the same for the same seed and vocabulary on every device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor, nn

from attnviz.errors import InvalidModel
from attnviz.inputs import user_path
from attnviz.models import tokenizer
from attnviz.models.attention import DotAttention
from attnviz.models.device import enough_memory, pick, seeded
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.models.encoder_model import EncoderModel, encoder_parts, size_of
from attnviz.specs import VocabularyOptions

if TYPE_CHECKING:
    from attnviz.models.built_in import RandomReference

Parts: TypeAlias = dict[str, Any]  # what an EncoderModel is made of


def _encoder_parts(reference: RandomReference, n_words: int, device: torch.device) -> tuple[nn.Module, Parts]:
    """A transformer encoder with learned parts that were never trained."""
    d_model = reference.d_model
    encoder = Encoder(EncoderConfig(n_words, d_model, reference.n_heads, reference.n_layers, 4 * d_model))
    return encoder, {**encoder_parts(encoder, device), "settings": tuple(asdict(encoder.config).items())}


def _dot_parts(reference: RandomReference, n_words: int, device: torch.device) -> tuple[nn.Module, Parts]:
    """Attention without projections over random word embeddings (standard normal, as torch makes them)."""
    words, attention = nn.Embedding(n_words, reference.d_model).to(device), DotAttention()

    def forward(ids: Tensor, attendable: Tensor) -> list[Tensor]:
        embedded = words(ids)
        return [attention(embedded, embedded, attendable).weights]

    return words, {
        "n_layers": 1,
        "n_heads": 1,
        "d_model": reference.d_model,
        "n_attention_parameters": 0,
        "forward": forward,
        "attentions": (attention,),
        "device": device,
        "settings": (("n_words", n_words), ("d_model", reference.d_model)),
    }


def random_model(reference: RandomReference, texts: Iterable[str]) -> EncoderModel:
    """What a reference names, with a vocabulary of `texts`, or of a file if there is one."""
    spec, device = reference.spec, pick(reference.spec.device)
    with enough_memory():
        if spec.vocab is None:
            vocabulary = tokenizer.train(texts, VocabularyOptions(tokenizer=spec.tokenizer, min_frequency=1))
        else:
            vocabulary = tokenizer.load(user_path(spec.vocab, InvalidModel))
        with seeded(spec.seed):
            make = _encoder_parts if reference.projected else _dot_parts
            module, parts = make(reference, len(vocabulary), device)
    return EncoderModel(
        name=reference.name,
        revision=f"random, seed {spec.seed}",
        trained=False,
        n_parameters=size_of(module),
        tokenizer=vocabulary,
        spec=spec,
        **parts | {"settings": (*parts["settings"], ("seed", spec.seed))},
    )
