"""A comparison of models as a report: tables, pictures, a verdict. Knows `comparison` and `report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from attnviz.commands.compare.comparison import MAX_HEADS, Comparison, MeanDifference, MeasureInfo, ModelComparison
from attnviz.commands.compare.costs import costs_table
from attnviz.commands.compare.spec import CompareSpec
from attnviz.commands.compare.verdict import verdict
from attnviz.display import escape_for_display, escape_for_spreadsheet, format_count, pluralize
from attnviz.numbers.intervals import MIN_TEXTS
from attnviz.records.answers import AnswerInfo
from attnviz.records.training_metrics import Prediction
from attnviz.report import Block, Cell, Column, Note, Picture, Report, Scale, Table
from attnviz.views.captions import choose_title, drop_hash

MAX_NAME_LENGTH = 40
HEADLINE = ("effective_keys", "peak", "distance", "vendi_score", "divergence_from_mean")  # listed where none is named
ROUGHLY = "~"  # before a difference whose interval includes 0
Row = tuple[str, ...]


def compare_report(
    comparison: Comparison,
    pictures: Sequence[Picture],
    scales: Sequence[Scale],
    theory: Sequence[Block],
    spec: CompareSpec,
) -> Report:
    """What it all says, pictures, the numbers beside each other, what they cost, and theory if wanted."""
    title, shown = spec.figure.title, _choose_shown(comparison, spec.measure)
    blocks: list[Block] = [Note(sentence, leads=True) for sentence in verdict(comparison)]
    blocks += [*pictures, *_measures(comparison, shown, spec.measure), costs_table(comparison), *theory]
    blocks += [Note(sentence) for sentence in _remarks(comparison, shown)]
    names = [escape_for_display(model.name, MAX_NAME_LENGTH) for model in comparison.models]
    texts = escape_for_display(comparison.texts, MAX_NAME_LENGTH * 2)
    return Report(
        title=choose_title(title, f"{' and '.join(filter(None, [', '.join(names[:-1]), names[-1]]))} on {texts}"),
        subtitle=_subtitle(comparison, "" if title is None else texts),
        blocks=tuple(blocks),
        scale=scales[0],
        scales=tuple(scales[1:]),
        facts=(
            ("models", ", ".join(names)),
            ("texts", texts),
            ("texts sha256", comparison.texts_sha256),
            *((f"status of {m.name}", m.status) for m in _safe(comparison)),
        ),
        data=_data(comparison),
    )


def compare_rows(comparison: Comparison) -> Iterator[Row]:
    """For a spreadsheet: one row per measure and model, the difference from the first model beside it."""
    yield ("measure", "unit", "of", "model", "mean", "difference", "low", "high", "no interval because")
    for measure in comparison.measures:
        of = "all heads of a layer" if measure.together else "each head"
        if measure.name in comparison.uniform:
            mean = float(comparison.uniform[measure.name].mean())
            yield (measure.name, measure.unit, of, "uniform attention", repr(mean), "", "", "", "")
        against = (None, *comparison.differences[measure.name])
        for model, difference in zip(comparison.models, against, strict=True):
            mean = float(model.per_text(measure.name).mean())
            yield (
                measure.name,
                measure.unit,
                of,
                escape_for_spreadsheet(model.name),
                repr(mean),
                *_numbers(difference),
            )


def digits(measure: MeasureInfo) -> int:
    """After the point."""
    return 3 if measure.unit in ("nats", "share") else 2


def change(difference: MeanDifference, n_digits: int, factor: float = 1.0) -> str:
    """ "-0.107 (-0.112 to -0.103)"; a sign before it where the interval includes 0."""
    value = f"{difference.value * factor:+.{n_digits}f}"
    if difference.low is None or difference.high is None:
        return value
    interval = f"({difference.low * factor:+.{n_digits}f} to {difference.high * factor:+.{n_digits}f})"
    return f"{ROUGHLY if difference.includes_zero else ''}{value} {interval}"


def _choose_shown(comparison: Comparison, named: Sequence[str]) -> list[MeasureInfo]:
    """Leave out measures that are 0 everywhere, but for those that were named."""
    names = ",".join(named).split(",")

    def is_zero(measure: MeasureInfo) -> bool:
        values = [model.per_text(measure.name) for model in comparison.models]
        return not any(each.any() for each in (*values, comparison.uniform.get(measure.name, np.zeros(1))))

    return [measure for measure in comparison.measures if measure.name in names or not is_zero(measure)]


def _measures(comparison: Comparison, shown: Sequence[MeasureInfo], named: Sequence[str]) -> Iterator[Table]:
    """One table for one model or two; for more, the differences have one of their own."""
    name, *others = (escape_for_display(model.name, MAX_NAME_LENGTH) for model in comparison.models)
    two = len(others) == 1
    interval = " (95 % interval)" if _have_intervals(comparison) else ""
    columns = [Column("mean per head"), Column("uniform"), Column(name), *map(Column, others)]
    rows: list[tuple[Cell, ...]] = []
    changes: list[tuple[Cell, ...]] = []
    for measure in shown:
        label = f"{measure.name} ({measure.unit})"
        n_digits = digits(measure)
        chance = comparison.uniform.get(measure.name)
        means = [f"{model.per_text(measure.name).mean():.{n_digits}f}" for model in comparison.models]
        against = tuple(change(each, n_digits) for each in comparison.differences[measure.name])
        rows.append(
            (label, "-" if chance is None else f"{chance.mean():.{n_digits}f}", *means, *(against if two else ()))
        )
        changes.append((label, *against))
    if two:
        columns.append(Column(f"difference{interval}"))
    first = tuple(n for n, measure in enumerate(shown) if not named and measure.name in HEADLINE)
    more = f"{len(shown) - len(first)} more: --measure all."
    yield Table("measures", "What was measured", "compared", tuple(columns), tuple(rows), first=first, more=more)
    if len(others) > 1:
        heading = (Column("mean per head"), *map(Column, others))
        title = f"Difference from {name}{interval}"
        yield Table("differences", title, "compared", heading, tuple(changes), first=first, more=more)


def _remarks(comparison: Comparison, shown: Sequence[MeasureInfo]) -> Iterator[str]:
    if zero := [measure.name for measure in comparison.measures if measure not in shown]:
        yield f"0 everywhere: {', '.join(zero)}."
    if _have_intervals(comparison):
        yield (
            f"{ROUGHLY} marks a difference whose interval includes 0. Intervals are of the texts (Student's t): they "
            "say what other texts of this kind would give, not what models trained from other seeds would."
        )
    elif len(comparison.models) == 1:
        yield "One model: its heads are compared with one another."
    else:
        yield (
            f"Over {format_count(comparison.n_texts, 'texts')}: whether a difference is more than chance takes "
            f"{MIN_TEXTS} texts (--text again, or --dataset)."
        )
    if (n_heads := len(comparison.head_names)) > MAX_HEADS:
        yield f"Which of {n_heads:,} heads are alike is not measured: that is done for {MAX_HEADS} at most."
    if comparison.merged:
        yield (
            "The models cut texts differently: tokens are joined until all models have the same (keys summed, queries "
            "averaged)."
        )
    if comparison.left_out:
        shares = zip((model.name for model in _safe(comparison)), comparison.left_out, strict=True)
        found = ", ".join(f"{name} {share:.1%}" for name, share in shares)
        yield (
            "The models put different markers into a text. These are left out, and numbers are about what goes to the "
            f"text itself; of all attention from it, this went to markers or another sink: {found}."
        )
    widths = {model.d_model for model in comparison.models}
    if len(widths) > 1:
        found = ", ".join(f"{model.name} {model.d_model}" for model in _safe(comparison))
        yield f"The models differ in d_model too ({found}), so that not every difference is one of heads."
    if _are_cut(comparison):
        read, whole = int(comparison.n_tokens.sum()), int(comparison.n_in_text.sum())
        verb = "is" if read == 1 else "are"
        yield f"Of the texts' {whole:,} tokens {read:,} {verb} compared; --max-tokens and --keep say which."


def _have_intervals(comparison: Comparison) -> bool:
    every = (*comparison.right, *(each for of_measure in comparison.differences.values() for each in of_measure))
    return any(difference.low is not None for difference in every)


def _are_cut(comparison: Comparison) -> bool:
    """Whether less than the whole texts is compared."""
    return not comparison.merged and int(comparison.n_tokens.sum()) < int(comparison.n_in_text.sum())


def _subtitle(comparison: Comparison, texts: str) -> str:
    read, whole = (round(float(counts.mean())) for counts in (comparison.n_tokens, comparison.n_in_text))
    size = f"{read} {pluralize(read, 'units' if comparison.merged else 'tokens')}"
    cut = _are_cut(comparison)
    if cut:
        size = f"{read} of {whole} tokens"
    if comparison.n_texts > 1:
        size = f"{comparison.n_texts:,} texts{', on average' if cut else ' of'} {size}{'' if cut else ' on average'}"
    status = (f"{model.name}: {drop_hash(model.status)}" for model in _safe(comparison) if drop_hash(model.status))
    return " · ".join(part for part in (texts, size, *status) if part)


def _safe(comparison: Comparison) -> Iterator[ModelComparison]:
    """The models with names that can be shown."""
    return (
        replace(
            model, name=escape_for_display(model.name, MAX_NAME_LENGTH), status=escape_for_display(model.status, 80)
        )
        for model in comparison.models
    )


def _numbers(difference: MeanDifference | None) -> Row:
    if difference is None:
        return ("", "", "", "")
    low, high = ("" if bound is None else repr(bound) for bound in (difference.low, difference.high))
    return (repr(difference.value), low, high, difference.no_interval or "")


def _data(comparison: Comparison) -> Mapping[str, object]:
    """Everything, as it was measured: per text and per head."""
    return {
        "texts": {"name": comparison.texts, "number": comparison.n_texts, "tokens": comparison.n_tokens},
        "merged": comparison.merged,
        "left_out": list(comparison.left_out),
        "models": [_model_data(model) for model in comparison.models],
        "measures": {
            measure.name: {
                "unit": measure.unit,
                "together": measure.together,
                "uniform": None if (of := comparison.uniform.get(measure.name)) is None else float(of.mean()),
                "means": [float(model.per_text(measure.name).mean()) for model in comparison.models],
                "differences": [_difference(each) for each in comparison.differences[measure.name]],
                "per_text": [model.per_text(measure.name) for model in comparison.models],
                "per_head": [
                    values.mean(axis=0)
                    for model in comparison.models
                    if (values := model.per_head.get(measure.name)) is not None
                ],
            }
            for measure in comparison.measures
        },
        "accuracy_differences": [_difference(each) for each in comparison.right],
        "divergences": comparison.divergences,
        "verdict": list(verdict(comparison)),
    }


def _model_data(model: ModelComparison) -> Mapping[str, object]:
    return {
        "name": model.name,
        "status": model.status,
        "trained": model.trained,
        "n_layers": model.n_layers,
        "n_heads": model.n_heads,
        "d_model": model.d_model,
        "n_parameters": model.n_parameters,
        "n_attention_parameters": model.n_attention_parameters,
        "cost": model.cost and asdict(model.cost),
        "seconds": model.seconds,
        "accuracy": model.accuracy,
        "card": None if model.tested is None else asdict(model.tested),
        "predictions": [
            {"text": each.text_name, **_answer_data(model.answers, each), "gold": each.gold}
            for each in model.predictions
            if model.answers is not None
        ],
    }


def _answer_data(answers: AnswerInfo, prediction: Prediction) -> Mapping[str, object]:
    if answers.kind == "score":
        return {"scores": list(prediction.scores)}
    chosen = answers.choose_labels(prediction)
    found = {"label": chosen[0]} if answers.kind == "label" else {"labels": list(chosen)}
    return {**found, "probabilities": list(prediction.probabilities)}


def _difference(difference: MeanDifference) -> Mapping[str, object]:
    return {**asdict(difference), "includes_zero": difference.includes_zero}
