"""One text through several models: brought to common units, and measured as rows of the table of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnviz.commands.compare.comparison import KEYS, MAX_HEADS
from attnviz.errors import InvalidOption
from attnviz.measures import measure_heads, measure_maps
from attnviz.measures.concentration import make_uniform
from attnviz.measures.divergence import Divergences, measure_divergences_across
from attnviz.measures.merging import find_common_units, merge_tokens
from attnviz.measures.rows import check_self_attention
from attnviz.records import AttentionMaps, Tokens

if TYPE_CHECKING:  # Arrow takes a fifth of a second, and starts a thread that a fork would not have
    from attnviz.table.numbers import Numbers


class Aligned(NamedTuple):
    """Maps of one text under several models that have the same tokens."""

    maps: tuple[AttentionMaps, ...]
    merged: bool = False  # whether tokens were joined
    left_out: tuple[float, ...] = ()  # of each model, the share of attention to markers that were left out


def align(several: Sequence[AttentionMaps]) -> Aligned:
    """Bring maps to common units. Where models add different markers, these are left out first.

    Raises InvalidOption where there are no common units.
    """
    try:
        return _merge(several)
    except InvalidOption:
        try:
            bare = [without_markers(maps) for maps in several]
            left_out = tuple(0.0 if maps.sink is None else float(maps.sink.mean()) for maps in bare)
            return _merge(bare)._replace(left_out=left_out)
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


def _merge(several: Sequence[AttentionMaps]) -> Aligned:
    cuts = {tuple((tokens.offsets, tokens.special) for tokens in (maps.queries, maps.keys)) for maps in several}
    if len(cuts) == 1:  # two tokenizers that cut alike need no joining
        return Aligned(tuple(several))
    units = find_common_units([maps.queries for maps in several])
    return Aligned(tuple(merge_tokens(maps, of) for maps, of in zip(several, units, strict=True)), merged=True)


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

        aligned = align(several)
        self.last, self.merged = aligned.maps, self.merged or aligned.merged
        # The row of attention that favours nothing: how large the text is, and its measures.
        n_tokens, in_text = _count_tokens(self.last[0]), several[0].provenance.facts.tokens_in_text
        by_chance = measure_maps(make_uniform(self.last[0]), self.measures, "head")
        means: dict[str, object] = {each.name: float(each.values.mean()) for each in by_chance}
        rows = [{"tokens": n_tokens, "in_text": n_tokens if in_text is None else in_text, **means}]
        left_out = aligned.left_out or (None,) * len(several)
        for name, given, is_right, share in zip(self.models, several, right, left_out, strict=True):
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
