"""Labelled texts made ready for training: ids, which of them are held out, and which words tell their labels apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnviz.models.batches import Ids
from attnviz.models.tokenizer import SPECIAL


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
    holding: Int[np.ndarray, "word label"], n_texts: Int[np.ndarray, " label"]
) -> Float[np.ndarray, " word"]:
    """Return 2 Σ observed ln(observed / expected), over the texts of each label with a word and without it.

    Dunning 1993, ACL J93-1003.
    """
    total = np.zeros(len(holding))
    for observed in (holding, n_texts - holding):
        expected = observed.sum(axis=1, keepdims=True) * (n_texts / n_texts.sum())
        ratio = np.divide(observed, expected, out=np.ones(observed.shape), where=observed > 0)
        total += 2 * (observed * np.log(ratio)).sum(axis=1)
    return np.maximum(total, 0.0)  # a word that tells nothing may come out at -1e-16


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
