"""From groups of calls to AttentionMaps: named, trimmed, and copied layer by layer."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from attnviz.display import format_count, quote_beginning
from attnviz.errors import InvalidRecord
from attnviz.models.capture.ids import Store
from attnviz.models.device import versions
from attnviz.models.recording.groups import Group
from attnviz.models.recording.labels import PADDING, AxisLabels, Names, label
from attnviz.records import AttentionMaps, Facts, Provenance, Setting
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import CAUSAL, EVERYWHERE, Factors

WORDS = {
    "recomputed": "recomputed, and held against the output of each call",
    "multiplied": "as the model itself multiplied them",
    "factored": "q, k and log-sum-exp as the kernel had them, some rows held against the output of each call",
}
FAST_PATH = "off: torch's own module ran by its parts, so that its output may differ in the last bits"


def records(groups: Sequence[Group], names: Names, about: Provenance, store: Store) -> Iterator[AttentionMaps]:
    """Yield a record of each row of each group.

    `about`: what the caller says. Without a name a model is called by the class of the outermost module, a text by its
    first words.

    Raises InvalidRecord where names or mask do not fit, or a row is no distribution.
    """
    for group, sides in label(groups, names, store):
        first = group.calls[0]
        steps = [("steps_joined", first.n_steps)] if first.n_steps > 1 else []
        apart = [("not_joined", first.apart)] if first.apart else []
        settings = *describe_origin(group), ("pass", group.number), ("group", group.name), *steps, *apart
        of_group = replace(about, model=about.model or first.root or "PyTorch code", facts=facts_of(group))
        rows = (replace(of_group, settings=(*settings, ("row", side.text))) for side in sides)
        yield from assemble(group, sides, [provenance_of(*each) for each in zip(rows, sides, strict=True)])


def assemble(
    group: Group, sides: Sequence[AxisLabels], provenances: Sequence[Provenance], value_norms: np.ndarray | None = None
) -> Iterator[AttentionMaps]:
    """Yield a record of each row, without padding. Each call is let go when it is copied."""
    layers, heads = group.layers, group.calls[0].heads
    if group.calls[0].factors is not None:
        for row, (side, provenance) in enumerate(zip(sides, provenances, strict=True)):
            factors = tuple(_trim_factors(group, layer, row, side) for layer in range(len(group.calls)))
            given = (side.queries, side.keys, provenance, None, layers)
            yield FactoredMaps(*given, value_norms=value_norms, head_numbers=heads, factors=factors)
        return
    spans = [(span(side.kept_queries), span(side.kept_keys)) for side in sides]
    attendable, sinks, weights = [], [], []
    for row, (queries, keys) in enumerate(spans):
        of_layers = [call.attendable[row][queries][:, keys] for call in group.calls]
        alike = all(np.array_equal(layer, of_layers[0]) for layer in of_layers[1:])
        attendable.append(np.array(of_layers[0]) if alike else np.stack(of_layers))
        sinks.append(np.stack([call.sink[row][:, queries] for call in group.calls]))
        weights.append(np.empty((*sinks[row].shape, of_layers[0].shape[1]), dtype=np.float32))
    for layer in range(len(group.calls)):
        call = group.calls.pop(0)
        for row, (queries, keys) in enumerate(spans):
            weights[row][layer] = call.weights[row][:, queries][:, :, keys]
    for of_row in zip(weights, sinks, attendable, sides, provenances, strict=True):
        yield record_of(*of_row, layer_numbers=layers, head_numbers=heads, value_norms=value_norms)


def _trim_factors(group: Group, layer: int, row: int, side: AxisLabels) -> Factors:
    """Leave padding out of a layer's factors. Raises InvalidRecord where it does not lie where a mask has it."""
    rows = group.calls[layer].factors
    assert rows is not None
    factors, fitting = rows.factors[row], rows.fitting[row]
    if not fitting[side.kept_queries].all():
        raise InvalidRecord(f"a query in {group.place} does not see what others see", hint=PADDING)
    if side.kept_queries.all() and side.kept_keys.all():
        return factors
    queries, keys = span(side.kept_queries), span(side.kept_keys)
    is_moved = not isinstance(keys, slice) or not np.array_equal(side.kept_queries, side.kept_keys)
    if is_moved and (factors.bias is not None or factors.window not in (EVERYWHERE, CAUSAL)):
        problem = f"padding changes distances in {group.place}, which its windows or its bias are of"
        raise InvalidRecord(problem, hint="Leave out factored.")
    real = factors.keys_mask[keys]
    return replace(
        factors,
        query=factors.query[:, queries],
        key=factors.key[:, keys],
        log_sum_exp=None if factors.log_sum_exp is None else factors.log_sum_exp[:, queries],
        attendable_keys=None if real.all() else real,
    )


def span(kept: Bool[np.ndarray, " position"]) -> slice | np.ndarray:
    """Return a slice, which copies nothing, unless there is padding in the middle."""
    places = np.flatnonzero(kept)
    in_a_row = len(places) > 0 and places[-1] - places[0] + 1 == len(places)
    return slice(int(places[0]), int(places[-1]) + 1) if in_a_row else places


def record_of(
    weights: np.ndarray,
    sink: np.ndarray,
    attendable: Bool[np.ndarray, "*layers query key"],
    side: AxisLabels,
    provenance: Provenance,
    **numbers: Any,
) -> AttentionMaps:
    """Make a record. `numbers`: of layers, heads, and the norms of values.

    Raises InvalidRecord where a row is no distribution, and says what padding may have to do with it.
    """
    nothing = ~attendable.any(axis=-1)
    if not sink.any() and nothing.any():
        query = int(np.argwhere(nothing)[0, -1])
        raise InvalidRecord(f"query {query}, {side.queries.pieces[query]!r}, may attend to no key", hint=PADDING)
    try:
        given = (weights, side.queries, side.keys, attendable, provenance, sink if sink.any() else None)
        return AttentionMaps(*given, grid=side.grid, **numbers)
    except InvalidRecord as error:
        if side.kept_keys.all():
            raise
        hint = "Some weight went to what was left out as padding: was the model given attention_mask?"
        raise InvalidRecord(error.problem, hint=hint) from error


def facts_of(group: Group) -> Facts:
    """Return what is known of a group of calls, as typed facts of its record."""
    n_layers, n_heads = group.n_layers_in_model, group.calls[0].n_heads_in_model
    return Facts(group=group.name, n_layers_in_model=n_layers, n_heads_in_model=n_heads, guess=group.guess)


def describe_origin(group: Group) -> tuple[tuple[str, Setting], ...]:
    """Say how the weights of a group came to be known, and by how much they miss what the model made of them."""
    ways = dict.fromkeys(WORDS[call.how] for call in group.calls)
    fast = (("fast_path", FAST_PATH),) if any(call.lacks_fast_path for call in group.calls) else ()
    return (("weights", "; ".join(ways)), ("largest_error", max(call.error for call in group.calls)), *fast)


def provenance_of(about: Provenance, side: AxisLabels) -> Provenance:
    """Say where a record comes from, as far as `about` does not.

    What is uncertain, and what is in no record, stands among the settings, too.
    """
    guess = " ".join(filter(None, (about.facts.guess, side.guess)))
    facts = replace(about.facts, guess=guess, window=side.window, n_windows=side.n_windows)
    settings = (*about.settings, ("guess", guess)) if guess else about.settings
    sides = (side.queries,) if side.queries is side.keys else (side.queries, side.keys)
    text = "\n".join(" ".join(each.pieces) for each in sides)
    if not (name := about.text_name):  # what is attended to: its first words, or its size where it has no names
        if side.window is not None:
            name = f"window {side.window + 1} of {side.n_windows}"
        elif side.grid is not None:
            name = f"{side.grid.n_rows} × {side.grid.n_columns} patches"
        elif side.keys.pieces == tuple(map(str, range(len(side.keys)))):
            name = format_count(len(side.keys), "tokens")
        else:
            name = quote_beginning(" ".join(side.keys.pieces))
    sha256 = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return replace(about, text_sha256=sha256, text_name=name, settings=settings, versions=versions(), facts=facts)
