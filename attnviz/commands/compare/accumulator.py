"""The numbers of a comparison, collected text by text: no text's maps outlive its turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from attnviz.commands.compare.comparison import MAX_HEADS, MeasureInfo
from attnviz.commands.compare.markers import without_markers  # most models that are compared cut alike
from attnviz.errors import InvalidOption
from attnviz.measures import Measure, choose_measures, measure_maps
from attnviz.measures.concentration import make_uniform
from attnviz.measures.divergence import measure_divergences_across
from attnviz.measures.merging import find_common_units, merge_tokens
from attnviz.records import AttentionMaps
from attnviz.views.captions import describe_status


@dataclass(eq=False)
class Numbers:
    """Of one model, by measure and then text."""

    per_head: dict[str, list[np.ndarray]] = field(default_factory=dict)
    per_layer: dict[str, list[np.ndarray]] = field(default_factory=dict)
    n_tokens: list[int] = field(default_factory=list)  # as this model cuts the texts
    status: str = ""  # trained or not
    layer_numbers: tuple[int, ...] = ()
    self_attention: bool = True


@dataclass(eq=False)
class ComparisonAccumulator:
    """What was measured so far."""

    numbers: list[Numbers]  # one a model
    asked: tuple[str, ...]  # measures as they were named
    measures: tuple[Measure, ...]
    uniform: dict[str, list[float]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)  # sha256 of each
    n_tokens: list[int] = field(default_factory=list)
    n_in_text: list[int] = field(default_factory=list)
    merged: bool = False
    left_out: list[list[float]] = field(default_factory=list)  # by text and model: the share on markers left out
    divergences: Float[np.ndarray, "head head"] | None = None  # the sum over the texts so far
    last: tuple[AttentionMaps, ...] = ()  # of the latest text, in common units

    @classmethod
    def for_models(cls, n_models: int, measures: Sequence[str]) -> ComparisonAccumulator:
        """Begin with nothing measured; `measures` is empty for all. Raises InvalidOption for one that there is not."""
        asked = tuple(measures) or ("all",)
        return cls([Numbers() for _ in range(n_models)], asked, choose_measures(asked))

    def add(self, several: Sequence[AttentionMaps]) -> None:
        """One text through each of the models, brought to common units. Raises InvalidOption where it has none."""
        in_text = several[0].provenance.facts.tokens_in_text
        aligned = self._align(several)
        for given, maps, found in zip(several, aligned, self.numbers, strict=True):
            found.status = describe_status(given.provenance)
            found.layer_numbers = maps.layer_numbers
            found.n_tokens.append(_n_tokens(given))
            found.self_attention = given.self_attention
            for each in measure_maps(maps, self.asked):
                by_name = found.per_head if each.level == "head" else found.per_layer
                by_name.setdefault(each.name, []).append(each.values)
        for by_chance in measure_maps(make_uniform(aligned[0]), self.asked, "head"):
            self.uniform.setdefault(by_chance.name, []).append(float(by_chance.values.mean()))
        n_tokens = _n_tokens(aligned[0])
        self.texts.append(several[0].provenance.text_sha256)
        self.n_tokens.append(n_tokens)
        self.n_in_text.append(n_tokens if in_text is None else in_text)
        if sum(maps.n_layers * maps.n_heads for maps in aligned) <= MAX_HEADS:
            apart = measure_divergences_across(aligned)
            self.divergences = apart if self.divergences is None else self.divergences + apart
        self.last = aligned

    @property
    def shown(self) -> tuple[MeasureInfo, ...]:
        """The measures that these models have."""
        return tuple(
            MeasureInfo(measure.name, measure.unit, measure.level == "layer")
            for measure in self.measures
            if all(measure.name in (of.per_layer if measure.level == "layer" else of.per_head) for of in self.numbers)
        )

    @property
    def mean_divergences(self) -> Float[np.ndarray, "head head"] | None:
        """The mean divergence of each pair of heads over the texts; None of none."""
        return None if self.divergences is None else self.divergences / len(self.n_tokens)

    def _align(self, several: Sequence[AttentionMaps]) -> tuple[AttentionMaps, ...]:
        """Where models add different markers, these are left out first."""
        if len({_cuts(maps) for maps in several}) == 1:
            return tuple(several)
        try:
            return self._merge(several)
        except InvalidOption as error:
            marked = [any(maps.queries.special) for maps in several]
            try:
                if not any(marked):
                    raise
                bare = [without_markers(maps) for maps in several]
                joined = self._merge(bare)
            except InvalidOption as other:
                name = several[0].provenance.text_name
                raise InvalidOption(f"the models cut {name} differently: {other.problem}", hint=other.hint) from error
        self.left_out.append([0.0 if maps.sink is None else float(maps.sink.mean()) for maps in bare])
        return joined

    def _merge(self, several: Sequence[AttentionMaps]) -> tuple[AttentionMaps, ...]:
        if len({_cuts(maps) for maps in several}) == 1:
            return tuple(several)
        units = find_common_units([maps.queries for maps in several])
        self.merged = True
        return tuple(merge_tokens(maps, of_maps) for maps, of_maps in zip(several, units, strict=True))


def _n_tokens(maps: AttentionMaps) -> int:
    """Tokens of the text that is attended to."""
    return int(maps.real_queries.sum()) if maps.self_attention else len(maps.keys)


def _cuts(maps: AttentionMaps) -> tuple[tuple[tuple[tuple[int, int], ...], tuple[bool, ...]], ...]:
    """Where one tokenizer cuts a text, queries and keys; two that cut alike need no joining."""
    return tuple((tokens.offsets, tokens.special) for tokens in (maps.queries, maps.keys))
