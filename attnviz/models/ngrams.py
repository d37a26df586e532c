"""Which words and pairs of words a text holds, weighed per label: said beside what the encoder says. Knows no files.

Bags of n-grams classify sentiment well and know nothing of attention (Wang & Manning 2012, ACL P12-2018).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attnviz.models.embedding import PAD_ID, find_pairs, first_pairs
from attnviz.models.tokenizer import SPECIAL

COMPARED = 0.5  # of their logits counts where epochs are compared, so that the better encoder is kept


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
