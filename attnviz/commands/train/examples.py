"""Labelled texts made ready for training: ids, which of them are held out, and what tells their labels apart.

That is which words and pairs of words; the weights of n-grams are found here too, and kept in `ngrams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from attnviz.commands.train.spec import TrainSpec
from attnviz.models.batches import Ids, batch_by_length, cut_text, pad
from attnviz.models.classifier import NgramClassifier
from attnviz.models.encoder import pair_keys
from attnviz.models.tokenizer import SPECIAL

MIN_TEXTS = 5  # that hold a pair of words, for it to be counted
PENALTY = 1e-6  # × (weight - 1/2)² of every n-gram: the ratios of naive Bayes are a good guess already
ITERATIONS = 25  # of L-BFGS
BATCH = 256  # texts


@dataclass(frozen=True, eq=False)
class Examples:
    """Whole texts as ids, and the label of each."""

    texts: Sequence[Ids]
    labels: Int[np.ndarray, " text"]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, chosen: Int[np.ndarray, " chosen"]) -> Examples:
        """Return some of the examples, by their numbers."""
        return Examples([self.texts[text] for text in chosen], self.labels[chosen])

    def cut_texts(self, spec: TrainSpec) -> Examples:
        """Return the texts cut as the model will read them."""
        n_markers = int(spec.pool == "cls")
        return Examples([cut_text(text, spec.max_tokens, spec.keep, n_markers) for text in self.texts], self.labels)


def choose_held_out(labels: Int[np.ndarray, " text"], share: float) -> Int[np.ndarray, " held"]:
    """Choose the texts to keep from training: of each label the last ones, at least one of them and never all.

    Neighbours stay together, because reviews of one film stand next to each other in IMDb: drawn at random, a held-out
    text would have siblings in training, and accuracy on it would read several points too high.
    """
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        n_held = min(max(1, round(share * len(own))), len(own) - 1) if share else 0
        chosen.append(own[len(own) - n_held :])
    return np.concatenate(chosen)


def compute_g_squared(
    holding: Int[np.ndarray, "pair label"], n_texts: Int[np.ndarray, " label"]
) -> Float[np.ndarray, " pair"]:
    """Return 2 Σ observed ln(observed / expected), over the texts of each label with a pair and without it."""
    total = np.zeros(len(holding))
    for observed in (holding, n_texts - holding):
        expected = observed.sum(axis=1, keepdims=True) * (n_texts / n_texts.sum())
        ratio = np.divide(observed, expected, out=np.ones(observed.shape), where=observed > 0)
        total += 2 * (observed * np.log(ratio)).sum(axis=1)
    return np.maximum(total, 0.0)  # a pair that tells nothing may come out at -1e-16


def find_informative_words(examples: Examples, n_words: int, most: int) -> list[Int[np.ndarray, " word"]]:
    """Find the words that tell each label best from the others by G², special tokens aside."""
    n_labels = int(examples.labels.max()) + 1
    holding = np.zeros((n_words, n_labels), dtype=np.int64)
    for text, label in zip(examples.texts, examples.labels, strict=True):
        holding[np.unique(text), label] += 1
    n_texts = np.bincount(examples.labels, minlength=n_labels)
    score = compute_g_squared(holding, n_texts)
    score[: len(SPECIAL)] = 0
    favoured = (holding / n_texts).argmax(axis=1)
    ranked = [np.argsort(-np.where(favoured == label, score, 0), kind="stable")[:most] for label in range(n_labels)]
    return [words[(favoured[words] == label) & (score[words] > 0)] for label, words in enumerate(ranked)]


def fit_ngrams(examples: Examples, n_words: int, max_pairs: int) -> NgramClassifier | None:
    """Return the ratios of naive Bayes, each times a trust that logistic regression learns. None without pairs.

    A ratio is ln(share of a label's n-grams) less the mean over the labels. The same examples give the same weights.
    """
    pairs = find_informative_bigrams(examples, n_words, max_pairs, MIN_TEXTS)
    if not len(pairs):
        return None
    found = NgramClassifier(n_words, len(pairs), int(examples.labels.max()) + 1)
    found.pairs.copy_(pairs)
    ngrams, per_text, order = _collect_ngrams(found, examples)
    labels = torch.from_numpy(examples.labels[order])
    ratios = _compute_log_ratios(ngrams, torch.repeat_interleave(labels, per_text), *found.weights.weight.shape)
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


def _collect_ngrams(
    counting: NgramClassifier, examples: Examples
) -> tuple[Int[Tensor, " ngram"], Int[Tensor, " text"], Int[np.ndarray, " text"]]:
    """Return the n-grams of all texts in one row, how many each text has, and in which order the texts come."""
    found, per_text, order = [], [], []
    for chosen in batch_by_length([len(text) for text in examples.texts], BATCH):
        ngrams, counted = counting.distinct(*pad([examples.texts[text] for text in chosen]))
        found.append(ngrams[counted])
        per_text.append(counted.sum(dim=1))
        order.append(chosen)
    return torch.cat(found), torch.cat(per_text).clamp(min=0), np.concatenate(order)


def _compute_log_ratios(
    ngrams: Int[Tensor, " found"], labels: Int[Tensor, " found"], n_ngrams: int, n_labels: int
) -> Float[Tensor, "ngram label"]:
    """Return the ratio of each n-gram and label, as if one text more held it."""
    holding = torch.bincount(ngrams * n_labels + labels, minlength=n_ngrams * n_labels).view(n_ngrams, n_labels) + 1.0
    logs = (holding / holding.sum(dim=0)).log()
    ratios = logs - logs.mean(dim=1, keepdim=True)
    ratios[: len(SPECIAL)] = 0
    return ratios


def find_informative_bigrams(examples: Examples, n_words: int, most: int, min_texts: int) -> Int[Tensor, " pair"]:
    """Find the pairs of words that tell the labels apart best, as rising `pair_keys`, in at least `min_texts` texts.

    Ranked by G² between label and presence in a text (Dunning 1993, ACL J93-1003): half as many pairs do better so than
    the commonest ones, most of which ("of the") tell nothing.
    """
    found = [np.unique(pair_keys(torch.from_numpy(text.astype(np.int64)), n_words).numpy()) for text in examples.texts]
    keys, pair = np.unique(np.concatenate(found), return_inverse=True)
    n_labels = int(examples.labels.max()) + 1
    label = np.repeat(examples.labels, [len(pairs) for pairs in found])
    holding = np.bincount(pair * n_labels + label, minlength=len(keys) * n_labels).reshape(len(keys), n_labels)
    score = compute_g_squared(holding, np.bincount(examples.labels, minlength=n_labels))
    score[holding.sum(axis=1) < min_texts] = -1
    best = np.argsort(-score, kind="stable")[:most]
    return torch.from_numpy(np.sort(keys[best[score[best] >= 0]]))
