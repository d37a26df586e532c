"""Labelled texts made ready for training: ids, which of them are held out, and the pairs of words that tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.models.batches import Ids
from attnviz.models.embedding import pair_keys


@dataclass(frozen=True, eq=False)
class Examples:
    """Whole texts as ids, and the label of each."""

    texts: Sequence[Ids]
    labels: Int[np.ndarray, " text"]

    def __len__(self) -> int:
        return len(self.texts)

    def some(self, chosen: Int[np.ndarray, " chosen"]) -> Examples:
        """Some of the examples, by number."""
        return Examples([self.texts[text] for text in chosen], self.labels[chosen])


def held_out(labels: Int[np.ndarray, " text"], share: float) -> Int[np.ndarray, " held"]:
    """Which texts to keep from training: of each label the last ones, at least one of them and never all.

    Neighbours stay together, because reviews of one film stand next to each other in IMDb: drawn at random, a held-out
    text would have siblings in training, and accuracy on it would read several points too high.
    """
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        n_held = min(max(1, round(share * len(own))), len(own) - 1) if share else 0
        chosen.append(own[len(own) - n_held :])
    return np.concatenate(chosen)


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


def g_squared(holding: Int[np.ndarray, "pair label"], n_texts: Int[np.ndarray, " label"]) -> Float[np.ndarray, " pair"]:
    """2 Σ observed ln(observed / expected), over the texts of each label that hold a pair and those that do not."""
    total = np.zeros(len(holding))
    for observed in (holding, n_texts - holding):
        expected = observed.sum(axis=1, keepdims=True) * (n_texts / n_texts.sum())
        ratio = np.divide(observed, expected, out=np.ones(observed.shape), where=observed > 0)
        total += 2 * (observed * np.log(ratio)).sum(axis=1)
    return np.maximum(total, 0.0)  # a pair that tells nothing may come out at -1e-16
