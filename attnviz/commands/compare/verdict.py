"""What a comparison says, in plain words, and never more than its numbers bear. Knows `comparison`."""

from collections.abc import Iterator

from attnviz.commands.compare.comparison import Comparison
from attnviz.display import format_count, list_first
from attnviz.report import Note
from attnviz.table.intervals import MIN_TEXTS, SHARE, correct_p_values
from attnviz.views.answers import describe_answer, describe_given_labels
from attnviz.views.likeness import describe_likeness

HEADLINE = ("effective_keys", "peak", "distance", "vendi_score", "divergence_from_mean")  # listed where none is named
MAX_READINGS = 4
NO_EVIDENCE = "no evidence that more heads help this task"


def verdict(comparison: Comparison) -> tuple[Note, ...]:
    """Say whether models differ by more than chance, how much their heads do, and whether it matters to the task.

    The first screen does without what is in its table.
    """
    others = comparison.models[1:]
    notes = [Note(sentence, leads=True) for place in range(len(others)) for sentence in _differ(comparison, place)]
    details = [
        f"The {model.n_heads} heads {'of' if model.n_layers == 1 else 'of a layer of'} {model.label} are as different "
        f"as {comparison.mean(model.name, 'vendi_score'):.1f} heads that share nothing."
        for model in comparison.models
        if model.n_heads > 1 and "vendi_score" in comparison.results
    ]
    if comparison.divergences is not None and len(comparison.heads) > 1:
        details.append(describe_likeness(comparison.divergences, comparison.head_names))
    notes += [Note(sentence, leads=True, is_detail=bool(others)) for sentence in details]
    readings = [
        f"{model.label} reads it as {describe_answer(model.answers, *model.predictions)}"
        for model in comparison.models
        if comparison.n_texts == 1 and model.answers
    ]
    sentences = [f"{list_first(readings, MAX_READINGS)}."] if readings else []
    sentences += [sentence for place in range(len(others)) for sentence in _task(comparison, place)]
    for model in comparison.models:  # how they are held against labels that they were not trained on
        if model.answers:
            said = describe_given_labels(model.answers, [each.gold for each in model.predictions])
            sentences += [f"{model.label}: {each[0].lower()}{each[1:]}" for each in said]
    unread = [(model.label, sum(not each.is_judged for each in model.predictions)) for model in comparison.models]
    counted = [f"{label} {n}" for label, n in unread if n]
    if comparison.n_texts > 1 and "right" not in comparison.results and counted:
        sentences.append(f"Not judged, half unknown, of {comparison.n_texts} texts: {', '.join(counted)}.")
    return (*notes, *(Note(sentence, leads=True) for sentence in sentences))


def _differ(comparison: Comparison, place: int) -> Iterator[str]:
    """Yield in which measures a model differs from the first by more than chance.

    Whoever looks at several measures finds a difference in one of them by chance, so their p-values are corrected for
    as many (Holm 1979).
    """
    first, other = comparison.models[0], comparison.models[place + 1]
    headline = [measure.name for measure in comparison.measures if measure.name in HEADLINE]
    names = headline or [measure.name for measure in comparison.measures]
    rows = {name: row for name in names for row in comparison.results[name] if row["model"] == other.name}
    tested = {name: row["p_value"] for name, row in rows.items() if row["p_value"] is not None}
    if not tested:
        if place == 0:
            n = format_count(comparison.n_texts, "texts")
            yield f"Over {n}: to tell a difference from chance takes {MIN_TEXTS} (--text again, --dataset)."
        return
    corrected = zip(tested, correct_p_values([*tested.values()]), strict=True)
    found = [name for name, value in corrected if value <= 1 - SHARE]
    said = f"in {', '.join(found)}" if found else "in none of these measures"
    yield f"On these texts {other.label} differs from {first.label} by more than chance {said}."


def _task(comparison: Comparison, place: int) -> Iterator[str]:
    first, other = comparison.models[0], comparison.models[place + 1]
    if comparison.n_texts == 1 or "right" not in comparison.results:
        return
    before, row = (comparison.results["right"][-len(comparison.models) + at] for at in (0, place + 1))
    interval = f"(no interval: {row['no_interval']})"
    if row["low"] is not None:
        interval = f"({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
    if row["low"] is not None and row["p_value"] <= 1 - SHARE:
        finding = f"{(other if row['difference'] > 0 else first).label} does better on texts like these"
    else:
        finding = NO_EVIDENCE if other.n_heads > first.n_heads else "no evidence that either does better"
    judged = f"{row['n']}{' judged (others: half unknown)' if row['n'] < comparison.n_texts else ''}"
    task = f"{other.label} is right on {row['mean']:.1%} of {judged} and {first.label} on {before['mean']:.1%}"
    yield f"{task}: {100 * row['difference']:+.1f} points {interval}, {finding}."
