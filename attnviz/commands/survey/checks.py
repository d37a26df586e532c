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
    if (
        not {measure.level for measure in info.measures} <= {"head", "layer", "text"}
        or not 0 < len(info.layer_numbers) * info.n_heads <= 10**6
    ):
        raise ValueError("its measures are of no heads")
    asked = {measure.name for measure in info.measures}
    if len(asked) < len(info.measures) or TOKENS not in asked:
        raise ValueError("its measures are not there or twice")
    words = shlex.split(info.dataset)  # quoted, so that what is printed for a shell runs nothing else when it is copied
    if shlex.join(words) != info.dataset or not set(words[::2]) <= set(DATASET_OPTIONS):
        raise ValueError("its options are not those of a data set")
    if facts is None:
        return
    patterns = [measure for measure in info.measures if measure.name in PATTERNS]
    by_head = (facts.plain, facts.shuffled, facts.probes, {"named": facts.named} if facts.named else {})
    names = {*PATTERNS} | {name_offset(offset) for offset in range(-info.reach, info.reach + 1)}
    known = set(facts.chance or facts.plain) == set(facts.plain) and {*facts.plain, *facts.shuffled} <= names
    if any(measure.level != "head" for measure in patterns) or not known:
        raise ValueError("its facts are of other patterns")
    if set(facts.probes) != set(facts.probe_chance):
        raise ValueError("its probes are held against nothing")
    costed = {head for cost in facts.costs for head in cost.heads}
    if not costed <= {*info.heads} or any(not cost.heads for cost in facts.costs):
        raise ValueError("its costs are of other heads")
    if any({*cost.lost} != {*choose_places(cost.kind)} or {*cost.lost} != {*cost.chance} for cost in facts.costs):
        raise ValueError("its costs are of other places")
    alone = {cost.heads for cost in facts.costs if cost.kind.endswith(ON_REPEATS)}
    if any((head,) not in alone for feed in facts.feeds for head in (feed.writer, feed.reader)):
        raise ValueError("its heads that feed others have no name")
    if any(len(of_heads) != len(info.heads) for found in by_head for of_heads in found.values()):
        raise ValueError("its facts are of other heads")


def check_tables(info: SurveyInfo, texts: Numbers, attended: Numbers, moments: Numbers) -> None:
    """Raise ValueError where tables do not belong together, or hold what cannot be."""
    numbers, n_tokens = texts.array("text"), texts.array(TOKENS)
    if not ((numbers >= 0) & (numbers < info.n_texts)).all() or (n_tokens < 1).any() or (n_tokens > MAX_TOKENS).any():
        raise ValueError("a text has no number, or no length")
    if any(name is None for name in texts.array("name")) or any(words is None for words in texts.array("words")):
        raise ValueError("a text has no name")
    heads = [f"{layer}.{head}" for layer, head in info.heads]
    offsets = {*map(str, range(-info.reach, info.reach + 1))}
    told = [*attended.values], {*attended.select(kind=OFFSET).array("name")}
    if len(attended) and told != ([*COUNTS, *heads], offsets):
        raise ValueError("what is attended to is not of its heads, or not of the distances that are told")
    n_queries = attended.select(kind=[OFFSET, PATTERN]).array("n")
    if (attended.integers(attended.values) < 0).any() or (n_queries < 1).any():
        raise ValueError("attention is less than nothing, or of no query")
    _check_moments(info, moments, {*numbers[n_tokens > 0].tolist()})


def _check_moments(info: SurveyInfo, moments: Numbers, texts: set[float]) -> None:
    heads = {*info.heads}
    for row in moments.rows():
        if None in row.values() or row["text"] not in texts or (row["layer"], row["head"]) not in heads:
            raise ValueError("a moment is of a text or head that is not there")
        keys, weights = row["keys"], np.array(row["weights"], np.float64)
        tokens = len(keys) if info.has_words else 0
        if not len(keys) == len(weights) or len(row["tokens"]) != tokens or row["query"] not in keys:
            raise ValueError("the tokens of a moment are not there")
        if sorted({*keys}) != keys or keys[0] < 0 or None in row["tokens"] or row["n_keys"] < 1:
            raise ValueError("a moment is of no keys")
        if (
            not ((weights >= 0) & (weights <= 1 + ROW_SUM_TOLERANCE)).all()
            or not 0 <= row["to_first"] <= 1 + ROW_SUM_TOLERANCE
        ):
            raise ValueError("the weights of a moment are not shares from 0 to 1")
