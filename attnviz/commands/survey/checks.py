"""What must hold of a survey that somebody else may have written, beyond the types of its columns."""

import shlex

import numpy as np

from attnviz.commands.survey.measure import COUNTS
from attnviz.commands.survey.survey import OFFSET, ON_REPEATS, PATTERN, TOKENS, ModelFacts, SurveyInfo, choose_places
from attnviz.measures import PATTERNS
from attnviz.records.head_names import name_offset
from attnviz.records.walk import ROW_SUM_TOLERANCE
from attnviz.table.numbers import Numbers

DATASET_OPTIONS = ("--dataset", "--split", "--text-column")
MAX_TOKENS = 2**31  # of a text


def check_info(info: SurveyInfo, facts: ModelFacts | None) -> None:
    """Raise ValueError where what was asked cannot be, or facts are not of its heads and patterns."""
    levels, asked = {measure.level for measure in info.measures}, [measure.name for measure in info.measures]
    are_heads = 0 < len(info.layer_numbers) * info.n_heads <= 10**6
    words = shlex.split(info.dataset)  # quoted, so that what is printed for a shell runs nothing else when it is copied
    is_safe = shlex.join(words) == info.dataset and {*words[::2]} <= {*DATASET_OPTIONS}
    _require("its measures are of no heads", are_heads and levels <= {"head", "layer", "text"})
    _require("its measures are not there or twice", len({*asked}) == len(asked) and TOKENS in asked)
    _require("its options are not those of a data set", is_safe)
    if facts is None:
        return
    are_patterns = all(measure.level == "head" for measure in info.measures if measure.name in PATTERNS)
    names = {*PATTERNS} | {name_offset(offset) for offset in range(-info.reach, info.reach + 1)}
    known = {*(facts.chance or facts.plain)} == {*facts.plain} and {*facts.plain, *facts.shuffled} <= names
    _require("its facts are of other patterns", are_patterns and known)
    _require("its probes are held against nothing", {*facts.probes} == {*facts.probe_chance})
    heads = {*info.heads}
    for cost in facts.costs:
        _require("its costs are of other heads", bool(cost.heads) and heads.issuperset(cost.heads))
        _require("its costs are of other places", {*cost.lost} == {*cost.chance} == {*choose_places(cost.kind)})
    alone = {cost.heads for cost in facts.costs if cost.kind.endswith(ON_REPEATS)}
    fed = {(head,) for feed in facts.feeds for head in (feed.writer, feed.reader)}
    _require("its heads that feed others have no name", fed <= alone)
    named = [facts.named] if facts.named else []
    by_head = [*facts.plain.values(), *facts.shuffled.values(), *facts.probes.values(), *named]
    _require("its facts are of other heads", {*map(len, by_head)} <= {len(heads)})


def _require(said: str, holds: bool) -> None:
    """Raise ValueError, which says what is wrong, where something does not hold."""
    if not holds:
        raise ValueError(said)


def check_tables(info: SurveyInfo, texts: Numbers, attended: Numbers, moments: Numbers) -> None:
    """Raise ValueError where tables do not belong together, or hold what cannot be."""
    numbers, n_tokens = texts.array("text"), texts.array(TOKENS)
    are_sizes = not ((n_tokens < 1) | (n_tokens > MAX_TOKENS)).any()  # a text without tokens has no number of them
    _require(
        "a text has no number, or no length", are_sizes and bool(((numbers >= 0) & (numbers < info.n_texts)).all())
    )
    _require("a text has no name", not any(texts.table[name].null_count for name in ("name", "words")))
    heads = [f"{layer}.{head}" for layer, head in info.heads]
    offsets = {*map(str, range(-info.reach, info.reach + 1))}
    told = [*attended.values], {*attended.select(kind=OFFSET).array("name")}
    said = "what is attended to is not of its heads, or not of the distances that are told"
    _require(said, not len(attended) or told == ([*COUNTS, *heads], offsets))
    n_queries = attended.select(kind=[OFFSET, PATTERN]).array("n")
    are_shares = not (attended.integers(attended.values) < 0).any() and not (n_queries < 1).any()
    _require("attention is less than nothing, or of no query", are_shares)
    _check_moments(info, moments, {*numbers[n_tokens > 0].tolist()})


def _check_moments(info: SurveyInfo, moments: Numbers, texts: set[float]) -> None:
    heads = {*info.heads}
    for row in moments.rows():
        is_known = None not in row.values() and row["text"] in texts and (row["layer"], row["head"]) in heads
        _require("a moment is of a text or head that is not there", is_known)
        keys, weights = row["keys"], np.array([*row["weights"], row["to_first"]], np.float64)
        tokens = len(keys) if info.has_words else 0
        are_tokens = len(keys) == len(row["weights"]) and len(row["tokens"]) == tokens and row["query"] in keys
        _require("the tokens of a moment are not there", are_tokens)
        are_keys = sorted({*keys}) == keys and keys[0] >= 0 and None not in row["tokens"] and row["n_keys"] >= 1
        _require("a moment is of no keys", are_keys)
        are_shares = bool(((weights >= 0) & (weights <= 1 + ROW_SUM_TOLERANCE)).all())
        _require("the weights of a moment are not shares from 0 to 1", are_shares)
