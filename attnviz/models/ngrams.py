"""Which words and pairs of words a text holds, weighed per label: said beside what the encoder says. Knows no files.

Bags of n-grams classify sentiment well and know nothing of attention (Wang & Manning 2012, ACL P12-2018).
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attnviz.models.batches import by_length, padded
from attnviz.models.embedding import PAD_ID, find_pairs, first_pairs, pair_keys
from attnviz.models.examples import Examples, g_squared
from attnviz.models.tokenizer import SPECIAL

COMPARED = 0.5  # of their logits counts where epochs are compared, so that the better encoder is kept
MIN_TEXTS = 5  # that hold a pair of words, for it to be counted
PENALTY = 1e-6  # × (weight - 1/2)² of every n-gram: the ratios of naive Bayes are a good guess already
ITERATIONS = 25  # of L-BFGS
BATCH = 256  # texts


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
        self.requires_grad_(False)  # `fit` finds them; training leaves them as they are

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


def fit(examples: Examples, n_words: int, max_pairs: int) -> NgramClassifier | None:
    """The ratios of naive Bayes, each times a trust in it that logistic regression learns. None without pairs.

    A ratio is ln(share of a label's n-grams) less the mean over the labels. The same examples give the same weights.
    """
    pairs = informative_bigrams(examples, n_words, max_pairs, MIN_TEXTS)
    if not len(pairs):
        return None
    found = NgramClassifier(n_words, len(pairs), int(examples.labels.max()) + 1)
    found.pairs.copy_(pairs)
    ngrams, per_text, order = _held(found, examples)
    labels = torch.from_numpy(examples.labels[order])
    ratios = _log_ratios(ngrams, torch.repeat_interleave(labels, per_text), *found.weights.weight.shape)
    starts = per_text.cumsum(0) - per_text
    each = torch.repeat_interleave(per_text.double().rsqrt(), per_text).float()
    trust = torch.ones(len(ratios), 1, requires_grad=True)
    bias = torch.zeros_like(found.bias, requires_grad=True)
    search = torch.optim.LBFGS([trust, bias], max_iter=ITERATIONS, history_size=8, line_search_fn="strong_wolfe")

    def loss() -> float:
        search.zero_grad()
        logits = functional.embedding_bag(ngrams, trust * ratios, starts, mode="sum", per_sample_weights=each) + bias
        value = functional.cross_entropy(logits, labels) + PENALTY * ((trust - 0.5) ** 2).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()

    search.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        found.weights.weight.copy_(trust * ratios)
        found.bias.copy_(bias)
    return found


def _held(
    counting: NgramClassifier, examples: Examples
) -> tuple[Int[Tensor, " ngram"], Int[Tensor, " text"], Int[np.ndarray, " text"]]:
    """The n-grams of all texts one after the other, how many each has, and in which order the texts come."""
    found, per_text, order = [], [], []
    for chosen in by_length([len(text) for text in examples.texts], BATCH):
        ngrams, counted = counting.distinct(*padded([examples.texts[text] for text in chosen]))
        found.append(ngrams[counted])
        per_text.append(counted.sum(dim=1))
        order.append(chosen)
    return torch.cat(found), torch.cat(per_text).clamp(min=0), np.concatenate(order)


def _log_ratios(
    ngrams: Int[Tensor, " found"], labels: Int[Tensor, " found"], n_ngrams: int, n_labels: int
) -> Float[Tensor, "ngram label"]:
    """Of each n-gram and label, with one text more that holds it."""
    holding = torch.bincount(ngrams * n_labels + labels, minlength=n_ngrams * n_labels).view(n_ngrams, n_labels) + 1.0
    logs = (holding / holding.sum(dim=0)).log()
    ratios = logs - logs.mean(dim=1, keepdim=True)
    ratios[: len(SPECIAL)] = 0
    return ratios


def informative_bigrams(examples: Examples, n_words: int, most: int, min_texts: int) -> Int[Tensor, " pair"]:
    """The pairs of words that tell the labels apart best, as rising `pair_keys`; none that fewer texts hold.

    Ranked by G² between label and presence in a text (Dunning 1993, ACL J93-1003): half as many pairs do better so than
    the commonest ones, most of which ("of the") tell nothing.
    """
    found = [np.unique(pair_keys(torch.from_numpy(text.astype(np.int64)), n_words).numpy()) for text in examples.texts]
    keys, pair = np.unique(np.concatenate(found), return_inverse=True)
    n_labels = int(examples.labels.max()) + 1
    label = np.repeat(examples.labels, [len(pairs) for pairs in found])
    holding = np.bincount(pair * n_labels + label, minlength=len(keys) * n_labels).reshape(len(keys), n_labels)
    score = g_squared(holding, np.bincount(examples.labels, minlength=n_labels))
    score[holding.sum(axis=1) < min_texts] = -1
    best = np.argsort(-score, kind="stable")[:most]
    return torch.from_numpy(np.sort(keys[best[score[best] >= 0]]))
