"""What a transformer reads: words and positions as vectors, summed. Knows torch; no texts, no files."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

PAD_ID = 0  # [PAD] among the words; a hidden word is read as it
SCALE = 0.1  # of words and positions at the start; from larger ones, training takes more epochs


class TextEmbedding(nn.Module):
    """Word + position, sections 3.4 and 3.5 of Vaswani et al. 2017; in earlier checkpoints pairs of words, too.

    In training, with `reach`, texts begin at any position that leaves them within the first `reach`: a model that
    learned from short stretches then reads longer texts without meeting positions that it has never seen.
    """

    def __init__(
        self, n_words: int, d_model: int, n_bigrams: int = 0, reach: int = 0, *, positions: bool = True
    ) -> None:
        super().__init__()
        self.reach = reach
        self.positions = positions
        self.words = _vectors(n_words, d_model)
        self.bigrams = Bigrams(n_words, n_bigrams) if n_bigrams else None
        self.of_bigrams = _vectors(n_bigrams + 1, d_model) if n_bigrams else None

    def forward(self, ids: Int[Tensor, "*batch token"]) -> Float[Tensor, "*batch token d_model"]:
        """One vector per token: of its word, and of its position where positions have vectors."""
        embedded = self.words(ids)
        if self.bigrams is not None and self.of_bigrams is not None:
            embedded = embedded + self.of_bigrams(self.bigrams(ids))
        if not self.positions:
            return torch.as_tensor(embedded)
        n_tokens, d_model = embedded.shape[-2:]
        place = positions(n_tokens, d_model, start=self._start(n_tokens), device=embedded.device)
        return torch.as_tensor(embedded + SCALE * place)

    def _start(self, n_tokens: int) -> int:
        if not self.training or self.reach <= n_tokens:
            return 0
        return int(torch.randint(self.reach - n_tokens + 1, ()))


class Bigrams(nn.Module):
    """From words to the numbers of the pairs that they end, such as "not good" for "good"; 0 for a pair not listed."""

    pairs: Tensor  # strictly rising, see `pair_keys`

    def __init__(self, n_words: int, n_bigrams: int) -> None:
        super().__init__()
        self.n_words = n_words
        self.register_buffer("pairs", first_pairs(n_bigrams))

    def forward(self, ids: Int[Tensor, "*batch token"]) -> Int[Tensor, "*batch token"]:
        """The number of the pair that each token ends; the first word has none before it."""
        numbers = find_pairs(self.pairs, ids, self.n_words) + 1
        return functional.pad(numbers, (1, 0), value=PAD_ID)


def pair_keys(ids: Int[Tensor, "*batch token"], n_words: int) -> Int[Tensor, "*batch pair"]:
    """One number for each pair of neighbours: n_words · first + second."""
    return ids[..., :-1] * n_words + ids[..., 1:]


def find_pairs(
    pairs: Int[Tensor, " listed"], ids: Int[Tensor, "*batch token"], n_words: int
) -> Int[Tensor, "*batch pair"]:
    """The place of each pair of neighbours in a list of rising keys; -1 where it is not in it."""
    keys = pair_keys(ids, n_words)
    places = torch.searchsorted(pairs, keys).clamp(max=len(pairs) - 1)
    return torch.where(pairs[places] == keys, places, -1)


def first_pairs(n_pairs: int) -> Int[Tensor, " listed"]:
    """Keys to be replaced; on the meta device values are filled in later."""
    pairs = torch.empty(n_pairs, dtype=torch.int64)
    return pairs if pairs.device.type == "meta" else torch.arange(n_pairs)


def _vectors(n_rows: int, d_model: int) -> nn.Embedding:
    """Row 0 stays zero. On the meta device values are filled in later; to make some would import torch's compiler."""
    weight = torch.empty(n_rows, d_model)
    if weight.device.type != "meta":
        nn.init.normal_(weight, std=SCALE)
        weight[PAD_ID] = 0
    return nn.Embedding(n_rows, d_model, padding_idx=PAD_ID, _weight=weight)


def positions(
    n_tokens: int, d_model: int, start: int = 0, device: torch.device | None = None
) -> Float[Tensor, "token d_model"]:
    """Sines and cosines of wavelengths from 2π to 10,000 · 2π, section 3.5: defined for texts of any length."""
    token = torch.arange(start, start + n_tokens, device=device).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2, device=device) * (-math.log(10_000.0) / d_model))
    angles = token * frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]
