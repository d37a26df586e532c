"""What a comparison of models found: one table, and what is read from it. Knows no torch, no texts and no files.

A row is of one text and one model, and of one of its heads, of a layer's heads together (no `head`), or of the whole
model (neither `layer` nor `head`). The values of heads and layers are measures. A whole model has the `tokens` that it
reads, how many of these are `unknown` to it, `right` (1, 0, or nothing where no label is known) and `left_out`, the
share of attention to markers that were left out. Rows without a model are of attention that favours nothing, and hold
the `tokens` that are compared and those `in_text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Float64

from attnviz.display import escape_for_display
from attnviz.measures import Measure
from attnviz.records.answers import AnswerInfo
from attnviz.records.training_metrics import Prediction, TestMetrics
from attnviz.table.intervals import MIN_TEXTS, PairedDifference, compare_pairs

if TYPE_CHECKING:  # Arrow takes a fifth of a second, and starts a thread that a fork would not have
    from attnviz.table.numbers import Numbers

KEYS = ("text", "model", "layer", "head")
UNIFORM = None  # in the place of a model: attention that favours nothing
MAX_NAME_LENGTH = 24  # in the name of a head
MAX_HEADS = 288  # of all models, to be compared pair by pair: the time goes with the square
RESULTS = ("model", "mean", "n", "difference", "low", "high", "includes_zero", "no_interval", "p_value")
PerText = Float64[np.ndarray, " text"]
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """What one of the models is; what was measured on it stands in the table."""

    name: str
    status: str  # "trained, weights sha256 ab12cd34…"
    trained: bool | None  # None: not known
    layer_numbers: tuple[int, ...]  # of those that attend, as the model counts them
    n_heads: int
    d_model: int
    n_parameters: int
    n_attention_parameters: int | None  # None: not known of a third-party model
    self_attention: bool = True
    answers: AnswerInfo | None = None  # None where it does not classify
    predictions: tuple[Prediction, ...] = ()  # likewise none
    tested: TestMetrics | None = None  # what its card says

    @property
    def label(self) -> str:
        """Return the model's name as it can be shown."""
        return escape_for_display(self.name, 40)

    @property
    def n_layers(self) -> int:
        """Count the layers that attend."""
        return len(self.layer_numbers)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models on the same texts. What is compared with what is always: each with the first; of one model its heads."""

    models: tuple[ComparedModel, ...]
    texts: str  # what they are called: "sample train[0]", "imdb test[:500]"
    numbers: Numbers
    asked: tuple[Measure, ...]
    merged: bool  # whether tokens were joined, so that models with different tokenisers have common units
    texts_sha256: str = ""
    quoted: str = ""  # in titles one text is called by its first words
    divergences: Float[np.ndarray, "head head"] | None = None  # nats, mean over texts, heads of all models in order

    @cached_property
    def n_texts(self) -> int:
        """Count the texts that were compared."""
        return len(self.per_text(UNIFORM, "tokens"))

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Select the measures asked for that all models have."""
        return tuple(m for m in self.asked if all(self.has(model.name, m.name) for model in self.models))

    @cached_property
    def _by_model(self) -> Mapping[object, tuple[Numbers, Numbers]]:
        """Group all rows by model, and their means by text."""
        means = {model: rows for (model,), rows in self.numbers.aggregate("mean", "text", "model").group("model")}
        return {model: (rows, means[model]) for (model,), rows in self.numbers.group("model")}

    def has(self, model: str | None, name: str) -> bool:
        """Return whether a model has any number of this name."""
        return name in self.numbers.values and not np.isnan(self.per_text(model, name)).all()

    def per_text(self, model: str | None, name: str) -> PerText:
        """Return the mean over layers and heads for each text; NaN where there is none."""
        return self._by_model[model][1].array(name)

    def per_head(self, model: ComparedModel, name: str) -> Float64[np.ndarray, "text layer head"]:
        """Return a measure of each head on each text."""
        rows, _ = self._by_model[model.name]
        of_heads = rows.array(name)[~np.isnan(rows.array("head"))]
        return np.asarray(of_heads.reshape(self.n_texts, model.n_layers, model.n_heads))

    def mean(self, model: str | None, name: str) -> float:
        """Return the mean over the texts that have one; NaN where there is none."""
        if not self.has(model, name):
            return nan
        values = self.per_text(model, name)
        return float(values[~np.isnan(values)].mean())

    @cached_property
    def left_out(self) -> tuple[float, ...]:
        """Return each model's share of attention to markers, over the texts that they were left out of; () if none."""
        if not self.has(self.models[0].name, "left_out"):
            return ()
        return tuple(self.mean(model.name, "left_out") for model in self.models)

    @cached_property
    def results(self) -> Mapping[str, list[Row]]:
        """Summarize each measure, and `right` where all models are judged: a row for each model.

        A row has the `mean`; before them comes that of attention that favours nothing, where it has one. Each model
        after the first has how far it lies above that (`difference`) over the `n` texts that both have a number of,
        with the ends of its 95 % interval and the `p_value`, or why there is `no_interval`.
        """
        first, *others = (model.name for model in self.models)
        found: dict[str, list[Row]] = {}
        is_judged = all(self.has(model.name, "right") for model in self.models)
        for name in [*(measure.name for measure in self.measures), *(["right"] if is_judged else [])]:
            values = {model: self.per_text(model, name) for model in (first, *others)}
            pairs = compare_pairs(values, [(other, first) for other in others])
            apart = {pair.one: _describe_difference(pair, 1.0 if name == "right" else inf) for pair in pairs}
            found[name] = [
                dict.fromkeys(RESULTS) | {"model": model, "mean": self.mean(model, name)} | apart.get(model or "", {})
                for model in (*([UNIFORM] if self.has(UNIFORM, name) else []), first, *others)
            ]
        return found

    @cached_property
    def heads(self) -> tuple[tuple[ComparedModel, int, int], ...]:
        """List the heads of all models in order: the model, the place of the layer, the head."""
        return tuple((model, *place) for model in self.models for place in np.ndindex(model.n_layers, model.n_heads))

    @property
    def head_names(self) -> tuple[str, ...]:
        """Name all heads: "multi:8 · 0.1"; the layer, or the model, is left out where there is only one."""
        layered = any(max(model.layer_numbers, default=0) for model in self.models)
        return tuple(
            f"{escape_for_display(model.name, MAX_NAME_LENGTH)} · " * (len(self.models) > 1)
            + f"{model.layer_numbers[layer]}." * layered
            + str(head)
            for model, layer, head in self.heads
        )

    @property
    def slugs(self) -> tuple[str, ...]:
        """Return a file name for each model, of safe characters only and no two alike."""
        found = [re.sub("[^A-Za-z0-9._-]+", "-", model.name).strip("-.")[:40] or "model" for model in self.models]
        return tuple(f"{slug}-{place}" if found.count(slug) > 1 else slug for place, slug in enumerate(found))


def _describe_difference(pair: PairedDifference, most: float) -> Row:
    """Return a difference with its interval, which goes no further than is possible, or say why it has none."""
    found: Row = {"n": pair.n, "difference": pair.value}
    if isnan(pair.low):
        return found | {
            "no_interval": f"fewer than {MIN_TEXTS} texts" if pair.n < MIN_TEXTS else "all texts differ alike"
        }
    low, high = max(pair.low, -most), min(pair.high, most)
    return found | {"low": low, "high": high, "includes_zero": low <= 0 <= high, "p_value": pair.p_value}


def none_if_nan(number: float) -> float | None:
    """Return None for what was not measured."""
    return None if isnan(number) else number
