"""What compared models cost, and what comes of it, as a table. Knows `comparison` and `report`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from attnviz.commands.compare.comparison import Comparison, ModelComparison
from attnviz.display import escape_for_display
from attnviz.measures.classification import compute_score_interval
from attnviz.numbers.intervals import Interval
from attnviz.records.training_metrics import TestMetrics
from attnviz.report import Cell, Column, Table
from attnviz.views.answers import name_answer

THOUSANDS = ("", " k", " M", " G", " T", " P")
BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
NONE = "-"
Number = TypeVar("Number", int, float)


def costs_table(comparison: Comparison) -> Table:
    """A row per fact, a column per model. n tokens, d = d_model, h heads, in L layers."""
    columns = (Column("what"), *(Column(escape_for_display(model.name, 40)) for model in comparison.models))
    rows = [(label, *map(value, comparison.models)) for label, value in _rows(comparison)]
    over = " (means over the texts)" if comparison.n_texts > 1 else ""
    return Table("costs", f"What it costs and what comes of it{over}", "compared", columns, tuple(rows))


def accuracy(model: ModelComparison) -> str:
    """Accuracy as it is written in the table."""
    return NONE if model.accuracy is None else f"{model.accuracy:.4f}"


def _rows(comparison: Comparison) -> Iterator[tuple[str, Callable[[ModelComparison], Cell]]]:
    many = any(model.n_layers > 1 for model in comparison.models)
    times = "L · " if many else ""
    if many:
        yield "layers L", _layers
    yield "tokens n that it reads", lambda model: f"{round(model.n_tokens):,}"
    yield "heads h of width d/h", lambda model: f"{model.n_heads} of {model.d_head}"
    yield "d_model d", lambda model: str(model.d_model)
    yield "parameters", lambda model: f"{model.n_parameters:,}"
    yield "of them in attention", lambda model: _write_known(model.n_attention_parameters, "{:,}".format)
    costs = {model.name: model.cost for model in comparison.models if model.cost}
    if len(costs) == len(comparison.models):
        yield (
            f"FLOP of projections, {times}8 n d²",
            lambda model: _write_known(costs[model.name].projections, write_count),
        )
        yield f"FLOP of scores and sums, {times}4 n² d", lambda model: write_count(costs[model.name].weights)
        yield f"memory of the maps, {times}4 h n² B", lambda model: write_bytes(costs[model.name].memory)
    first = comparison.models[0].seconds
    if first is not None:
        yield "time of one pass (ms)", lambda model: f"{(model.seconds or 0) * 1000:.2f}"
        yield "time, as a ratio", lambda model: f"{(model.seconds or 0) / first:.2f}"
    yield from _outcomes(comparison)


def _layers(model: ModelComparison) -> str:
    """How many attend; their numbers where some of the model's do not, "2 (1, 3)"."""
    numbers = model.layer_numbers
    all_of_them = numbers == tuple(range(len(numbers)))
    return f"{len(numbers)}" if all_of_them else f"{len(numbers)} ({', '.join(map(str, numbers))})"


def _probability(model: ModelComparison) -> str:
    judged = [each for each in model.predictions if each.is_judged]
    if model.answers is None or not judged:
        return NONE
    chosen = model.answers.choose_labels(judged[0])
    return ", ".join(f"{judged[0].probabilities[place]:.3f}" for place in chosen) or NONE


def _outcomes(comparison: Comparison) -> Iterator[tuple[str, Callable[[ModelComparison], Cell]]]:
    if comparison.n_texts == 1 and any(model.predictions for model in comparison.models):
        yield "label", _label
        yield "its probability", _probability
    elif any(model.accuracy is not None for model in comparison.models):
        yield "accuracy on these texts", accuracy
    if any(model.tested for model in comparison.models):
        yield "test accuracy, mean of seeds", lambda model: f"{model.tested.mean.value:.4f}" if model.tested else NONE
        yield "95 % interval over seeds", lambda model: _write_interval(model, lambda tested: tested.over_seeds)
        yield "95 % interval over texts", lambda model: _write_interval(model, _over_texts)


def _label(model: ModelComparison) -> str:
    judged = [each for each in model.predictions if each.is_judged]
    return name_answer(model.answers, judged[0]) if model.answers and judged else NONE


def _over_texts(tested: TestMetrics) -> Interval:
    return compute_score_interval(tested.mean.value, tested.n_texts)


def _write_interval(model: ModelComparison, choose: Callable[[TestMetrics], Interval | None]) -> str:
    interval = choose(model.tested) if model.tested else None
    return f"{interval.low:.4f} to {interval.high:.4f}" if interval else NONE


def _write_known(number: Number | None, written: Callable[[Number], str]) -> str:
    return NONE if number is None else written(number)


def write_count(number: float) -> str:
    """ "1.93 M"; plain below a thousand."""
    power = 0
    while abs(number) >= 999.5 and power < len(THOUSANDS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{THOUSANDS[power]}" if power else f"{number:.0f}"


def write_bytes(number: float) -> str:
    """ "1.6 MiB"."""
    power = 0
    while number >= 1000 and power < len(BYTES) - 1:
        number, power = number / 1024, power + 1
    return f"{number:.3g} {BYTES[power]}" if power else f"{number:.0f} B"
