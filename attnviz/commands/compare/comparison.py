"""What a comparison of models found, text by text. Knows no torch, no texts and no files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnviz.display import escape_for_display
from attnviz.records.answers import AnswerInfo
from attnviz.records.training_metrics import Prediction, TestMetrics

MAX_NAME_LENGTH = 24
MAX_HEADS = 288  # of all models, to be compared pair by pair: the time goes with the square
PerText = Float[np.ndarray, " text"]


@dataclass(frozen=True)
class Cost:
    """What one forward pass of attention takes, all layers together; means over the texts."""

    projections: float | None  # floating-point operations; None: not known of a model of others
    weights: float  # floating-point operations of scores and weighted sums; softmax is not counted
    memory: float  # bytes of the weights in float32


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """One model: what it is, and what was measured on it."""

    name: str
    status: str  # "trained, weights sha256 ab12cd34…"
    trained: bool | None  # None: not known
    n_layers: int
    n_heads: int
    d_model: int
    n_parameters: int
    n_attention_parameters: int | None  # None: not known of a model of others
    n_tokens: float  # that it reads of a text, as it cuts it and with its markers; mean over the texts
    cost: Cost | None  # of attention from one text to another the formulas say nothing
    per_head: Mapping[str, Float[np.ndarray, "text layer head"]]
    per_layer: Mapping[str, Float[np.ndarray, "text layer"]]
    layer_numbers: tuple[int, ...]  # of those that were measured, as the model counts them
    answers: AnswerInfo | None = None  # None where it does not classify
    predictions: tuple[Prediction, ...] = ()  # likewise none
    tested: TestMetrics | None = None  # what its card says
    seconds: float | None = None  # of one forward pass with its maps, median

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.d_model // self.n_heads

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """Of each head, the place of its layer among those measured, and its number."""
        return tuple(np.ndindex(len(self.layer_numbers), self.n_heads))

    @property
    def right(self) -> PerText | None:
        """1 for each text that is classified rightly, else 0, NaN for one of unknown tokens.

        None without labels, and where which of the model's own they are is not known.
        """
        if self.answers is None:
            return None
        labels = self.answers.find_labels([each.gold for each in self.predictions])
        if None in labels:
            return None
        pairs = zip(self.predictions, labels, strict=True)
        return np.array([float(p.label == label) if p.is_judged else np.nan for p, label in pairs])

    @property
    def accuracy(self) -> float | None:
        """Share of the labelled texts that were classified rightly; None without labels."""
        judged = None if self.right is None else self.right[~np.isnan(self.right)]
        return None if judged is None or not len(judged) else float(judged.mean())

    def per_text(self, measure: str) -> PerText:
        """The mean over layers and heads for each text."""
        values = self.per_head.get(measure, self.per_layer.get(measure))
        assert values is not None
        return np.asarray(values.reshape(len(values), -1).mean(axis=1))


@dataclass(frozen=True)
class MeanDifference:
    """A model's mean over the texts, minus the first model's; with its 95 % interval, or why it has none."""

    value: float
    low: float | None = None
    high: float | None = None
    no_interval: str | None = None  # such as "fewer than 10 texts"

    @property
    def includes_zero(self) -> bool | None:
        """None without an interval."""
        return None if self.low is None or self.high is None else self.low <= 0 <= self.high

    def within(self, limit: float) -> MeanDifference:
        """With bounds that are not beyond what there can be."""
        if self.low is None or self.high is None:
            return self
        return MeanDifference(self.value, max(self.low, -limit), min(self.high, limit))


@dataclass(frozen=True)
class MeasureInfo:
    """A measure, as a table names it."""

    name: str
    unit: str
    together: bool  # of all heads of a layer


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models on the same texts. What is compared with what is always: each with the first; of one model its heads."""

    models: tuple[ModelComparison, ...]
    texts: str  # what they are called: "sample train[0]", "imdb test[:500]"
    n_tokens: Int[np.ndarray, " text"]  # that attended
    n_in_text: Int[np.ndarray, " text"]
    merged: bool  # whether tokens were joined, so that models with different tokenisers have common units
    measures: tuple[MeasureInfo, ...]
    uniform: Mapping[str, PerText]  # the same measures of attention that favours nothing
    differences: Mapping[str, tuple[MeanDifference, ...]]  # of each measure, one per model after the first
    right: tuple[MeanDifference, ...] = ()  # likewise of the share of texts that are classified rightly
    texts_sha256: str = ""
    left_out: tuple[float, ...] = ()  # of each model, the share of attention to markers that were left out; mean
    divergences: Float[np.ndarray, "head head"] | None = None  # nats, mean over texts, heads of all models in order

    @property
    def n_texts(self) -> int:
        """How many texts were compared."""
        return len(self.n_tokens)

    @property
    def head_names(self) -> tuple[str, ...]:
        """The heads of all models in order: "multi:8 · 0.1"; the layer, or model, is left out where there is one."""
        layered = any(max(model.layer_numbers, default=0) for model in self.models)
        return tuple(
            f"{escape_for_display(model.name, MAX_NAME_LENGTH)} · " * (len(self.models) > 1)
            + f"{model.layer_numbers[layer]}." * layered
            + str(head)
            for model in self.models
            for layer, head in model.heads
        )

    @property
    def slugs(self) -> tuple[str, ...]:
        """A file name for each model, of safe characters only and no two alike."""
        found = [re.sub("[^A-Za-z0-9._-]+", "-", model.name).strip("-.")[:40] or "model" for model in self.models]
        return tuple(f"{slug}-{place}" if found.count(slug) > 1 else slug for place, slug in enumerate(found))
