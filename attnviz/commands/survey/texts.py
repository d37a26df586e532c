"""One block of a survey: some texts through a model, measured and summarised. What processes are given to do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from attnviz.commands.survey.moments import MomentCollector
from attnviz.commands.survey.survey import (
    ABLATION,
    EQUAL,
    QUERIES,
    TOKENS,
    Survey,
    SurveyInfo,
    TextExcerpt,
)
from attnviz.commands.survey.words import WordCollector, to_mass
from attnviz.errors import InvalidText
from attnviz.measures import MEASURES, measure_possible
from attnviz.measures.class_differences import sum_classes, widen_bounds
from attnviz.measures.concentration import make_uniform
from attnviz.measures.rows import count_attendable, sum_by_distance
from attnviz.measures.summaries import Summary
from attnviz.models.protocols import Ablatable, AttentionModel, quickest_attention
from attnviz.numbers.intervals import MIN_TEXTS
from attnviz.records import AttentionMaps
from attnviz.text import Document
from attnviz.views.patterns import LABELS

KNOWN = frozenset(measure.name for measure in MEASURES)
EXCERPT = 40  # characters
LEAST_SPREAD = 1e-9  # of logs of lengths: less is rounding, of texts of one length
BLOCK = 32  # texts that are measured at a time; where blocks begin, no option changes


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
    rows, texts, hashes, labels, skipped = [], [], [], list[int | None](), {}
    distances = np.zeros((info.n_places, 2 * info.reach + 1), np.int64)
    equal_distances, lengths = np.zeros(2 * info.reach + 1, np.int64), dict[int, int]()
    words, n_queries, moments = WordCollector(), 0, MomentCollector(info.n_places)
    attention = quickest_attention(model)
    for text, document in enumerate(documents, first):
        try:
            maps = attention(document.text, document.name)
        except InvalidText:
            skipped[text] = document.name
            continue
        n_tokens = int(maps.real_queries.sum())
        following = (*documents[text - first + 1 :], *documents[: text - first])
        others = [other for other in following if other.text != document.text]  # queries of a copy would change nothing
        # of a text that is mostly unknown no answer is judged
        lost = {} if maps.queries.mostly_unknown else ablation_numbers(model, info, document, others, means)
        uniform = make_uniform(maps)
        rows.append(text_numbers(maps, uniform, info, lost))
        texts.append(text)
        hashes.append(text_hash(text, document.text))
        labels.append(document.label)
        distances += to_mass(sum_by_distance(maps).reshape(info.n_places, -1))
        equal_distances += to_mass(sum_by_distance(uniform).mean(axis=(0, 1)))
        words.add(maps, uniform, n_tokens)
        moments.add(text, maps, hashes[-1])
        lengths[text] = n_tokens
        n_queries += n_tokens
        del maps, uniform  # so that the next ones lie in its memory, which the processor's cache holds
    values = np.array(rows, dtype=np.float64).reshape(len(rows), info.bounds.shape[1])
    logs = np.log(np.array([*lengths.values()], dtype=np.float64))
    adjusted = values - logs[:, None] * slopes
    bounds = widen_bounds(info.bounds, slopes, info.max_tokens)
    classes = sum_classes(adjusted, bounds, labels, [*lengths.values()])
    summary = Summary.from_texts(
        values,
        info.bounds,
        np.array(texts, np.int64),
        np.array(hashes, np.uint64),
        ranks=adjusted,
    )
    stretches = moments.read_tokens()
    excerpts = {
        text: _excerpt(text, documents[text - first], lengths[text], info, stretches.get(text, ((), ())))
        for text in sorted(summary.texts | stretches.keys())
    }
    return Survey(
        info=info,
        blocks=((block, block + 1),),
        summary=summary,
        slopes=slopes,
        moments=moments.found,
        excerpts=excerpts,
        distances=distances,
        equal_distances=equal_distances,
        n_queries=n_queries,
        words=words.table() if info.has_words else words.table().without_words(),
        classes=classes,
        skipped=skipped,
    )


def _excerpt(
    text: int,
    document: Document,
    n_tokens: int,
    info: SurveyInfo,
    stretch: tuple[tuple[int, ...], tuple[str, ...]],
) -> TextExcerpt:
    """Describe a text; without words, it is only named."""
    if not info.has_words:
        return TextExcerpt(text, document.name, n_tokens, "")
    words = " ".join(document.text[: 4 * EXCERPT].split())
    shown = words if len(words) <= EXCERPT else f"{words[: EXCERPT - 1]}…"
    return TextExcerpt(text, document.name, n_tokens, shown, *stretch)


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
    enough = (there.sum(axis=0) >= MIN_TEXTS) & (spread > LEAST_SPREAD)
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
