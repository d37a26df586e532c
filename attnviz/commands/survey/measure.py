"""One block of a survey: some texts through a model, a row of numbers for each. What processes are given to do.

Of each head: which words, patterns and offsets from the query it attends to. Shares of attention are summed as whole
numbers, so that parts merge to the same bits in any order.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isnan
from typing import NamedTuple

import numpy as np

from attnviz.commands.survey.moments import MomentCollector
from attnviz.commands.survey.survey import ABLATION, OFFSET, PATTERN, QUERIES, TOKENS, WORD, SurveyInfo
from attnviz.errors import InvalidText, NotMeasurable
from attnviz.measures import MEASURES, PATTERNS, measure_maps
from attnviz.measures.concentration import average_received, make_uniform
from attnviz.measures.rows import MAX_OFFSET, count_attendable, sum_by_distance
from attnviz.models.protocols import MEASURED, Ablatable, AttentionModel
from attnviz.records import AttentionMaps
from attnviz.table.numbers import Numbers, add_up
from attnviz.table.parquet import INTEGER, NUMBER, TEXT
from attnviz.text import Document

UNKNOWN = "[UNK]"  # all words that the vocabulary does not hold together: there is no end of them
MASS_BITS = 30  # shares of attention are summed in multiples of 2⁻³⁰: nine digits, and 8 · 10⁹ of them fit
WORD_KEYS, COUNTS = {"kind": TEXT, "name": TEXT}, {"n": INTEGER, "equal": INTEGER}  # columns, beside one for each head
OFFSETS = [str(offset) for offset in range(-MAX_OFFSET, MAX_OFFSET + 1)]
NOTHING = Numbers.from_rows([], [*WORD_KEYS], WORD_KEYS | COUNTS)


def list_attended(
    maps: AttentionMaps, uniform: AttentionMaps, heads: Sequence[tuple[int, int]], shares: Mapping[str, np.ndarray]
) -> Numbers:
    """Return a row for each offset, each pattern and each token with its word: what it receives of each head.

    Beside it stands what it receives in `uniform`, of attention that favours no key, and how many queries, texts or
    tokens that is of. A word may stand in many rows. `shares` are those of patterns; a text may lack some.
    """
    keys, n_queries = maps.keys, int(maps.real_queries.sum())
    equals = {name: float(values.mean()) for name, values in measure_heads(uniform, [*PATTERNS]).items()}
    if maps.sink is not None:
        equals["to_sink"] = float(np.mean([1 / (1 + count_attendable(maps, layer)) for layer in range(maps.n_layers)]))
    patterns = [name for name in PATTERNS if name in shares]
    names = np.array(keys.words, dtype=object)[keys.places]
    for token in np.flatnonzero(keys.markers | np.array(keys.unknown)).tolist():
        names[token] = UNKNOWN if keys.unknown[token] else keys.pieces[token]
    received = average_received(maps).reshape(len(heads), -1), average_received(uniform).mean(axis=(0, 1))
    by_offset = sum_by_distance(maps).reshape(len(heads), -1), sum_by_distance(uniform).mean(axis=(0, 1))
    by_pattern = np.array([shares[name] for name in patterns]).T, np.array([equals[name] for name in patterns])
    mass, equal = (
        np.rint(np.concatenate([near, of, word * n_queries], axis=-1) * 2.0**MASS_BITS).astype(np.int64)
        for near, of, word in zip(by_offset, by_pattern, received, strict=True)
    )
    lengths = len(OFFSETS), len(patterns), len(names)
    columns: dict[str, object] = {"kind": np.repeat([OFFSET, PATTERN, WORD], lengths).tolist()}
    columns |= {"name": [*OFFSETS, *patterns, *names], "n": np.repeat([n_queries, 1, 1], lengths), "equal": equal}
    columns |= {f"{layer}.{head}": of for (layer, head), of in zip(heads, mass, strict=True)}
    return Numbers.from_columns(columns, [*WORD_KEYS])


def measure_heads(maps: AttentionMaps, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Compute measures that a text can have by name, flat; what goes to a learned sink only where there is one."""
    found = dict[str, np.ndarray]()
    for name in (name for name in names if name != "to_sink" or maps.sink is not None):
        with suppress(NotMeasurable):
            (measured,) = measure_maps(maps, [name])
            found[name] = measured.values.ravel()
    return found


KNOWN = frozenset(measure.name for measure in MEASURES)
EXCERPT = 40  # characters
TEXTS_OF_FILE = 2048
BLOCK = 32  # texts that are measured at a time; where blocks begin, no option changes
PRECISION = 2.0**-26  # 1.5e-8, of which numbers are multiples: what is behind says nothing, and would not pack
# What a row begins with. Of copies of a text, `hash` is the same; only a text with tokens has a number of them.
TEXT_COLUMNS = {"text": INTEGER, "name": TEXT, "label": INTEGER, TOKENS: INTEGER, "hash": INTEGER, "words": TEXT}


class Measured(NamedTuple):
    """What is known of the texts of one block."""

    blocks: frozenset[int]
    read: Numbers  # a row per text
    attended: Numbers
    moments: Numbers

    def read_file(self, number: int) -> Numbers:
        """Return those that belong into the file of that number."""
        return self.read.take(np.flatnonzero(self.read.array("text") // TEXTS_OF_FILE == number))


def measure_block(
    model: AttentionModel, info: SurveyInfo, block: int, documents: Sequence[Document], means: np.ndarray | None = None
) -> Measured:
    """Measure the texts of the block of that number. Texts without tokens have no number of tokens.

    `means` are what heads are replaced by where `info` has that: see `Ablatable`.
    """
    from attnviz.models.device import return_gaps  # a process that reads a survey needs no torch

    first, rows = block * BLOCK, list[dict[str, object]]()
    attended, moments = [NOTHING], MomentCollector(info.heads, info.has_words)
    names = list(dict.fromkeys([*PATTERNS, *(each.name for each in info.measures if each.name in KNOWN)]))
    for text, document in enumerate(documents, first):
        words = " ".join(document.text[: 4 * EXCERPT].split()) if info.has_words else ""  # else a text is only named
        shown = words if len(words) <= EXCERPT else f"{words[: EXCERPT - 1]}…"
        rows.append({"text": text, "name": document.name, "label": document.label, "words": shown})
        rows[-1]["hash"] = text_hash(0, document.text) >> 12  # exact in a float64
        try:
            maps = model.attention(document.text, document.name, MEASURED)
        except InvalidText:
            continue
        following = (*documents[text - first + 1 :], *documents[: text - first])
        others = [other for other in following if other.text != document.text]  # queries of a copy would change nothing
        # of a text that is mostly unknown no answer is judged
        lost = {} if maps.queries.mostly_unknown else ablation_numbers(model, info, document, others, means)
        uniform = make_uniform(maps)
        shares = measure_heads(maps, names)
        rows[-1][TOKENS], found = int(maps.real_queries.sum()), {**lost, **shares}
        for measure in (each for each in info.measures if each.name in found):
            values = np.rint(found[measure.name].astype(np.float64) / PRECISION) * PRECISION + 0.0
            known = zip(info.name_columns(measure), values.tolist(), strict=True)
            rows[-1] |= {name: value for name, value in known if not isnan(value)}
        attended.append(list_attended(maps, uniform, info.heads, shares))
        moments.add(text, maps, text_hash(text, document.text))
        return_gaps()
        del maps, uniform  # so that the next ones lie in its memory, which the processor's cache holds
    texts = Numbers.from_rows(rows, ["text"], TEXT_COLUMNS | dict.fromkeys(info.list_columns(), NUMBER))
    sums = add_up(attended)
    if not info.has_words:
        sums = sums.take(np.flatnonzero((sums.array("kind") != WORD) | (sums.array("name") == UNKNOWN)))
    return Measured(frozenset({block}), texts, sums, moments.table())


def ablation_numbers(
    model: AttentionModel, info: SurveyInfo, document: Document, others: Sequence[Document], means: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Measure what the right answer's probability loses without each head.

    Without a label that the model knows, it is that of the model's own answer. Queries are of the first of the others
    that has tokens, and NaN where none has.
    """
    kinds = [each.name.removeprefix(ABLATION) for each in info.measures if each.name.startswith(ABLATION)]
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
    """Hash a text, to decide whether it is in the sample: equal texts have different hashes, by their numbers."""
    digest = hashlib.blake2b(f"{number} ".encode() + text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
