"""A comparison of models as a report: tables, pictures, a verdict. Knows `comparison` and `report`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isnan

from attnviz.commands.compare.comparison import MAX_HEADS, UNIFORM, ComparedModel, Comparison, none_if_nan
from attnviz.commands.compare.costs import HEADLINE, MAX_READINGS, costs_table, find_cost, verdict
from attnviz.commands.compare.spec import CompareSpec
from attnviz.display import escape_for_display, list_first, name_measure, pluralize
from attnviz.report import Block, Cell, Column, Note, Picture, Report, Row, Scale, Table
from attnviz.views.captions import choose_title, drop_hash

ROUGHLY = "~"  # before a difference whose interval includes 0
FACTS = ("name", "status", "trained", "n_layers", "n_heads", "d_model", "n_parameters", "n_attention_parameters")
MAX_NUMBERS = 15  # in the table of the first screen
OF_INTERVAL = ("low", "high", "no_interval", "includes_zero")
NUMBERS = ("mean", "difference", "low", "high")


def compare_report(
    comparison: Comparison,
    pictures: Sequence[Picture],
    scales: Sequence[Scale],
    theory: Sequence[Block],
    spec: CompareSpec,
) -> Report:
    """Build the report: the verdict, pictures, the numbers beside each other, what they cost, and theory if wanted."""
    title = spec.figure.title
    blocks: list[Block] = [*verdict(comparison)]
    blocks += [*pictures, *_measures(comparison, spec.measure), costs_table(comparison), *theory]
    blocks += _remarks(comparison)
    names = [model.label for model in comparison.models]
    texts, quoted = (escape_for_display(name, 80) for name in (comparison.texts, comparison.quoted or comparison.texts))
    status = [escape_for_display(model.status, 80) for model in comparison.models]
    unknown = [_describe_unknown(comparison, model.name) for model in comparison.models]
    said = [", ".join(filter(None, pair)) for pair in zip(map(drop_hash, status), unknown, strict=True)]
    trained = (f"{name}: {each}" for name, each in zip(names, said, strict=True) if each)
    return Report(
        title=choose_title(title, f"{' and '.join(filter(None, [', '.join(names[:-1]), names[-1]]))} on {quoted}"),
        subtitle=" · ".join(filter(None, ["" if title is None else quoted, _describe_size(comparison), *trained])),
        blocks=tuple(blocks),
        scale=scales[0],
        scales=tuple(scales[1:]),
        facts=(
            ("models", ", ".join(names)),
            ("texts", texts),
            ("texts sha256", comparison.texts_sha256),
            *((f"status of {name}", each) for name, each in zip(names, status, strict=True)),
        ),
        data=_data(comparison),
        max_lines=18,
    )


def compare_rows(comparison: Comparison) -> Iterator[Row]:
    """Yield the rows for a spreadsheet: one per measure and model, the difference from the first model beside it."""
    yield ("measure", "unit", "of", "model", *NUMBERS, "no interval because")
    for measure in comparison.measures:
        of = measure.name, measure.unit, "all heads of a layer" if measure.level == "layer" else "each head"
        for row in comparison.results[measure.name]:
            numbers = (row[name] for name in NUMBERS)
            yield (*of, row["model"] or "uniform attention", *numbers, row["no_interval"] or "")


def _measures(comparison: Comparison, named: Sequence[str]) -> Iterator[Table]:
    """Yield the table of means, beside those of a single other model its difference from the first; then that of all
    differences with their intervals.
    """
    name, *others = (model.label for model in comparison.models)
    n_models = len(comparison.models)
    rows: list[tuple[Cell, ...]] = []
    changes: list[tuple[Cell, ...]] = []
    for measure in comparison.measures:
        n_digits = 3 if measure.unit in ("nats", "share") else 2  # after the point
        label, found = name_measure(measure.name, measure.unit), comparison.results[measure.name][-n_models:]
        means, pairs = [*(row["mean"] for row in found), comparison.mean(UNIFORM, measure.name)], found[1:]
        marked = [f"{ROUGHLY if p['includes_zero'] else ''}{p['difference']:+.{n_digits}f}" for p in pairs]
        written = ("-" if isnan(mean) else f"{mean:.{n_digits}f}" for mean in means)
        rows.append((label, *written, *(marked if len(others) == 1 else ())))
        ends = ("-" if p["low"] is None else f"{p['low']:+.{n_digits}f} to {p['high']:+.{n_digits}f}" for p in pairs)
        changes.append((label, *(cell for pair in zip(marked, ends, strict=True) for cell in pair)))
    columns = [Column("mean per head"), *map(Column, (name, *others)), Column("uniform", minor=True)]
    columns += [Column("difference")] if len(others) == 1 else []
    n_first = max(1, MAX_NUMBERS // (len(columns) - 2)) if len(others) else len(HEADLINE)
    first = [n for n, measure in enumerate(comparison.measures) if not named and measure.name in HEADLINE][:n_first]
    is_rough = any(str(rows[n][-1]).startswith(ROUGHLY) for n in first or range(len(rows)))
    doubt = f"{ROUGHLY}: may be none. " if is_rough else ""
    more = f"{doubt}All models, measures, intervals, likeness, costs: --table full."
    yield Table("measures", "What was measured", "compared", tuple(columns), tuple(rows), first=tuple(first), more=more)
    if others:
        heading = (Column("mean per head"), *(Column(each) for other in others for each in (other, "95 % interval")))
        yield Table("differences", f"Difference from {name}", "compared", heading, tuple(changes), is_detail=True)


def _describe_unknown(comparison: Comparison, model: str) -> str:
    """Say how much of the texts a model reads as one and the same token; "" of none."""
    if not comparison.has(model, "unknown"):
        return ""
    share = comparison.per_text(model, "unknown").sum() / comparison.per_text(model, "tokens").sum()
    return f"{share:.0%} read as [UNK]" if share else ""


def _remarks(comparison: Comparison) -> Iterator[Note]:
    models = comparison.models
    if any(row["low"] is not None for rows in comparison.results.values() for row in rows):
        yield Note(
            f"{ROUGHLY} marks a difference whose interval includes 0. Each interval is of one measure alone; what is "
            "called more than chance is corrected for their number (Holm 1979). Intervals are of texts (Student's t): "
            "they say what other texts of this kind would give, not what models trained from other seeds would.",
            is_detail=True,
        )
    if (n_heads := len(comparison.heads)) > MAX_HEADS:
        said = f"Which of {n_heads:,} heads are alike is not measured: that is done for {MAX_HEADS} at most."
        yield Note(said, is_detail=True)
    if comparison.merged:
        yield Note("Tokens are joined until all models have the same (keys summed, queries averaged).")
    if comparison.left_out:
        shares = zip(models, comparison.left_out, strict=True)
        found = list_first([f"{model.label} {share:.1%}" for model, share in shares], MAX_READINGS)
        yield Note(f"Markers that not all models put in are left out, and what goes to them or another sink: {found}.")
    if len({model.d_model for model in models}) > 1:
        yield Note("The models differ in d_model too, so that not every difference is one of heads.")
    if _are_cut(comparison):
        read, whole = (int(comparison.per_text(UNIFORM, name).sum()) for name in ("tokens", "in_text"))
        said = f"Compared: {read:,} of the texts' {whole:,} tokens; --max-tokens and --keep say which."
        yield Note(said, is_detail=True)


def _are_cut(comparison: Comparison) -> bool:
    """Tell whether less than the whole texts is compared."""
    return not comparison.merged and comparison.mean(UNIFORM, "tokens") < comparison.mean(UNIFORM, "in_text")


def _describe_size(comparison: Comparison) -> str:
    read, whole = (round(comparison.mean(UNIFORM, name)) for name in ("tokens", "in_text"))
    size = f"{read} {pluralize(read, 'units' if comparison.merged else 'tokens')}"
    cut = _are_cut(comparison)
    if cut:
        size = f"{read} of {whole} tokens"
    if comparison.n_texts == 1:
        return size
    return f"{comparison.n_texts:,} texts{', on average' if cut else ' of'} {size}{'' if cut else ' on average'}"


def _data(comparison: Comparison) -> Mapping[str, object]:
    """Return everything as it was measured: per text and per head."""
    models = comparison.models
    return {
        "texts": {
            "name": comparison.texts,
            "number": comparison.n_texts,
            "tokens": comparison.per_text(UNIFORM, "tokens").astype(int),
        },
        "merged": comparison.merged,
        "left_out": list(comparison.left_out),
        "models": [_model_data(comparison, model) for model in models],
        "measures": {
            measure.name: {
                "unit": measure.unit,
                "together": measure.level == "layer",
                "uniform": none_if_nan(comparison.mean(UNIFORM, measure.name)),
                "means": [row["mean"] for row in comparison.results[measure.name][-len(models) :]],
                "differences": _differences(comparison, measure.name),
                "per_text": [comparison.per_text(model.name, measure.name) for model in models],
                "per_head": [
                    comparison.per_head(model, measure.name).mean(axis=0) for model in models if measure.level == "head"
                ],
            }
            for measure in comparison.measures
        },
        "accuracy_differences": _differences(comparison, "right"),
        "divergences": comparison.divergences,
        "verdict": [note.text for note in verdict(comparison)],
    }


def _model_data(comparison: Comparison, model: ComparedModel) -> Mapping[str, object]:
    predictions = []
    for each in model.predictions:
        assert model.answers is not None, "who answers has answers"
        answer: dict[str, object] = {"scores": list(each.scores)}
        if model.answers.kind != "score":
            chosen = model.answers.choose_labels(each)
            answer = {"label": chosen[0]} if model.answers.kind == "label" else {"labels": list(chosen)}
            answer["probabilities"] = list(each.probabilities)
        predictions.append({"text": each.text_name, **answer, "gold": each.gold})
    return {
        **{fact: getattr(model, fact) for fact in FACTS},
        "cost": find_cost(comparison, model),
        "accuracy": none_if_nan(comparison.mean(model.name, "right")),
        "card": None if model.tested is None else asdict(model.tested),
        "predictions": predictions,
    }


def _differences(comparison: Comparison, name: str) -> list[Mapping[str, object]]:
    rows = comparison.results.get(name, [])[-len(comparison.models) :][1:]
    return [{"value": none_if_nan(row["difference"])} | {column: row[column] for column in OF_INTERVAL} for row in rows]
