"""Labelled texts made ready for training: ids, and which of them are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from attnviz.models.batches import Ids


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
        n_held = min(max(1, round(share * len(own))), len(own) - 1)
        chosen.append(own[len(own) - n_held :])
    return np.concatenate(chosen)
