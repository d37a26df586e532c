"""One block of a survey: some texts through a model, measured and summarised. What processes are given to do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from attnviz.commands.survey.exact import Summary
from attnviz.commands.survey.survey import (
    ABLATION,
    EQUAL,
    MASS_BITS,
    QUERIES,
    TOKENS,
    UNKNOWN,
    Survey,
    SurveyInfo,
    TextExcerpt,
    WordTable,
)
from attnviz.errors import InvalidText
from attnviz.measures import MEASURES, measure_possible
from attnviz.measures.concentration import average_received, make_uniform
from attnviz.measures.intervals import MIN_TEXTS
from attnviz.measures.rows import count_attendable, sum_by_distance
from attnviz.models.protocols import Ablatable, AttentionModel, quickest_attention
from attnviz.records import AttentionMaps
from attnviz.text import Document
from attnviz.views.patterns import LABELS

KNOWN = frozenset(measure.name for measure in MEASURES)
EXCERPT = 40  # characters
BLOCK = 32  # texts that are measured at a time; where blocks begin, no option changes


@dataclass(eq=False)
class _Words:
    """Tokens of several texts: which word each is, and what it receives of each head."""

    numbers: dict[str, int] = field(default_factory=dict)
    tokens: list[np.ndarray] = field(default_factory=list)  # of each text
    equal: list[np.ndarray] = field(default_factory=list)
    mass: list[np.ndarray] = field(default_factory=list)

    def add(self, maps: AttentionMaps, uniform: AttentionMaps, n_queries: int) -> None:
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
        self.equal.append(to_mass(average_received(uniform).mean(axis=(0, 1)) * n_queries))

    def table(self) -> WordTable:
        if not self.numbers:
            return WordTable()
        words = sorted(self.numbers)
        rank = np.empty(len(words), np.int64)
        rank[[self.numbers[word] for word in words]] = np.arange(len(words))
        of_tokens = rank[np.concatenate(self.tokens)]
        order = np.argsort(of_tokens, kind="stable")
        starts = np.searchsorted(of_tokens[order], np.arange(len(words)))
        equal, mass = (np.add.reduceat(np.concatenate(of)[order], starts, axis=0) for of in (self.equal, self.mass))
        return WordTable(tuple(words), np.bincount(of_tokens).astype(np.int64), equal, mass)


def survey_block(
    model: AttentionModel,
    info: SurveyInfo,
    block: int,
    documents: Sequence[Document],
    slopes: np.ndarray,
    means: np.ndarray | None = None,
) -> Survey:
    """Measure the texts of the block of that number. Texts without tokens are named.

    `slopes` say how each number changes with the log of a text's length. Texts are extreme by what is left of a number
    without that: the shortest would be the extremes of nearly every measure. `means` are what heads are replaced by
    where `info` has that: see `Ablatable`.
    """
    first = block * BLOCK
    rows, texts, hashes, skipped = [], [], [], {}
    distances = np.zeros((info.n_places, 2 * info.reach + 1), np.int64)
    equal_distances, lengths = np.zeros(2 * info.reach + 1, np.int64), dict[int, int]()
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
        uniform = make_uniform(maps)
        rows.append(text_numbers(maps, uniform, info, others))
        texts.append(text)
        hashes.append(text_hash(text, document.text))
        distances += to_mass(sum_by_distance(maps).reshape(info.n_places, -1))
        equal_distances += to_mass(sum_by_distance(uniform).mean(axis=(0, 1)))
        words.add(maps, uniform, n_tokens)
        lengths[text] = n_tokens
        n_queries += n_tokens
        del maps, uniform  # so that the next ones lie in its memory, which the processor's cache holds
    values = np.array(rows, dtype=np.float64).reshape(len(rows), info.bounds.shape[1])
    logs = np.log(np.array([*lengths.values()], dtype=np.float64))
    summary = Summary.from_texts(
        values,
        info.bounds,
        np.array(texts, np.int64),
        np.array(hashes, np.uint64),
        ranks=values - logs[:, None] * slopes,
    )
    excerpts = {text: _excerpt(text, documents[text - first], lengths[text]) for text in sorted(summary.texts)}
    counts = distances, equal_distances, n_queries
    return Survey(info, ((block, block + 1),), summary, slopes, excerpts, *counts, words.table(), skipped)


def _excerpt(text: int, document: Document, n_tokens: int) -> TextExcerpt:
    words = " ".join(document.text[: 4 * EXCERPT].split())
    shown = words if len(words) <= EXCERPT else f"{words[: EXCERPT - 1]}…"
    return TextExcerpt(text, document.name, n_tokens, shown)


def fit_slopes(model: AttentionModel, info: SurveyInfo, texts: Sequence[str]) -> np.ndarray:
    """Return how each column changes with the log of a text's length, by least squares over a few texts.

    0 for what is no measure of heads or layers, and where the texts are too few or of one length.
    """
    found, logs = list[np.ndarray](), list[float]()
    for text in texts:
        with suppress(InvalidText):  # it is named elsewhere
            maps = quickest_attention(model)(text, "text")
            found.append(text_numbers(maps, make_uniform(maps), info, {}))
            logs.append(np.log(maps.real_queries.sum()))
    slopes = np.zeros(info.bounds.shape[1])
    if len(found) < MIN_TEXTS:
        return slopes
    values, lengths = np.stack(found), np.array(logs)[:, None]
    there = ~np.isnan(values)
    n = np.maximum(there.sum(axis=0), 1)
    off_mean = there * (lengths - (there * lengths).sum(axis=0) / n)
    spread = (off_mean * off_mean).sum(axis=0)
    enough = (there.sum(axis=0) >= MIN_TEXTS) & (spread > 0)
    for measure in info.measures:
        if measure.level == "text":
            enough[info.columns[measure.name]] = False
    slopes[enough] = (off_mean * np.where(there, values, 0.0)).sum(axis=0)[enough] / spread[enough]
    return slopes


def text_numbers(
    maps: AttentionMaps, uniform: AttentionMaps, info: SurveyInfo, others: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return one text's row: see `SurveyInfo.columns`. `others` are what is no measure of attention. NaN for none."""
    names = [measure.name for measure in info.measures if measure.name in KNOWN]
    found = {**others, TOKENS: np.array([float(maps.real_queries.sum())])}
    found |= {name: each.values.ravel() for name, each in measure_possible(maps, names).items()}
    found |= {f"{EQUAL}{name}": np.array([share]) for name, share in equal_shares(maps, uniform, info).items()}
    row = np.full(info.bounds.shape[1], np.nan)
    for measure in info.measures:
        row[info.columns[measure.name]] = found.get(measure.name, np.nan)
    return row


def equal_shares(maps: AttentionMaps, uniform: AttentionMaps, info: SurveyInfo) -> dict[str, float]:
    """Return by measure what attention gives in this text that favours no key, nor the sink where there is one."""
    names = [name for name in LABELS if f"{EQUAL}{name}" in info.columns]
    found = {name: float(each.values.mean()) for name, each in measure_possible(uniform, names).items()}
    if maps.sink is not None and "to_sink" in found:
        found["to_sink"] = float(np.mean([1 / (1 + count_attendable(maps, layer)) for layer in range(maps.n_layers)]))
    return found


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
