"""From an encoded text to a label: pooling and one linear layer; beside it, which words and pairs a text holds.

Bags of n-grams, weighed per label, classify sentiment well and know nothing of attention (Wang & Manning 2012,
ACL P12-2018). Knows torch and the encoder; no texts and no files.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attnviz.models.attention import not_padding
from attnviz.models.encoder import PAD_ID, Encoder, EncoderConfig, find_pairs, first_pairs
from attnviz.models.tokenizer import SPECIAL
from attnviz.specs import PoolKind

STEPS = 100  # of the search for a temperature, which ends far earlier


class NgramClassifier(nn.Module):
    """Logits from a text's distinct words and pairs: the sum of their weights over the root of how many there are."""

    pairs: Tensor  # strictly rising, see `pair_keys`

    def __init__(self, n_words: int, n_pairs: int, n_labels: int) -> None:
        super().__init__()
        self.n_words = n_words
        self.register_buffer("pairs", first_pairs(n_pairs))
        empty = torch.zeros(n_words + n_pairs, n_labels)
        self.weights = nn.Embedding(n_words + n_pairs, n_labels, _weight=empty)  # rows of special tokens stay zero
        self.bias = nn.Parameter(torch.zeros(n_labels))
        self.requires_grad_(False)  # `fit_ngrams` finds them; training leaves them as they are

    def forward(self, ids: Int[Tensor, "text token"], real: Bool[Tensor, "text token"]) -> Float[Tensor, "text label"]:
        """Logits. `real` is False for padding."""
        ngrams, counted = self.distinct(ids, real)
        total = (self.weights(ngrams) * counted.unsqueeze(-1)).sum(dim=1)
        return torch.as_tensor(total / counted.sum(dim=1, keepdim=True).clamp(min=1).sqrt() + self.bias)

    def shares(self, ids: Int[Tensor, " token"]) -> Float[Tensor, "token label"]:
        """What each token of one text adds to the logits, all but the bias.

        A word that stands there several times counts once, and each of them gives as much of it; so with pairs, whose
        two words give half each.
        """
        total = torch.zeros(len(ids), self.weights.embedding_dim, device=ids.device)
        words = torch.where(ids >= len(SPECIAL), ids, PAD_ID)
        places = find_pairs(self.pairs, ids, self.n_words)
        _, counted = self.distinct(ids.unsqueeze(0), torch.ones(1, len(ids), dtype=torch.bool, device=ids.device))
        scale = counted.sum().clamp(min=1).rsqrt()
        for ngrams, found, width in ((words, words != PAD_ID, 1), (places + self.n_words, places >= 0, 2)):
            _, which, often = torch.unique(ngrams, return_inverse=True, return_counts=True)
            each = self.weights(ngrams * found) * (found * scale / often[which] / width).unsqueeze(-1)
            for first in range(width):
                total[first : first + len(each)] += each
        return total

    def distinct(
        self, ids: Int[Tensor, "text token"], real: Bool[Tensor, "text token"]
    ) -> tuple[Int[Tensor, "text ngram"], Bool[Tensor, "text ngram"]]:
        """The numbers of a text's words and listed pairs, in rising order, and which of them count: each once."""
        words = torch.where(real & (ids >= len(SPECIAL)), ids, PAD_ID)
        places = find_pairs(self.pairs, ids, self.n_words)
        pairs = torch.where((places >= 0) & real[:, 1:], places + self.n_words, PAD_ID)
        ngrams = torch.cat([words, pairs], dim=1).sort(dim=1).values
        new = functional.pad(ngrams[:, 1:] != ngrams[:, :-1], (1, 0), value=True)
        return ngrams, new & (ngrams != PAD_ID)


@dataclass(frozen=True)
class ClassifierConfig:
    """An encoder, how its states become one vector, the names of the labels, and how many pairs are counted beside."""

    encoder: EncoderConfig
    labels: tuple[str, ...] = ("negative", "positive")
    pool: PoolKind = "mean"
    n_bigrams: int = 0  # 0: no n-grams at all


class Classifier(nn.Module):
    """Encoder, pooling, dropout, linear layer; to its logits those of n-grams are added, where there are some.

    `temperature` divides the logits so that probabilities are calibrated. `dropout` (of the pooled encoding) and
    `reach` (see `TextEmbedding`) are at work in training only.
    """

    temperature: Tensor

    def __init__(self, config: ClassifierConfig, dropout: float = 0.0, reach: int = 0) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config.encoder, reach)
        self.pool = POOLS[config.pool](config.encoder.d_model)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(config.encoder.d_model, len(config.labels))
        sizes = config.encoder.n_words, config.n_bigrams, len(config.labels)
        self.ngrams = NgramClassifier(*sizes) if config.n_bigrams else None
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, ids: Int[Tensor, "text token"], real: Bool[Tensor, "text token"]) -> Float[Tensor, "text label"]:
        """Logits, not yet divided by the temperature. `real` is False for padding."""
        logits = self.classify(self.states(ids, real), real)
        return logits if self.ngrams is None else logits + self.ngrams(ids, real)

    def states(
        self, ids: Int[Tensor, "text token"], real: Bool[Tensor, "text token"], *, need_weights: bool = False
    ) -> Float[Tensor, "text token d"]:
        """What the encoder makes of each token."""
        return torch.as_tensor(self.encoder(ids, not_padding(real), need_weights=need_weights))

    def classify(
        self, states: Float[Tensor, "text token d"], real: Bool[Tensor, "text token"]
    ) -> Float[Tensor, "text label"]:
        """Logits of each text from the states of its tokens, n-grams left out."""
        return torch.as_tensor(self.output(self.dropout(self.pool(states, real))))


class ClsPool(nn.Module):
    """The state of the first token, a [CLS] in front of the text (Devlin et al. 2019, arXiv:1810.04805)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()

    def forward(
        self, states: Float[Tensor, "text token d_model"], real: Bool[Tensor, "text token"]
    ) -> Float[Tensor, "text d_model"]:
        """The state of the first token."""
        return states[:, 0]


class MeanPool(nn.Module):
    """The mean over the tokens of the text."""

    def __init__(self, d_model: int) -> None:
        super().__init__()

    def forward(
        self, states: Float[Tensor, "text token d_model"], real: Bool[Tensor, "text token"]
    ) -> Float[Tensor, "text d_model"]:
        """The mean of the states, padding aside."""
        counted = real.unsqueeze(-1)
        return (states * counted).sum(dim=1) / counted.sum(dim=1)


class AttentionPool(nn.Module):
    """A mean whose weights are learned: softmax over a score per token (Yang et al. 2016, ACL N16-1174, simplified)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.score = nn.Linear(d_model, 1)

    def forward(
        self, states: Float[Tensor, "text token d_model"], real: Bool[Tensor, "text token"]
    ) -> Float[Tensor, "text d_model"]:
        """The mean of the states, each weighted by a learned score."""
        scores = self.score(states).squeeze(-1).masked_fill(~real, -torch.inf)
        return torch.as_tensor((scores.softmax(dim=-1).unsqueeze(-1) * states).sum(dim=1))


POOLS: dict[PoolKind, type[ClsPool] | type[MeanPool] | type[AttentionPool]] = {
    "cls": ClsPool,
    "mean": MeanPool,
    "attention": AttentionPool,
}


def fit_temperature(logits: Float[Tensor, "text label"], labels: Int[Tensor, " text"]) -> float:
    """The temperature of the least cross-entropy (Guo et al. 2017, arXiv:1706.04599). Fit it on texts held out.

    It changes no label, as it divides all logits alike.
    """
    logits = logits.detach().cpu().double()
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([log_temperature], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> float:
        search.zero_grad()
        value = functional.cross_entropy(logits / log_temperature.exp(), labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()

    search.step(loss)  # type: ignore[no-untyped-call]
    # Logits that are never wrong want an infinite one: no further than to a tenth or tenfold.
    return float(log_temperature.detach().exp().clamp(0.1, 10.0))
