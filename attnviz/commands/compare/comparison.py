"""What a comparison of models measured: one table, and what is read from it. Knows no torch, no texts and no files.

A row is of one text and one model, and of one of its heads, of a layer's heads together (no `head`), or of the whole
model (neither `layer` nor `head`). The values of heads and layers are measures. A whole model has the `tokens` that it
reads, how many of these are `unknown` to it, `right` (1, 0, or nothing where no label is known) and `left_out`, the
share of attention to markers that were left out. Rows without a model are of attention that favours nothing, and hold
the `tokens` that are compared and those `in_text`.

`MeasuredTexts` brings one text through several models to common units and measures it as rows of that table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Float64

from attnviz.display import escape_for_display
from attnviz.errors import InvalidOption
from attnviz.measures import Measure, measure_heads, measure_maps
from attnviz.measures.concentration import make_uniform
from attnviz.measures.divergence import Divergences, measure_divergences_across
from attnviz.measures.merging import find_common_units, merge_tokens
from attnviz.measures.rows import check_self_attention
from attnviz.records import AttentionMaps, Tokens
from attnviz.records.answers import AnswerInfo, Prediction, TestMetrics
from attnviz.table.intervals import MIN_TEXTS, PairedDifference, compare_pairs

if TYPE_CHECKING:
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
        why = f"fewer than {MIN_TEXTS} texts" if pair.n < MIN_TEXTS else "all texts differ alike"
        return found | {"no_interval": why}
    low, high = max(pair.low, -most), min(pair.high, most)
    return found | {"low": low, "high": high, "includes_zero": low <= 0 <= high, "p_value": pair.p_value}


def none_if_nan(number: float) -> float | None:
    """Return None for what was not measured."""
    return None if isnan(number) else number


def align(several: Sequence[AttentionMaps]) -> tuple[tuple[AttentionMaps, ...], bool, tuple[float, ...]]:
    """Bring maps to common units; tell whether tokens were joined for that. Where models add different markers, these
    are left out first: the third is the share of each model's attention that went to them, () where all stay.

    Raises InvalidOption where there are no common units.
    """
    try:
        return *_merge(several), ()
    except InvalidOption:
        try:
            bare = [without_markers(maps) for maps in several]
            left_out = tuple(0.0 if maps.sink is None else float(maps.sink.mean()) for maps in bare)
            return *_merge(bare), left_out
        except InvalidOption as error:
            name = several[0].provenance.text_name
            raise InvalidOption(f"the models cut {name} differently: {error.problem}", hint=error.hint) from error


def without_markers(maps: AttentionMaps) -> AttentionMaps:
    """Restrict attention to tokens of the text: what goes to markers such as [CLS] goes to the `sink` of each row.

    Nothing is renormalised: rows and sinks sum to 1. Self-attention only. Raises InvalidOption for other attention, and
    where all tokens are markers.
    """
    check_self_attention(maps, "leaving out markers")
    marked = np.array(maps.queries.special)
    if not marked.any():
        return maps
    if marked.all():
        raise InvalidOption("all tokens are markers", hint="Give a text.")
    kept = np.flatnonzero(~marked)
    of_kept = maps.weights[:, :, kept]
    sink = of_kept[..., marked].sum(axis=-1)
    tokens = Tokens(*(tuple(getattr(maps.queries, each.name)[place] for place in kept) for each in fields(Tokens)))
    return AttentionMaps(
        weights=np.ascontiguousarray(of_kept[..., kept]),
        queries=tokens,
        keys=tokens,
        attendable=maps.attendable[:, kept][:, :, kept],
        provenance=maps.provenance,
        sink=sink if maps.sink is None else sink + maps.sink[:, :, kept],
        layer_numbers=maps.layer_numbers,
        head_numbers=maps.head_numbers,
    )


def _merge(several: Sequence[AttentionMaps]) -> tuple[tuple[AttentionMaps, ...], bool]:
    cuts = {tuple((tokens.offsets, tokens.special) for tokens in (maps.queries, maps.keys)) for maps in several}
    if len(cuts) == 1:  # two tokenizers that cut alike need no joining
        return tuple(several), False
    units = find_common_units([maps.queries for maps in several])
    return tuple(merge_tokens(maps, of) for maps, of in zip(several, units, strict=True)), True


@dataclass(eq=False)
class MeasuredTexts:
    """The rows of the texts that were measured so far. Of their maps only the last text's are kept."""

    models: Sequence[str]  # names
    measures: Sequence[str]
    parts: list[Numbers] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # sha256 of each
    merged: bool = False
    divergences: Divergences | None = None  # the sum over the texts
    last: tuple[AttentionMaps, ...] = ()  # in common units

    def add(self, several: Sequence[AttentionMaps], right: Sequence[float | None]) -> None:
        """Measure one text under each of the models, and note which of them answer it rightly.

        Raises InvalidOption for a measure that these maps do not have, and where they have no common units.
        """
        from attnviz.table.numbers import Numbers

        self.last, is_merged, left_out = align(several)
        self.merged |= is_merged
        # The row of attention that favours nothing: how large the text is, and its measures.
        n_tokens, in_text = _count_tokens(self.last[0]), several[0].provenance.facts.tokens_in_text
        by_chance = measure_maps(make_uniform(self.last[0]), self.measures, "head")
        means: dict[str, object] = {each.name: float(each.values.mean()) for each in by_chance}
        rows = [{"tokens": n_tokens, "in_text": n_tokens if in_text is None else in_text, **means}]
        shares = left_out or (None,) * len(several)
        for name, given, is_right, share in zip(self.models, several, right, shares, strict=True):
            of_model = {"tokens": _count_tokens(given), "unknown": sum(given.queries.unknown)}
            rows.append({"model": name, **of_model, "right": is_right, "left_out": share})
        for name, maps in zip(self.models, self.last, strict=True):
            rows += ({"model": name, **row} for row in measure_heads(maps, self.measures))
        self.parts.append(Numbers.from_rows(({"text": len(self.texts), **row} for row in rows), KEYS))
        self.texts.append(several[0].provenance.text_sha256)
        if sum(maps.n_layers * maps.n_heads for maps in self.last) <= MAX_HEADS:
            apart = measure_divergences_across([(maps, place) for maps in self.last for place in range(maps.n_layers)])
            self.divergences = apart if self.divergences is None else self.divergences + apart


def _count_tokens(maps: AttentionMaps) -> int:
    """Count the tokens of the text that is attended to."""
    return int(maps.real_queries.sum()) if maps.self_attention else len(maps.keys)
