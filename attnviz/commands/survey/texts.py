"""One block of a survey: some texts through a model, measured and summarised. What processes are given to do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from attnviz.commands.survey.exact import Summary
from attnviz.commands.survey.survey import ABLATION, MASS_BITS, QUERIES, TOKENS, Survey, SurveyInfo, WordTable
from attnviz.errors import InvalidText
from attnviz.measures import measure_possible
from attnviz.measures.concentration import average_received
from attnviz.measures.rows import sum_by_distance
from attnviz.models.protocols import Ablatable, AttentionModel, quickest_attention
from attnviz.records import AttentionMaps
from attnviz.text import Document

UNKNOWN = "[UNK]"  # all words that the vocabulary does not hold together: there is no end of them


@dataclass(eq=False)
class _Words:
    """Tokens of several texts: which word each is, and what it receives of each head."""

    numbers: dict[str, int] = field(default_factory=dict)
    tokens: list[np.ndarray] = field(default_factory=list)  # of each text
    mass: list[np.ndarray] = field(default_factory=list)

    def add(self, maps: AttentionMaps, n_queries: int) -> None:
        keys, numbers = maps.keys, self.numbers
        others = np.flatnonzero(keys.markers | np.array(keys.unknown))
        there = np.ones(len(keys.distinct_pieces), dtype=bool)  # pieces that are words
        if len(others):
            there = np.bincount(np.delete(keys.places, others), minlength=len(there)) > 0
        of_pieces = [
            numbers.setdefault(word, len(numbers)) if is_word else -1
            for word, is_word in zip(keys.words, there.tolist(), strict=True)
        ]
        of_tokens = np.array(of_pieces)[keys.places]
        for token in others.tolist():
            known = UNKNOWN if keys.unknown[token] else keys.pieces[token]
            of_tokens[token] = numbers.setdefault(known, len(numbers))
        self.tokens.append(of_tokens)
        received = average_received(maps).reshape(-1, len(maps.keys))
        self.mass.append(to_mass(received.T * n_queries))

    def table(self) -> WordTable:
        if not self.numbers:
            return WordTable()
        words = sorted(self.numbers)
        rank = np.empty(len(words), np.int64)
        rank[[self.numbers[word] for word in words]] = np.arange(len(words))
        of_tokens = rank[np.concatenate(self.tokens)]
        order = np.argsort(of_tokens, kind="stable")
        starts = np.searchsorted(of_tokens[order], np.arange(len(words)))
        mass = np.add.reduceat(np.concatenate(self.mass)[order], starts, axis=0)
        return WordTable(tuple(words), np.bincount(of_tokens).astype(np.int64), mass)


def survey_block(
    model: AttentionModel,
    info: SurveyInfo,
    block: int,
    first: int,
    documents: Sequence[Document],
    means: np.ndarray | None = None,
) -> Survey:
    """Measure the texts of one block, whose first is number `first` of the corpus. Texts without tokens are named.

    `means` are what heads are replaced by where `info` has that: see `Ablatable`.
    """
    rows, texts, hashes, skipped = [], [], [], {}
    distances = np.zeros((info.n_places, 2 * info.reach + 1), np.int64)
    words, n_queries = _Words(), 0
    attention = quickest_attention(model)
    for text, document in enumerate(documents, first):
        try:
            maps = attention(document.text, document.name)
        except InvalidText:
            skipped[text] = document.name
            continue
        n_tokens = int(maps.real_queries.sum())
        following = (*documents[text - first + 1 :], *documents[: text - first])
        others = ablation_numbers(model, info, document, following, means)
        rows.append(text_numbers(maps, info, {TOKENS: np.array([float(n_tokens)]), **others}))
        texts.append(text)
        hashes.append(text_hash(text, document.text))
        distances += to_mass(sum_by_distance(maps).reshape(info.n_places, -1))
        words.add(maps, n_tokens)
        n_queries += n_tokens
        del maps  # so that the next ones lie in its memory, which the processor's cache holds
    values = np.array(rows, dtype=np.float64).reshape(len(rows), info.bounds.shape[1])
    summary = Summary.from_texts(values, info.bounds, np.array(texts, np.int64), np.array(hashes, np.uint64))
    named = summary.texts
    names = {text: document.name for text, document in enumerate(documents, first) if text in named}
    return Survey(info, ((block, block + 1),), summary, names, distances, n_queries, words.table(), skipped)


def text_numbers(maps: AttentionMaps, info: SurveyInfo, others: Mapping[str, np.ndarray]) -> np.ndarray:
    """One text's row: see `SurveyInfo.columns`. `others` are what is no measure of attention. NaN where it has none."""
    names = [measure.name for measure in info.measures if measure.name not in others]
    found = {**others, **{name: each.values.ravel() for name, each in measure_possible(maps, names).items()}}
    row = np.full(info.bounds.shape[1], np.nan)
    for measure in info.measures:
        row[info.columns[measure.name]] = found.get(measure.name, np.nan)
    return row


def ablation_numbers(
    model: AttentionModel,
    info: SurveyInfo,
    document: Document,
    others: Sequence[Document],
    means: np.ndarray | None,
) -> dict[str, np.ndarray]:
    """What the right answer's probability loses without each head; without a label that the model knows, that of the
    model's own answer. Queries are of the first of the others that has tokens, and NaN where none has.
    """
    kinds = [name.removeprefix(ABLATION) for name in info.columns if name.startswith(ABLATION)]
    if not kinds:
        return {}
    assert isinstance(model, Ablatable)
    for other in (*others, document):
        try:
            whole, without = model.ablate(document.text, other.text, kinds, means)
        except InvalidText:  # it has no tokens
            continue
        break
    label = document.label if document.label in range(len(whole)) else int(whole.argmax())
    lost = {ABLATION + kind: whole[label] - answers[:, label] for kind, answers in without.items()}
    if other is document and QUERIES in lost:
        lost[QUERIES] = np.full_like(lost[QUERIES], np.nan)
    return lost


def text_hash(number: int, text: str) -> int:
    """What decides whether a text is in the sample: even for equal texts another one each."""
    digest = hashlib.blake2b(f"{number} ".encode() + text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def to_mass(shares: np.ndarray) -> np.ndarray:
    """Whole multiples of 2⁻³⁰."""
    return np.rint(shares * 2.0**MASS_BITS).astype(np.int64)
