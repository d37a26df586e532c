"""What compared models cost, as a table, and what a comparison says in plain words. Knows `comparison` and `report`.

What attention costs follows from its sizes. One head of width d and h heads of width d/h take the same operations;
only the maps are h times as many. A multiplication and an addition are two operations. Softmax, biases and everything
that is not attention are left out.

Of other layers, complexities are those of table 1 of Vaswani et al. 2017 (arXiv:1706.03762), maximum path lengths too,
evaluated without the constants that O( ) leaves out, so that they compare growth and not milliseconds.

The words of the verdict never say more than the numbers bear.
"""

from collections.abc import Iterator
from itertools import count
from math import ceil, isnan
from typing import Any

import numpy as np
from jaxtyping import Float64

from attnviz.bounded import format_bytes
from attnviz.commands.compare.comparison import ComparedModel, Comparison
from attnviz.display import format_count, list_first, name_measure, pluralize
from attnviz.measures.classification import compute_score_interval
from attnviz.report import Block, Column, Note, Row, Table
from attnviz.table.intervals import MIN_TEXTS, SHARE, Interval, correct_p_values
from attnviz.views.answers import describe_given_labels, describe_reading
from attnviz.views.captions import describe_likeness

THOUSANDS = ("", " k", " M", " G", " T", " P")
NONE = "-"
Cells = list[str]  # one for each model
Cost = dict[str, Any]  # see `compute_cost`; None: not known
FLOAT32 = 4  # bytes


def compute_cost(n_tokens: Float64[np.ndarray, " text"], n_layers: int, n_heads: int, d_model: int) -> Cost:
    """Return what one forward pass of attention takes, all layers together, as means over the texts.

    `projections` to queries, keys, values and the output are n × d times d × d each, as many with one head: 8 n d²
    floating-point operations for each layer. Scores q kᵀ and sums of values (`weights`) are 2 n² d_head for each head
    and each of both: 4 n² d. A map of n × n weights for each head is in float32: 4 h n² bytes of `memory`.
    """
    n, square = float(n_tokens.mean()), float((n_tokens**2).mean())
    weights, memory = n_layers * 4 * square * d_model, n_layers * FLOAT32 * n_heads * square
    return {"projections": n_layers * 8 * n * d_model**2, "weights": weights, "memory": memory}


def costs_table(comparison: Comparison) -> Table:
    """Tabulate the costs: a row per fact, a column per model. n tokens, d = d_model, h heads, in L layers."""
    columns = (Column("what"), *(Column(model.label) for model in comparison.models))
    rows = [(label, *cells) for label, cells in _list_costs(comparison)]
    over = " (means over the texts)" if comparison.n_texts > 1 else ""
    return Table("costs", f"What it costs and what comes of it{over}", "compared", columns, tuple(rows), is_detail=True)


def find_cost(comparison: Comparison, model: ComparedModel) -> Cost | None:
    """Return what one pass costs; None of attention from one text to another, of which the formulas say nothing.

    Third-party models may project otherwise, and share keys between heads.
    """
    if not model.self_attention:
        return None
    n_tokens = comparison.per_text(model.name, "tokens")
    cost = compute_cost(n_tokens, model.n_layers, model.n_heads, model.d_model)
    return cost if model.n_attention_parameters is not None else cost | {"projections": None}


def _list_costs(comparison: Comparison) -> Iterator[tuple[str, Cells]]:
    models = comparison.models
    times = ""
    if any(model.n_layers > 1 for model in models):
        times, numbers = "L · ", [model.layer_numbers for model in models]
        # with their numbers where some layers of the model do not attend: "2 (1, 3)"
        which = ["" if of == tuple(range(len(of))) else f" ({', '.join(map(str, of))})" for of in numbers]
        yield "layers L", [f"{len(of)}{said}" for of, said in zip(numbers, which, strict=True)]
    yield "tokens n that it reads", [f"{round(comparison.mean(model.name, 'tokens')):,}" for model in models]
    yield "heads h of width d/h", [f"{model.n_heads} of {model.d_model // model.n_heads}" for model in models]
    yield "d_model d", [str(model.d_model) for model in models]
    yield "parameters", [f"{model.n_parameters:,}" for model in models]
    known = [model.n_attention_parameters for model in models]
    yield "of them in attention", [NONE if n is None else f"{n:,}" for n in known]
    costs = [cost for model in models if (cost := find_cost(comparison, model))]
    if len(costs) == len(models):
        projections, weights, memory = zip(*(cost.values() for cost in costs), strict=True)
        yield f"FLOP of projections, {times}8 n d²", [NONE if n is None else write_count(n) for n in projections]
        yield f"FLOP of scores and sums, {times}4 n² d", list(map(write_count, weights))
        yield f"memory of the maps, {times}4 h n² B", list(map(format_bytes, memory))
    accuracies = [comparison.mean(model.name, "right") for model in models]
    if not all(map(isnan, accuracies)):
        yield "accuracy on these texts", [NONE if isnan(each) else f"{each:.4f}" for each in accuracies]
    tested = [model.tested for model in models]
    if any(tested):
        yield "test accuracy, mean of seeds", [f"{each.mean.value:.4f}" if each else NONE for each in tested]
        over_seeds = [each.mean if each and len(each.seeds) > 1 else None for each in tested]
        yield "95 % interval over seeds", list(map(_write_interval, over_seeds))
        over_texts = [compute_score_interval(each.mean.value, each.n_texts) if each else None for each in tested]
        yield "95 % interval over texts", list(map(_write_interval, over_texts))


def _write_interval(interval: Interval | None) -> str:
    return f"{interval.low:.4f} to {interval.high:.4f}" if interval else NONE


def write_count(number: float) -> str:
    """Format a count: "1.93 M"; plain below a thousand."""
    power = 0
    while abs(number) >= 999.5 and power < len(THOUSANDS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{THOUSANDS[power]}" if power else f"{number:.0f}"


def theory_blocks(n: int, d: int, k: int) -> tuple[Block, ...]:
    """Tabulate layers for n tokens of width d and kernels of width k; note where sources differ. Raises nothing."""
    columns = [Column(name) for name in ("layer type", "operations", "steps", "longest path")]
    title = f"Layers that connect n = {n} {pluralize(n, 'tokens')} of width d = {d} (kernel k = {k})"
    return (Table("theory", title, "compared", tuple(columns), tuple(_rows(n, d, k))), *map(Note, _remarks(n, d)))


def _rows(n: int, d: int, k: int) -> Iterator[Row]:
    yield "self-attention", f"O(n² · d): {write_count(float(n * n * d))}", "O(1): 1", "O(1): 1"
    yield "recurrent", f"O(n · d²): {write_count(float(n * d * d))}", f"O(n): {n}", f"O(n): {n}"
    one = f"O(k · n · d²): {write_count(float(k * n * d * d))}"
    # Layers until an output has seen n tokens: 1 + L (k - 1) ≥ n or, where dilations are powers of k, k^L ≥ n.
    stacked, dilated = ceil((n - 1) / (k - 1)), next(height for height in count() if k**height >= n)
    yield "convolutional", one, "O(1): 1", f"O(n / k): {max(1, stacked)}"
    yield "dilated conv.", one, "O(1): 1", f"O(log_k n): {max(1, dilated)}"


def _remarks(n: int, d: int) -> Iterator[str]:
    yield (
        "Source: Vaswani et al. 2017, table 1. It gives convolutions the path O(log_k n); its text says this needs "
        "dilated kernels, and that contiguous ones need O(n / k) layers: both stand here. Counted are layers until one "
        "output has seen all n tokens, 1 + L (k - 1) ≥ n or k^L ≥ n. Operations are of one layer: the stack that "
        "connects all tokens takes as many times more as its path is long."
    )
    fewer = "fewer" if n < d else "more" if n > d else "as many"
    yield (
        f"The table leaves out the four projections of attention, O(n · d²) too ({write_count(4.0 * n * d * d)} here). "
        f"It calls self-attention cheaper than recurrence where n < d: here n = {n} and d = {d}, so it takes {fewer} "
        f"operations{'' if n == d else ' than a recurrent layer'}, but not one after the other."
    )


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
        describe_reading(model.label, model.answers, *model.predictions)
        for model in comparison.models
        if comparison.n_texts == 1 and model.answers
    ]
    sentences = [list_first(readings, MAX_READINGS, between=" · ")] if readings else []
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
    # What one head is together with itself is the same whatever it attends to, and so is no finding.
    names = [each.name for each in comparison.measures if each.level == "head" or min(first.n_heads, other.n_heads) > 1]
    names = [name for name in names if name in HEADLINE] or names
    rows = {name: row for name in names for row in comparison.results[name] if row["model"] == other.name}
    tested = {name: row["p_value"] for name, row in rows.items() if row["p_value"] is not None}
    if not tested:
        if place == 0 and comparison.n_texts < MIN_TEXTS:
            n = format_count(comparison.n_texts, "texts")
            yield f"Over {n}: to tell a difference from chance takes {MIN_TEXTS} (--text again, --dataset)."
        return
    corrected = zip(tested, correct_p_values([*tested.values()]), strict=True)
    found = [name_measure(name) for name, value in corrected if value <= 1 - SHARE]
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
