"""From groups of calls to AttentionMaps: named, trimmed, and copied layer by layer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from attnviz.display import format_count, quote_beginning
from attnviz.errors import InvalidRecord
from attnviz.models.capture.ids import Family
from attnviz.models.device import versions
from attnviz.models.recording.groups import Group
from attnviz.models.recording.names import PADDING, Names, Pieces
from attnviz.models.recording.plan import AxisLabels, plan_axes
from attnviz.records import AttentionMaps, Facts, Provenance, Setting, Tokens
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import CAUSAL, EVERYWHERE, Factors

NO_MODULE = "PyTorch code"
WORDS = {
    "recomputed": "recomputed, and held against the output of each call",
    "multiplied": "as the model itself multiplied them",
    "factored": "q, k and log-sum-exp as the kernel had them, some rows held against the output of each call",
}


@dataclass(frozen=True)
class About:
    """What the caller says of the model and the text."""

    model: str | None  # None: the class of the outermost module
    revision: str
    trained: bool | None
    text_name: str | None  # None: its first words
    not_seen: str = ""  # what attended in the block and is in no record, in sentences


def records(groups: Sequence[Group], names: Names, about: About, families: Sequence[Family]) -> Iterator[AttentionMaps]:
    """One of each row of each group.

    Raises InvalidRecord where names or mask do not fit, or a row is no distribution.
    """
    for group, sides in plan_axes(groups, names, families):
        of_group = about if about.model is not None else replace(about, model=group.calls[0].root or NO_MODULE)
        settings, facts = _settings(group), facts_of(group)
        numbers, n_windows = (group.layers[0], group.calls[0].heads), group.n_windows
        if group.calls[0].factors is not None:
            for row, side in enumerate(sides):
                provenance = provenance_of(of_group, side, (*settings, ("row", side.text)), facts)
                yield assemble_factored(group, row, side, provenance)
            continue
        attendable = [attendable_of(group, row, side) for row, side in enumerate(sides)]
        weights, sinks = assemble_rows(group, sides)
        for row, side in enumerate(sides):
            if names.keys is not None and side.keys in names.keys:
                side = side._replace(grid=names.grid)
            is_window = side.window is not None
            of_row = replace(facts, window=side.window, n_windows=n_windows) if is_window else facts
            yield record_of(
                weights[row],
                None if sinks is None else sinks[row],
                attendable[row],
                side,
                provenance_of(of_group, side, (*settings, ("row", side.text)), of_row),
                numbers,
            )


def assemble_factored(group: Group, row: int, side: AxisLabels, provenance: Provenance) -> FactoredMaps:
    """Of one row. Raises InvalidRecord where a row is no distribution, or padding does not lie where a mask has it."""
    queries = tokens_of(side.queries)
    keys = queries if side.same else tokens_of(side.keys)
    factors = factors_of(group, row, side)
    layers, heads = group.layers[0], group.calls[0].heads
    return FactoredMaps(queries, keys, provenance, None, layers, head_numbers=heads, factors=factors)


def factors_of(group: Group, row: int, side: AxisLabels) -> tuple[Factors, ...]:
    """Of each layer, without padding."""
    found = []
    for call in group.calls:
        assert call.factors is not None
        factors, fitting = call.factors.factors[row], call.factors.fitting[row]
        if fitting is not None and not fitting[side.kept_queries].all():
            raise InvalidRecord(f"a query in {group.place} does not see what others see", hint=PADDING)
        found.append(_without_padding(factors, side, group.place))
    return tuple(found)


def _without_padding(factors: Factors, side: AxisLabels, place: str) -> Factors:
    if side.kept_queries.all() and side.kept_keys.all():
        return factors
    queries, keys = span(side.kept_queries), span(side.kept_keys)
    apart = not isinstance(keys, slice)
    if apart and factors.window not in (EVERYWHERE, CAUSAL):
        raise InvalidRecord(f"padding in the middle of a text is in the windows of {place}", hint="Leave out factored.")
    if factors.bias is not None and (apart or queries != keys):
        raise InvalidRecord(f"padding changes distances in the bias of {place}", hint="Leave out factored.")
    real = factors.keys_mask[keys]
    return replace(
        factors,
        query=factors.query[:, queries],
        key=factors.key[:, keys],
        log_sum_exp=factors.sums[:, queries],
        attendable_keys=None if real.all() else real,
    )


def assemble_rows(group: Group, sides: Sequence[AxisLabels]) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """The weights and sinks of each row. Each call is let go when it is copied."""
    n_layers, n_heads = len(group.calls), group.calls[0].shape[1]
    shapes = [(n_layers, n_heads, len(side.queries), len(side.keys)) for side in sides]
    weights = [np.empty(shape, dtype=np.float32) for shape in shapes]
    has_sink = any(call.sink is not None for call in group.calls)
    sinks = [np.zeros(shape[:3], dtype=np.float32) for shape in shapes] if has_sink else None
    spans = [(span(side.kept_queries), span(side.kept_keys)) for side in sides]
    for layer in range(n_layers):
        call = group.calls.pop(0)
        for row, (queries, keys) in enumerate(spans):
            weights[row][layer] = call.weights[row][:, queries][:, :, keys]
            if sinks is not None and call.sink is not None:
                sinks[row][layer] = call.sink[row][:, queries]
    return weights, sinks


def span(kept: Bool[np.ndarray, " position"]) -> slice | np.ndarray:
    """Return a slice, which copies nothing, unless there is padding in the middle."""
    places = np.flatnonzero(kept)
    in_a_row = len(places) > 0 and places[-1] - places[0] + 1 == len(places)
    return slice(int(places[0]), int(places[-1]) + 1) if in_a_row else places


def attendable_of(group: Group, row: int, side: AxisLabels) -> Bool[np.ndarray, "*layers query key"]:
    """Of all layers at once, where they are alike."""
    queries, keys = span(side.kept_queries), span(side.kept_keys)
    layers = [call.attendable[row][queries][:, keys] for call in group.calls]
    alike = all(np.array_equal(layer, layers[0]) for layer in layers[1:])
    return np.array(layers[0]) if alike else np.stack(layers)


def record_of(
    weights: np.ndarray,
    sink: np.ndarray | None,
    attendable: Bool[np.ndarray, "*layers query key"],
    side: AxisLabels,
    provenance: Provenance,
    numbers: tuple[tuple[int, ...], tuple[int, ...]],
) -> AttentionMaps:
    """`numbers` are those of layers and heads.

    Raises InvalidRecord where a row is no distribution, and says what padding may have to do with it.
    """
    queries = tokens_of(side.queries)
    keys = queries if side.same else tokens_of(side.keys)
    nothing = ~attendable.any(axis=-1)
    if sink is None and nothing.any():
        query = int(np.argwhere(nothing)[0, -1])
        raise InvalidRecord(f"query {query}, {side.queries[query]!r}, may attend to no key", hint=PADDING)
    try:
        given = (weights, queries, keys, attendable, provenance, sink, numbers[0], side.grid)
        return AttentionMaps(*given, head_numbers=numbers[1])
    except InvalidRecord as error:
        if side.kept_keys.all():
            raise
        hint = "Some weight went to what was left out as padding: was the model given attention_mask?"
        raise InvalidRecord(error.problem, hint=hint) from error


def tokens_of(pieces: Pieces) -> Tokens:
    """As if the text were the pieces with one space between them."""
    ends = np.cumsum([len(piece) + 1 for piece in pieces]) - 1
    offsets = tuple((int(end) - len(piece), int(end)) for piece, end in zip(pieces, ends, strict=True))
    return Tokens(pieces, offsets, (False,) * len(pieces))


def _settings(group: Group) -> tuple[tuple[str, Setting], ...]:
    steps = [("steps_joined", group.n_steps)] if group.n_steps > 1 else []
    apart = [("not_joined", why)] if (why := group.calls[0].apart) else []
    return (*describe_origin(group), ("pass", group.number), ("group", group.name), *steps, *apart, *layers_seen(group))


def layers_seen(group: Group) -> Iterator[tuple[str, Setting]]:
    """Which layers of the model a group has, unless it has all."""
    numbers, n_layers = group.layers
    if numbers != tuple(range(n_layers or len(numbers))):
        yield "layers_in_model", ",".join(map(str, numbers))


def facts_of(group: Group) -> Facts:
    """What is known of a group of calls, as typed facts of its record."""
    return Facts(
        group=group.name,
        n_layers_in_model=group.layers[1],
        n_heads_in_model=group.calls[0].n_heads_in_model,
        guess=group.guess,
    )


def describe_origin(group: Group) -> tuple[tuple[str, Setting], ...]:
    """How the weights of a group came to be known, and by how much they miss what the model made of them."""
    ways = dict.fromkeys(WORDS[call.how] for call in group.calls)
    return (("weights", "; ".join(ways)), ("largest_error", max(call.error for call in group.calls)))


def _name_text(side: AxisLabels, facts: Facts) -> str:
    """Name what is attended to by its first words, or by its size where nothing in it has a name."""
    if facts.window is not None:
        return f"window {facts.window + 1} of {facts.n_windows}"
    if side.grid is not None:
        return f"{side.grid.n_rows} × {side.grid.n_columns} patches"
    if side.keys == tuple(map(str, range(len(side.keys)))):
        return format_count(len(side.keys), "tokens")
    return quote_beginning(" ".join(side.keys))


def provenance_of(
    about: About, side: AxisLabels, settings: tuple[tuple[str, Setting], ...], facts: Facts
) -> Provenance:
    """Where a record comes from; what is uncertain, and what is in no record, stands among the settings, too."""
    facts = replace(facts, guess=" ".join(filter(None, (facts.guess, side.guess, about.not_seen))))
    text = " ".join(side.queries) if side.same else " ".join(side.queries) + "\n" + " ".join(side.keys)
    return Provenance(
        model=about.model or "",
        revision=about.revision,
        trained=about.trained,
        text_sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        text_name=_name_text(side, facts) if about.text_name is None else about.text_name,
        settings=(*settings, *([("guess", facts.guess)] if facts.guess else [])),
        versions=versions(),
        facts=facts,
    )
