"""What has to be read with a survey: what its labels and intervals say, and what its numbers are of."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from attnviz.commands.survey.files import Survey
from attnviz.commands.survey.heads import count_unknown
from attnviz.commands.survey.survey import TOKENS, ModelFacts
from attnviz.display import escape_for_display, format_count
from attnviz.measures import SOME_TEXTS_MEASURES
from attnviz.numbers.intervals import MIN_TEXTS
from attnviz.records import is_mostly_unknown
from attnviz.records.head_names import MIN_SHARE


def write_notes(survey: Survey, max_lines: int) -> Iterator[str]:
    """Yield what has to be read with the numbers; a chart has at most `max_lines` lines."""
    info, n, facts = survey.info, len(survey.texts), survey.facts or ModelFacts()
    if info.trained is False:
        yield "The model is untrained: its heads have learned nothing."
    if info.n_heads > max_lines:
        yield f"Lines are of the {max_lines} heads of a layer with the highest peaks; --json has all {info.n_heads}."
    if n_unknown := count_unknown(survey):
        half = ": heads get no labels" if is_mostly_unknown(n_unknown, survey.n_queries) else ""
        yield f"{n_unknown:,} of {survey.n_queries:,} tokens are not in the vocabulary (read as [UNK]){half}."
    yield from _describe_labels(facts)
    for name in sorted(SOME_TEXTS_MEASURES):
        n_having = max((row["n"] for row in survey.tables.numbers.select(measure=name).rows()), default=0)
        over = f"means over the {n_having:,} of {format_count(n, 'texts')} that have such tokens"
        yield f"{name.replace('_', ' ')}: {over if n_having else 'no text has such tokens'}."
    if n >= MIN_TEXTS:
        yield "Intervals are of texts (Student's t): what other texts of this kind would give."
    if n_copies := info.settings.get("copies"):
        verb = "is a copy of another" if n_copies == 1 else "are copies of others"
        copies = f"{n_copies:,} of {format_count(n, 'texts')} {verb}"
        yield f"{copies}: tests and intervals take each text once."
    if info.dataset:
        option, is_cut = shlex.quote(info.option), survey.texts.array(TOKENS).max() >= info.max_tokens
        read = f" --max-tokens {info.max_tokens} --keep {info.keep}" if is_cut else ""
        yield f"Text number N: attnviz heatmap --model {option} {info.dataset} --index N{read}."
        if info.trained is not False:  # heads that have learned nothing are alike by chance
            yield f"Which heads are alike, pair by pair: attnviz compare {option} {info.dataset}."
    if "ablate" in info.can and not info.has_costs:
        yield "What answers lose without each head: the same with --ablate zero --out costs."
    if survey.skipped:
        n_skipped = len(survey.skipped)
        verb = "is" if n_skipped == 1 else "are"
        named = escape_for_display(survey.skipped[0], 80)
        yield f"{format_count(n_skipped, 'texts')} without tokens {verb} left out, such as {named}."


def _describe_labels(facts: ModelFacts) -> Iterator[str]:
    if not facts.chance:
        yield "Heads are not labelled: that takes --null random, which says what chance gives."
    else:
        texts = format_count(facts.n_texts, "texts")
        yield (
            f"A label is a head's largest share, from {MIN_SHARE:.0%} on; on {texts} as far again beyond all heads of "
            f"{facts.n_random} untrained models as these are beyond an equal share."
            if not facts.named
            else "Heads are labelled by the model's card, with their shares over these texts."
        )
        if facts.shuffled:
            yield (
                "A share that stays where words are shuffled is one of places, not of language: that was measured on "
                f"the same {texts}."
            )


def list_facts(survey: Survey) -> Iterator[tuple[str, str]]:
    """Yield what the numbers are of."""
    info = survey.info
    yield from (("model", info.model), ("status", info.status), ("revision", info.revision), ("texts", info.corpus))
    yield "number of texts", f"{len(survey.texts)}"
    yield from ((name, str(value)) for name, value in info.settings.items())
    yield from ((f"version of {name}", version) for name, version in info.versions.items())
