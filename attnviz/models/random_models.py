"""Models with random weights: the same for the same seed and vocabulary on every device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

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


def random_model(
    name: str, spec: ModelOptions, sizes: tuple[int, int, int], texts: Iterable[str], *, projected: bool
) -> EncoderModel:
    """Make a model of so many layers, heads and numbers, its vocabulary of `texts` or of the file that `spec` names.

    Without being `projected` its q, k and v are the embeddings themselves.
    """
    (n_layers, n_heads, d_model), device = sizes, pick(spec.device)
    with enough_memory():
        if spec.vocab is None:
            vocabulary = tokenizer.train(texts, VocabularyOptions(tokenizer=spec.tokenizer, min_frequency=1))
        else:
            vocabulary = tokenizer.load(expand_path(spec.vocab, InvalidModel))
        with seeded(spec.seed):
            if projected:
                encoder = Encoder(EncoderConfig(len(vocabulary), d_model, n_heads, n_layers, 4 * d_model))
                module: nn.Module = encoder
                parts, settings = encoder_parts(encoder, device), tuple(asdict(encoder.config).items())
            else:  # standard normal word embeddings, as torch makes them
                words = nn.Embedding(len(vocabulary), d_model).to(device)
                module, parts = words, _dot_parts(words, device)
                settings = (("n_words", len(vocabulary)), ("d_model", d_model))
    return EncoderModel(
        name=name,
        revision=f"random, seed {spec.seed}",
        trained=False,
        n_parameters=size_of(module),
        tokenizer=vocabulary,
        spec=spec,
        settings=(*settings, ("seed", spec.seed)),
        **parts,
    )


def _dot_parts(words: nn.Embedding, device: torch.device) -> dict[str, Any]:
    """Attend without projections over word embeddings, as `encoder_parts` has it of an encoder."""
    attention = DotAttention()

    def forward(ids: Tensor, attendable: Tensor) -> list[Tensor]:
        embedded = words(ids)
        return [attention(embedded, embedded, attendable).weights]

    return {
        "n_layers": 1,
        "n_heads": 1,
        "d_model": words.embedding_dim,
        "n_attention_parameters": 0,
        "forward": forward,
        "attentions": (attention,),
        "device": device,
    }
