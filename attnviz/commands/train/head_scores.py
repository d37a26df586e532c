"""What the heads of an encoder look at, as shares of attention over held-out texts. Knows torch; no files.

Each score is the mean over queries of the weight on the keys that count for it, in texts put one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import category

import numpy as np
import torch
from jaxtyping import Bool, Int

from attnviz.commands.train.examples import Examples, find_informative_words
from attnviz.models.batches import Ids
from attnviz.models.device import seeded
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.models.tokenizer import SPECIAL, TextTokenizer
from attnviz.records.training_metrics import HeadScore, name_offset

MAX_OFFSET = 8  # tokens from the query, either way, of a place that has a score of its own
N_TOKENS = 128  # read of each text
N_INFORMATIVE = 60  # words of each label
N_RANDOM = 20  # encoders with random weights: what chance gives
OPENING, CLOSING, STOPS = "([{（［｛【「『《〈", ")]}）］｝】」』》〉", ".?!。？！．"

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
        yield "own bracket", _find_own_brackets(pieces)
        same = (ids[:, None] == ids) & (ids >= len(SPECIAL))
        yield "same word", (same & ~np.eye(n, dtype=bool), every)
        signs = np.array([all(category(character)[0] in "PS" for character in piece) for piece in pieces])
        yield "punctuation", (np.broadcast_to(signs, (n, n)), every)
        yield "sentence start", _find_sentence_starts(pieces)
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


def _find_own_brackets(pieces: Sequence[str]) -> Target:
    """Find each closing bracket's own opening one, whatever kind it is of."""
    keys, queries = np.zeros((len(pieces),) * 2, dtype=bool), np.zeros(len(pieces), dtype=bool)
    opened: list[int] = []
    for place, piece in enumerate(pieces):
        if piece in OPENING:
            opened.append(place)
        elif piece in CLOSING and opened:
            keys[place, opened.pop()] = queries[place] = True
    return keys, queries


def _find_sentence_starts(pieces: Sequence[str]) -> Target:
    """Find the first token of the sentence for each token after it."""
    keys, queries = np.zeros((len(pieces),) * 2, dtype=bool), np.zeros(len(pieces), dtype=bool)
    start = 0
    for place, piece in enumerate(pieces):
        keys[place, start] = queries[place] = place > start
        if piece in STOPS:
            start = place + 1
    return keys, queries
