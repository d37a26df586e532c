"""The transformer encoder (Vaswani et al. 2017, figure 1, left): words and positions as vectors, then blocks; and what
the weights of a text are worked out from, instead of the weights.

Knows torch and attention; no texts and no files.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnviz.models.attention import DotAttention, MultiHeadAttention, Norms
from attnviz.records.factors import CAUSAL, EVERYWHERE, Factors
from attnviz.specs import NormKind

PAD_ID = 0  # [PAD] among the words; a hidden word is read as it
SCALE = 0.1  # of words and positions at the start; from larger ones, training takes more epochs
DROPOUT = 0.1  # of the embeddings and of what each sublayer adds, as in section 5.4


class TextEmbedding(nn.Module):
    """Word + position, sections 3.4 and 3.5 of Vaswani et al. 2017.

    In training, with `reach`, texts begin at any position that leaves them within the first `reach`: a model that
    learned from short stretches then reads longer texts without meeting positions that it has never seen.
    """

    def __init__(self, n_words: int, d_model: int, reach: int = 0, *, positions: bool = True) -> None:
        super().__init__()
        self.reach = reach
        self.positions = positions
        weight = torch.empty(n_words, d_model)
        if weight.device.type != "meta":  # there values are filled in later; to make some would import torch's compiler
            nn.init.normal_(weight, std=SCALE)
            weight[PAD_ID] = 0
        self.words = nn.Embedding(n_words, d_model, padding_idx=PAD_ID, _weight=weight)

    def forward(self, ids: Int[Tensor, "*batch token"]) -> Float[Tensor, "*batch token d_model"]:
        """Return one vector per token: of its word, and of its position where positions have vectors."""
        embedded = self.words(ids)
        if not self.positions:
            return torch.as_tensor(embedded)
        n_tokens, d_model = embedded.shape[-2:]
        start = int(torch.randint(self.reach - n_tokens + 1, ())) if self.training and self.reach > n_tokens else 0
        return torch.as_tensor(embedded + SCALE * positions(n_tokens, d_model, start, embedded.device))


def positions(
    n_tokens: int, d_model: int, start: int = 0, device: torch.device | None = None
) -> Float[Tensor, "token d_model"]:
    """Return sines and cosines of wavelengths from 2π to 10,000 · 2π, section 3.5: defined for texts of any length."""
    token = torch.arange(start, start + n_tokens, device=device).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2, device=device) * (-math.log(10_000.0) / d_model))
    angles = token * frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]


@dataclass(frozen=True)
class EncoderConfig:
    """Every size of an encoder, and where its layer norms stand."""

    n_words: int
    d_model: int = 64
    n_heads: int = 8
    n_layers: int = 1
    d_feed_forward: int = 256
    norm: NormKind = "pre"
    max_distance: int = 0  # that a position bias tells apart; 0: sinusoids are added to the words instead


class Encoder(nn.Module):
    """Embeddings, then `n_layers` blocks. One text at a time, or a batch whose padding is not attendable.

    Dropout and `reach` (see `TextEmbedding`) are at work in training only.
    """

    def __init__(self, config: EncoderConfig, reach: int = 0) -> None:
        super().__init__()
        self.config = config
        self.embedding = TextEmbedding(config.n_words, config.d_model, reach, positions=not config.max_distance)
        self.dropout = nn.Dropout(DROPOUT)
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.n_layers))
        # After post-norm blocks all is normed already.
        self.norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(
        self,
        ids: Int[Tensor, "*batch token"],
        attendable: Bool[Tensor, "*#batch #token token"] | None = None,
        *,
        need_weights: bool = False,
    ) -> Float[Tensor, "*batch token d_model"]:
        """Return the encoded text. Unless weights are needed, by who watches the pass, it is several times faster."""
        states = self.dropout(self.embedding(ids))
        for block in self.blocks:
            states = block(states, attendable, need_weights=need_weights)
        return torch.as_tensor(self.norm(states))


class EncoderBlock(nn.Module):
    """Multi-head attention, then a feed-forward layer, each with a residual and a layer norm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config.d_model, config.n_heads, config.max_distance)
        self.attention_residual = Residual(config)
        self.feed_forward = nn.Sequential(
            nn.Linear(config.d_model, config.d_feed_forward),
            nn.GELU(),
            nn.Linear(config.d_feed_forward, config.d_model),
        )
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        states: Float[Tensor, "*batch token d_model"],
        attendable: Bool[Tensor, "*#batch #token token"] | None = None,
        *,
        need_weights: bool = True,
    ) -> Float[Tensor, "*batch token d_model"]:
        """Return the block's output. Its attention makes weights only where they are needed."""
        source = self.attention_residual.before(states)
        attended = self.attention(source, source, attendable, need_weights=need_weights).output
        return self.add_feed_forward(self.attention_residual.after(states, attended))

    def add_feed_forward(self, states: Float[Tensor, "*batch token d_model"]) -> Float[Tensor, "*batch token d_model"]:
        """Return the second half: the feed-forward layer."""
        thought = self.feed_forward(self.feed_forward_residual.before(states))
        return self.feed_forward_residual.after(states, thought)


class DotEncoder(nn.Module):
    """Attention without projections over standard normal word embeddings, as torch makes them: one head, one layer."""

    def __init__(self, n_words: int, d_model: int) -> None:
        super().__init__()
        self.config = EncoderConfig(n_words, d_model, n_heads=1)
        self.words = nn.Embedding(n_words, d_model)
        self.attention = DotAttention()

    def forward(
        self, ids: Int[Tensor, " token"], attendable: Bool[Tensor, "#token token"], *, need_weights: bool = True
    ) -> Float[Tensor, "token d_model"]:
        """Return for each token the mean of the words that it attends to. There are always weights."""
        embedded = self.words(ids)
        return torch.as_tensor(self.attention(embedded, embedded, attendable).output)


class Residual(nn.Module):
    """What a sublayer gives is added to what it got ("Add & Norm"), normed after the sum, or before the sublayer.

    Post-norm, LayerNorm(x + Sublayer(x)), is the paper's; pre-norm, x + Sublayer(LayerNorm(x)), trains without
    warm-up and is usual today (Xiong et al. 2020, arXiv:2002.04745).
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(DROPOUT)

    def before(self, states: Tensor) -> Tensor:
        """Return what goes into a sublayer."""
        return torch.as_tensor(self.norm(states) if self.pre else states)

    def after(self, states: Tensor, added: Tensor) -> Tensor:
        """Return what comes out, added to what went in."""
        total = states + self.dropout(added)
        return torch.as_tensor(total if self.pre else self.norm(total))


def encoder_factors(
    encoder: Encoder, ids: Int[Tensor, " token"], last: int, *, causal: bool
) -> Iterator[tuple[Factors, Norms]]:
    """Yield the factors of one text on the CPU, layer by layer up to the last one wanted, which is not yet summed; and
    how long what its values move is.

    No more is held than the states of its tokens.
    """
    states = encoder.embedding(ids)
    for layer, block in enumerate(encoder.blocks[: last + 1]):
        assert isinstance(block, EncoderBlock)
        attention, before = block.attention, block.attention_residual.before(states)
        assert isinstance(attention, MultiHeadAttention)
        query, key, value = attention.project(before, before)
        factors = Factors(
            query=query.contiguous().numpy(),
            key=key.contiguous().numpy(),
            log_sum_exp=None,
            scale=1 / math.sqrt(query.shape[-1]),
            bias=None if attention.position is None else attention.position.bias.detach().numpy(),
            window=CAUSAL if causal else EVERYWHERE,
        )
        if layer == last:  # no kernel is called: nobody wants the output
            yield factors, attention.value_norms(before)
            return
        heads, log_sum_exp = _attend_with_sums(attention, query, key, value, causal=causal)
        yield replace(factors, log_sum_exp=log_sum_exp.contiguous().numpy()), attention.value_norms(before)
        attended = attention.output(heads.transpose(0, 1).flatten(-2))
        states = block.add_feed_forward(block.attention_residual.after(states, attended))


def choose_heads(factors: Factors, heads: Sequence[int]) -> Factors:
    """Choose the factors of some heads, each of which has its own keys; a copy, so that the others are let go."""
    places = list(heads)
    if places == list(range(len(factors.query))):
        return factors
    parts = {name: getattr(factors, name) for name in ("query", "key", "log_sum_exp", "bias")}
    chosen: dict[str, Any] = {name: None if part is None else part[places] for name, part in parts.items()}
    return replace(factors, **chosen)


def _attend_with_sums(
    attention: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
) -> tuple[Float[Tensor, "head token d_head"], Float[Tensor, "head token"]]:
    """Return what each head gives, and the log-sum-exp of its rows: one call of the kernel gives both."""
    n_heads, n_tokens, _ = query.shape
    added = query.new_zeros(1, 2 * n_tokens - 1) if attention.position is None else attention.position(*[n_tokens] * 2)
    if causal:
        added[:, n_tokens:] = -torch.inf  # a vector of every distance, which no module keeps
    # From the last query to the first: then what is added overlaps in memory from query to query, see `fused`.
    output, log_sum_exp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *(each.unsqueeze(0) for each in (query.flip(1), key, value)),
        attn_mask=added.unfold(-1, n_tokens, 1).expand(n_heads, -1, -1).unsqueeze(0),
    )
    return output.squeeze(0).flip(1), log_sum_exp.squeeze(0).flip(1)
