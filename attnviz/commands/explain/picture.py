"""The steps of one head for one query as a picture. Every number is the trace's, and long texts and vectors are cut."""

from collections.abc import Iterator, Sequence

import numpy as np

from attnviz.records.attention_trace import AttentionTrace, Head, VerifiedTrace
from attnviz.report import Calculation, CalculationStep, EdgeStrip, name_map
from attnviz.views.tables import find_largest
from attnviz.views.tokens import name_token, quote_token
from attnviz.words import Language, say

MAX_ROWS = 24  # keys that have room on a slide
MAX_COMPONENTS = 128  # of a vector, likewise


def draw_steps(found: VerifiedTrace, number: int, language: Language = "en") -> Calculation:
    """Draw one head: the query above the keys, scores, weights, values, and their sum.

    Of long texts the keys of the largest weights have rows of their own, and the others one together.
    """
    trace, head = found.trace, found.trace.heads[number]
    made = [f"{name} = x" + f" W_{name.upper()} + b_{name.upper()}" * found.projects for name in "qkv"]
    listed = [*range(len(trace.tokens))]
    if len(listed) > MAX_ROWS + 1:  # a row that stands for one key only would save nothing
        listed = sorted(find_largest(head.weights, np.flatnonzero(trace.attendable), MAX_ROWS))
    others = sorted({*range(len(trace.tokens))} - {*listed})
    rows = [name_token(trace.tokens, key) for key in listed]
    components = f"the {head.d_head} components" if head.d_head > 1 else "the one component"
    if head.d_head > MAX_COMPONENTS:
        components = f"the first {MAX_COMPONENTS} of {head.d_head} components"
    notes = [f"each strip: {components} of a vector, blue below 0 and red above"]
    if not trace.attendable[listed].all():
        notes.append("−∞: this query may not attend to the key (step 5)")
    if others:
        rows.append(say(f"… {len(others)} other keys", language))
        notes.append(
            f"of {len(trace.tokens)} keys, the {MAX_ROWS} with the largest weights have a row each, and the others one "
            "together"
        )
    return Calculation(
        name=f"steps-{name_map(found.layer, number)}",
        title=f"layer {found.layer}, head {number}",
        rows=tuple(rows),
        steps=tuple(_list_steps(trace, head, made, (listed, others))),
        asked=listed.index(trace.query) if trace.query in listed else None,
        has_rest=bool(others),
        notes=tuple(notes),
    )


def _list_steps(
    trace: AttentionTrace, head: Head, made: Sequence[str], keys: tuple[Sequence[int], Sequence[int]]
) -> Iterator[CalculationStep]:
    """Yield what stands side by side: [row component] of the keys listed, then of the others together for a sum."""
    (of_query, of_keys, of_values), (listed, others) = made, keys

    def choose(numbers: np.ndarray, is_summed: bool = False) -> np.ndarray:
        values = numbers.reshape(len(numbers), -1)[:, :MAX_COMPONENTS]
        rest = values[others].sum(axis=0) if is_summed else np.full(values.shape[1], np.nan)
        return np.vstack([values[listed], rest]) if others else values[listed]

    def find_most(*vectors: np.ndarray) -> float:
        return max(float(np.abs(each).max()) for each in vectors) or 1.0

    query = EdgeStrip(f"q of {quote_token(trace.tokens, trace.query)}", head.query[:MAX_COMPONENTS])
    output = EdgeStrip("step 8: their sum, o = Σ a · v", head.output[:MAX_COMPONENTS])
    of_scaled = f"s = q · k / √{head.d_head}" + " + b" * (head.position is not None)
    weights = ("a = exp(s) / Σ exp(s)",)
    most = find_most(head.query, head.keys)
    yield CalculationStep(
        "step 2", "query and keys", (of_query, of_keys), "strip", choose(head.keys), most=most, above=query
    )
    yield CalculationStep("step 3", "how well they fit", ("q · k",), "number", choose(head.scores), "→")
    if head.position is not None:
        yield CalculationStep("step 4", "for the distance", ("b",), "number", choose(head.position))
    after_mask = np.where(trace.attendable, head.scaled, -np.inf)
    yield CalculationStep("step 4", "scaled by the width", (of_scaled,), "number", choose(after_mask), "→")
    of_weights = choose(head.weights, is_summed=True)
    yield CalculationStep("step 6", "weights: softmax", weights, "bar", of_weights, "→", find_most(head.weights))
    yield CalculationStep("step 2", "values", (of_values,), "strip", choose(head.values), "×", find_most(head.values))
    weighted, most = choose(head.weighted, is_summed=True), find_most(head.weighted, head.output)
    yield CalculationStep("step 7", "weighted values", ("a · v",), "strip", weighted, "=", most, below=output)
