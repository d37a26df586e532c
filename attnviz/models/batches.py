"""From ids of texts to tensors: cuts to size, batches of like lengths, padding. Knows no model and no vocabulary."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.models.encoder import PAD_ID
from attnviz.models.sizes import count_kept
from attnviz.specs import KeepKind

Ids = Int[np.ndarray, "_"]  # each text has a length of its own
SHORT = 0.3  # share of the texts of which a short stretch is taken
MIN_CROP, MAX_SHORT_CROP = 8, 64  # tokens of such a stretch, its logarithm evenly distributed
BUCKET = 50  # batches whose texts are sorted by length together, so that little padding is needed


class PaddedTexts(NamedTuple):
    """Texts side by side, padded to the longest. `real` is False for padding."""

    ids: Int[Tensor, "text token"]
    real: Bool[Tensor, "text token"]


def pad(texts: Sequence[Ids], multiple: int = 1) -> PaddedTexts:
    """Pad texts to the rows of one batch, as wide as the longest, or up to the next multiple."""
    lengths = torch.tensor([len(text) for text in texts])
    ids = torch.full((len(texts), -(-int(lengths.max()) // multiple) * multiple), PAD_ID)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.from_numpy(text)
    return PaddedTexts(ids, torch.arange(ids.shape[1]) < lengths.unsqueeze(1))


def cut_text(ids: Ids, max_tokens: int | None, keep: KeepKind, n_markers: int = 0) -> Ids:
    """Cut a text to `max_tokens`, as `TextTokenizer.encode` does: the markers, then what is kept of the text."""
    room = None if max_tokens is None else max(1, max_tokens - n_markers)
    head, tail = count_kept(len(ids) - n_markers, room, keep)
    return np.concatenate([ids[: n_markers + head], ids[len(ids) - tail :]]) if tail else ids[: n_markers + head]


def crop(ids: Ids, n_tokens: int, generator: np.random.Generator, n_markers: int = 0) -> Ids:
    """Cut a text to `n_tokens`: as often head and tail as a stretch from anywhere after its markers.

    Attention costs the square of the length: training on halves takes a quarter of the time.
    """
    if len(ids) <= n_tokens:
        return ids
    if generator.random() < 0.5:
        return cut_text(ids, n_tokens, "head-tail", n_markers)
    start = int(generator.integers(n_markers, len(ids) - (n_tokens - n_markers) + 1))
    return np.concatenate([ids[:n_markers], ids[start : start + n_tokens - n_markers]])


def stretch(ids: Ids, n_tokens: int, generator: np.random.Generator, n_markers: int = 0) -> Ids:
    """Cut as `crop` does, or for a share of the texts a sentence or a few, so that short texts are learned too."""
    n_words = len(ids) - n_markers
    if generator.random() >= SHORT or n_words <= MIN_CROP:
        return crop(ids, n_tokens, generator, n_markers)
    length = min(n_words, int(np.exp(generator.uniform(np.log(MIN_CROP), np.log(MAX_SHORT_CROP)))))
    start = n_markers + int(generator.integers(n_words - length + 1))
    return np.concatenate([ids[:n_markers], ids[start : start + length]])[: max(n_tokens, 1)]


def shuffle_batches(
    lengths: Sequence[int], batch_size: int, generator: np.random.Generator
) -> list[Int[np.ndarray, " text"]]:
    """Draw every text once, in batches of like lengths and in random order."""
    order = generator.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), batch_size * BUCKET):
        bucket = order[start : start + batch_size * BUCKET]
        bucket = bucket[np.argsort([lengths[text] for text in bucket], kind="stable")]
        batches += [bucket[first : first + batch_size] for first in range(0, len(bucket), batch_size)]
    return [batches[place] for place in generator.permutation(len(batches))]


def batch_by_length(
    lengths: Sequence[int], batch_size: int, max_tokens: int | None = None, *, alike: bool = False
) -> Iterator[Int[np.ndarray, " text"]]:
    """Yield every text once, the shortest first; in batches of no more than `max_tokens`, or of one text.

    `alike`: only texts of one length are in a batch.
    """
    order = np.argsort(lengths, kind="stable")
    first = 0
    while first < len(order):
        size, most = 1, min(batch_size, len(order) - first)
        while size < most:
            longest = lengths[order[first + size]]
            if (max_tokens and (size + 1) * longest > max_tokens) or (alike and longest > lengths[order[first]]):
                break
            size += 1
        yield order[first : first + size]
        first += size
