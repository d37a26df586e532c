"""Words hidden and replaced, for a model to find out. Knows ids and numpy; no model and no vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.models.batches import Ids
from attnviz.models.encoder import PAD_ID

MASKED_SHARE = 0.15  # of the words that is hidden (Devlin et al. 2019, arXiv:1810.04805)
REPLACED_SHARE = 0.12  # that another word stands in for (Clark et al. 2020, arXiv:2003.10555, with a second model)
WINDOW = 128  # tokens


class Corrupted(NamedTuple):
    """Windows as the model gets them, as they were, and where they differ."""

    ids: Int[Tensor, "window token"]
    original: Int[Tensor, "window token"]
    masked: Bool[Tensor, "window token"]
    replaced: Bool[Tensor, "window token"]  # by a different word; never a masked one


class Windows:
    """Texts one after the other, cut into windows without regard to where they end: no padding."""

    def __init__(self, texts: Sequence[Ids]) -> None:
        self.texts = texts
        self.stream = np.concatenate(texts).astype(np.int64)
        self.n_tokens = min(WINDOW, len(self.stream))
        firsts = self.stream[:-1]
        self._by_word = np.argsort(firsts, kind="stable")  # positions of each word, but for that of the last token
        self._counts = np.bincount(firsts, minlength=int(self.stream.max()) + 1)
        self._starts = np.cumsum(self._counts) - self._counts

    def __len__(self) -> int:
        return len(self.stream) // self.n_tokens

    def shuffle(self, generator: np.random.Generator) -> Int[np.ndarray, "window token"]:
        """Return windows of the texts in random order, each once; what is left at the end fills no window."""
        stream = np.concatenate([self.texts[text] for text in generator.permutation(len(self.texts))])
        windows = stream[: len(self) * self.n_tokens].reshape(len(self), self.n_tokens).astype(np.int64)
        return windows[generator.permutation(len(windows))]

    def corrupt(self, windows: Int[np.ndarray, "window token"], generator: np.random.Generator) -> Corrupted:
        """Mask and replace words; half of the replacements are drawn by frequency, half follow the word before."""
        chance = generator.random(windows.shape)
        masked = chance < MASKED_SHARE
        chosen = (chance >= MASKED_SHARE) & (chance < MASKED_SHARE + REPLACED_SHARE)
        anywhere = self.stream[generator.integers(len(self.stream), size=windows.shape)]
        before = np.concatenate([windows[:, :1], windows[:, :-1]], axis=1)
        nth = (generator.random(windows.shape) * self._counts[before]).astype(np.int64)
        found = self._by_word[np.minimum(self._starts[before] + nth, len(self._by_word) - 1)]
        follower = np.where(self._counts[before] > 0, self.stream[found + 1], self.stream[0])  # the first where none is
        other = np.where(generator.random(windows.shape) < 0.5, anywhere, follower)
        ids = np.where(masked, PAD_ID, np.where(chosen, other, windows))
        replaced = (ids != windows) & ~masked
        return Corrupted(*map(torch.from_numpy, (ids, windows, masked, replaced)))
