"""The transformer encoder (Vaswani et al. 2017, figure 1, left). Knows torch and attention; no texts and no files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnviz.models.attention import Attended, MultiHeadAttention, SingleHeadAttention


@dataclass(frozen=True)
class EncoderConfig:
    """Every size of an encoder."""

    n_words: int
    d_model: int = 64
    n_heads: int = 8
    n_layers: int = 1
    d_feed_forward: int = 256


class Encoder(nn.Module):
    """Word and position embeddings, then `n_layers` blocks. One text at a time or a batch of equal lengths."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.n_words, config.d_model)
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(
        self, ids: Int[Tensor, "*batch token"], attendable: Bool[Tensor, "*#batch #token token"] | None = None
    ) -> Float[Tensor, "*batch token d_model"]:
        """The encoded text."""
        states = self.embed(ids)
        for block in self.blocks:
            states = block(states, attendable).output
        return torch.as_tensor(self.norm(states))

    def attention(
        self, ids: Int[Tensor, "*batch token"], attendable: Bool[Tensor, "*#batch #token token"] | None = None
    ) -> Iterator[Float[Tensor, "*batch head token token"]]:
        """The weights of each layer in turn, so that only one layer's maps are held at a time."""
        states = self.embed(ids)
        for block in self.blocks:
            states, weights = block(states, attendable)
            yield weights

    def embed(self, ids: Int[Tensor, "*batch token"]) -> Float[Tensor, "*batch token d_model"]:
        words = self.words(ids)
        return torch.as_tensor(words + positions(ids.shape[-1], self.config.d_model, device=words.device))


class EncoderBlock(nn.Module):
    """Attention, then a feed-forward layer; each on normed input and added to what came in (pre-norm)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.attention = self_attention(config.d_model, config.n_heads)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(config.d_model, config.d_feed_forward),
            nn.GELU(),
            nn.Linear(config.d_feed_forward, config.d_model),
        )
        self.feed_forward_norm = nn.LayerNorm(config.d_model)

    def forward(self, states: Tensor, attendable: Tensor | None = None) -> Attended:
        normed = self.attention_norm(states)
        attended, weights = self.attention(normed, normed, attendable)
        states = states + attended
        states = states + self.feed_forward(self.feed_forward_norm(states))
        return Attended(states, weights)


def self_attention(d_model: int, n_heads: int) -> nn.Module:
    """One head of full width, or several of d_model / n_heads; the same parameters either way."""
    return SingleHeadAttention(d_model) if n_heads == 1 else MultiHeadAttention(d_model, n_heads)


def positions(n_tokens: int, d_model: int, device: torch.device | None = None) -> Float[Tensor, "token d_model"]:
    """Sines and cosines of wavelengths from 2π to 10,000 · 2π, section 3.5: defined for texts of any length."""
    token = torch.arange(n_tokens, device=device).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2, device=device) * (-math.log(10_000.0) / d_model))
    angles = token * frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]
