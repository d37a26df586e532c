"""What the heads of an encoder look at, as shares of attention over held-out texts. Knows torch; no files.

Each score is the mean over queries of the weight on the keys that count for it, in texts put one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int

from attnviz.commands.train.examples import Examples, find_informative_words
from attnviz.measures.patterns import MAX_OFFSET, find_own_brackets, find_sentence_starts, find_targets, is_punctuation
from attnviz.models.batches import Ids
from attnviz.models.device import seeded
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.models.tokenizer import SPECIAL, TextTokenizer
from attnviz.records.head_names import name_offset
from attnviz.records.training_metrics import HeadScore

N_TOKENS = 128  # read of each text
N_INFORMATIVE = 60  # words of each label
N_RANDOM = 20  # encoders with random weights: what chance gives

Target = tuple[Bool[np.ndarray, "query key"], Bool[np.ndarray, " query"]]  # which keys count, and for which queries


@dataclass(frozen=True, eq=False)
class HeadTargets:
    """Texts, and in each of them which keys count for which score."""

    texts: Sequence[Ids]
    pieces: Sequence[str]  # of the vocabulary
    informative: dict[str, Int[np.ndarray, " word"]]

    def list_targets(self, ids: Ids) -> Iterator[tuple[str, Target]]:
        """List the keys and queries that count for each score, by its name."""
        n, every = len(ids), np.ones(len(ids), dtype=bool)
        pieces = [self.pieces[word] for word in ids]
        for offset in sorted(range(-MAX_OFFSET, MAX_OFFSET + 1), key=abs):
            yield name_offset(offset), (np.eye(n, k=offset, dtype=bool), every)
        yield "own bracket", _locate(find_own_brackets(pieces), n)
        same = (ids[:, None] == ids) & (ids >= len(SPECIAL))
        yield "same word", (same & ~np.eye(n, dtype=bool), every)
        signs = np.array([is_punctuation(piece) for piece in pieces])
        yield "punctuation", (np.broadcast_to(signs, (n, n)), every)
        yield "sentence start", _locate(find_sentence_starts(pieces), n)
        for label, words in self.informative.items():
            yield f"words for {label}", (np.broadcast_to(np.isin(ids, words), (n, n)), every)


def choose_head_targets(
    held_out: Examples, training: Examples, labels: Sequence[str], tokenizer: TextTokenizer, n_texts: int
) -> HeadTargets:
    """Choose `n_texts` of the texts held out, half from each end, since the labels come one after the other."""
    half, there = n_texts // 2, held_out.texts
    several = there if len(there) <= n_texts else (*there[:half], *there[-half:])
    texts = [text[:N_TOKENS] for text in several]
    entries = tokenizer.entries
    words = find_informative_words(training, len(tokenizer), N_INFORMATIVE)
    return HeadTargets(texts, sorted(entries, key=entries.__getitem__), dict(zip(labels, words, strict=True)))


def score_heads(encoder: Encoder, targets: HeadTargets) -> tuple[HeadScore, ...]:
    """Return by score the share that each head gives, and an equal share. What no text has is left out."""
    shares: dict[str, np.ndarray] = {}
    equal: dict[str, float] = {}
    n_queries: dict[str, int] = {}
    encoder.eval()
    device = encoder.embedding.words.weight.device
    with torch.inference_mode():
        for ids in targets.texts:
            given = torch.from_numpy(ids.astype(np.int64)).to(device)
            weights = np.stack([layer.cpu().numpy() for layer in encoder.attention(given)])
            for name, (keys, queries) in targets.list_targets(ids):
                shares[name] = shares.get(name, 0) + (weights[:, :, queries] * keys[queries]).sum(axis=(2, 3))
                equal[name] = equal.get(name, 0) + keys[queries].sum() / len(ids)
                n_queries[name] = n_queries.get(name, 0) + int(queries.sum())
    return tuple(
        HeadScore(
            name,
            tuple(tuple(map(float, layer)) for layer in total / n_queries[name]),
            float(equal[name] / n_queries[name]),
        )
        for name, total in shares.items()
        if n_queries[name] and equal[name]
    )


def score_random_heads(config: EncoderConfig, targets: HeadTargets) -> dict[str, float]:
    """Return by score the largest share that any head of `N_RANDOM` encoders with random weights gives."""
    found: dict[str, float] = {}
    for seed in range(N_RANDOM):
        with seeded(seed):
            encoder = Encoder(config)
        for score in score_heads(encoder, targets):  # of the same texts, since shares go with their lengths
            found[score.name] = max(found.get(score.name, 0.0), score.best)
    return found


def _locate(pairs: Iterator[tuple[int, int]], n: int) -> Target:
    """Mark one key of each query of some pairs."""
    targets = find_targets(pairs, n)
    return targets[:, None] == np.arange(n), targets >= 0
