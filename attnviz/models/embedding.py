"""What a transformer reads: words, pairs of words and positions as vectors, summed. Knows torch; no texts, no files."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

PAD_ID = 0  # [PAD] among the words, no pair among the bigrams
SCALE = 0.1  # of words and positions at the start; from larger ones, training takes more epochs


class TextEmbedding(nn.Module):
    """Word + bigram + position, sections 3.4 and 3.5 of Vaswani et al. 2017; the bigram is ours.

    Both of these are for training only. `word_dropout` is the share of words, and of bigrams, that is left out: no word
    alone shall decide. With `reach`, texts begin at any position that leaves them within the first `reach`: a model
    that learned from short stretches then reads longer texts without meeting positions that it has never seen.
    """

    def __init__(
        self,
        n_words: int,
        d_model: int,
        n_bigrams: int = 0,
        word_dropout: float = 0.0,
        reach: int = 0,
        *,
        positions: bool = True,
    ) -> None:
        super().__init__()
        self.word_dropout = word_dropout
        self.reach = reach
        self.positions = positions
        self.words = _vectors(n_words, d_model, SCALE)
        self.bigrams = Bigrams(n_words, n_bigrams) if n_bigrams else None
        self.of_bigrams = _vectors(n_bigrams + 1, d_model, 0.0) if n_bigrams else None

    def forward(self, ids: Int[Tensor, "*batch token"]) -> Float[Tensor, "*batch token d_model"]:
        """One vector per token: of its word, of the pair that it ends, of its position."""
        embedded = self.words(self._some(ids))
        if self.bigrams is not None and self.of_bigrams is not None:
            embedded = embedded + self.of_bigrams(self._some(self.bigrams(ids)))
        if not self.positions:
            return torch.as_tensor(embedded)
        n_tokens, d_model = embedded.shape[-2:]
        place = positions(n_tokens, d_model, start=self._start(n_tokens), device=embedded.device)
        return torch.as_tensor(embedded + SCALE * place)

    def _start(self, n_tokens: int) -> int:
        if not self.training or self.reach <= n_tokens:
            return 0
        return int(torch.randint(self.reach - n_tokens + 1, ()))

    def _some(self, ids: Int[Tensor, "*batch token"]) -> Int[Tensor, "*batch token"]:
        if not self.training or not self.word_dropout:
            return ids
        return ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.word_dropout, PAD_ID)


class Bigrams(nn.Module):
    """From words to the numbers of the pairs that they end, such as "not good" for "good"; 0 for a pair not listed.

    Bags of bigrams classify sentiment well (Wang & Manning 2012, ACL P12-2018; Joulin et al. 2017, arXiv:1607.01759).
    """

    pairs: Tensor  # strictly rising, see `pair_keys`

    def __init__(self, n_words: int, n_bigrams: int) -> None:
        super().__init__()
        self.n_words = n_words
        pairs = torch.empty(n_bigrams, dtype=torch.int64) if _only_sizes() else torch.arange(n_bigrams)
        self.register_buffer("pairs", pairs)

    def forward(self, ids: Int[Tensor, "*batch token"]) -> Int[Tensor, "*batch token"]:
        """The number of the pair that each token ends; 0 for a pair that is not listed."""
        wanted = pair_keys(ids, self.n_words)
        places = torch.searchsorted(self.pairs, wanted).clamp(max=len(self.pairs) - 1)
        numbers = torch.where(self.pairs[places] == wanted, places + 1, PAD_ID)
        return functional.pad(numbers, (1, 0), value=PAD_ID)  # the first word has none before it


def _vectors(n_rows: int, d_model: int, std: float) -> nn.Embedding:
    """Row 0 stays zero. Sparse gradients: a batch meets few of the rows."""
    if _only_sizes():
        empty = torch.empty(n_rows, d_model)
        return nn.Embedding(n_rows, d_model, padding_idx=PAD_ID, sparse=True, _weight=empty)
    embedding = nn.Embedding(n_rows, d_model, padding_idx=PAD_ID, sparse=True)
    nn.init.normal_(embedding.weight, std=std)
    with torch.no_grad():
        embedding.weight[PAD_ID] = 0
    return embedding


def _only_sizes() -> bool:
    """Whether values are filled in later; to make some nevertheless would import torch's compiler: seconds."""
    return torch.get_default_device().type == "meta"


def pair_keys(ids: Int[Tensor, "*batch token"], n_words: int) -> Int[Tensor, "*batch pair"]:
    """One number for each pair of neighbours: n_words · first + second."""
    return ids[..., :-1] * n_words + ids[..., 1:]


def positions(
    n_tokens: int, d_model: int, start: int = 0, device: torch.device | None = None
) -> Float[Tensor, "token d_model"]:
    """Sines and cosines of wavelengths from 2π to 10,000 · 2π, section 3.5: defined for texts of any length."""
    token = torch.arange(start, start + n_tokens, device=device).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2, device=device) * (-math.log(10_000.0) / d_model))
    angles = token * frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]
