"""The steps of one head as a picture. Every number is the trace's; what the tables leave out is left out here, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attnviz.commands.explain.steps import Steps
from attnviz.report import Calculation, CalculationStep, EdgeStrip
from attnviz.views.tokens import name_token, quote_token
from attnviz.views.translate import say

MAX_ROWS = 24  # keys that have room on a slide
MAX_COMPONENTS = 128  # of a vector, likewise


def draw_steps(steps: Steps, name: str, title: str, made: Sequence[str]) -> Calculation:
    """Draw the query above the keys, scores, weights, values, and their sum. `made` says how q, k and v are."""
    steps = replace(steps, top_k=min(steps.top_k, MAX_ROWS))
    tokens, query = steps.trace.tokens, steps.trace.query
    rows = [name_token(tokens, key) for key in steps.listed]
    if steps.others:
        rows.append(say(f"… {len(steps.others)} other keys", steps.language))
    return Calculation(
        name=name,
        title=title,
        rows=tuple(rows),
        steps=tuple(_list_steps(steps, *made)),
        asked=steps.listed.index(query) if query in steps.listed else None,
        has_rest=bool(steps.others),
        notes=tuple(_list_notes(steps)),
    )


def _list_steps(steps: Steps, of_query: str, of_keys: str, of_values: str) -> Iterator[CalculationStep]:
    """List what stands side by side."""
    head, biased = steps.head, steps.head.position is not None
    query = EdgeStrip(f"q of {quote_token(steps.trace.tokens, steps.trace.query)}", head.query[:MAX_COMPONENTS])
    output = EdgeStrip("step 8: their sum, o = Σ a · v", head.output[:MAX_COMPONENTS])
    of_scaled = f"s = q · k / √{head.d_head}" + " + b" * biased
    yield CalculationStep(
        label="step 2",
        title="query and keys",
        formula=(of_query, of_keys),
        look="strip",
        values=_choose(steps, head.keys),
        most=_find_most(head.query, head.keys),
        above=query,
    )
    yield CalculationStep("step 3", "how well they fit", ("q · k",), "number", _choose(steps, head.scores), "→")
    if head.position is not None:
        yield CalculationStep("step 4", "for the distance", ("b",), "number", _choose(steps, head.position))
    yield CalculationStep(
        "step 4", "scaled by the width", (of_scaled,), "number", _choose(steps, steps.after_mask), "→"
    )
    yield CalculationStep(
        label="step 6",
        title="weights: softmax",
        formula=("a = exp(s) / Σ exp(s)",),
        look="bar",
        values=_choose(steps, head.weights, rest=True),
        sign="→",
        most=_find_most(head.weights),
    )
    yield CalculationStep(
        label="step 2",
        title="values",
        formula=(of_values,),
        look="strip",
        values=_choose(steps, head.values),
        sign="×",
        most=_find_most(head.values),
    )
    yield CalculationStep(
        label="step 7",
        title="weighted values",
        formula=("a · v",),
        look="strip",
        values=_choose(steps, head.weighted, rest=True),
        sign="=",
        most=_find_most(head.weighted, head.output),
        below=output,
    )


def _choose(steps: Steps, of_keys: np.ndarray, rest: bool = False) -> np.ndarray:
    """Return [row component] of the keys that are listed, then the sum over the others where that means something."""
    values = of_keys.reshape(len(of_keys), -1)[:, :MAX_COMPONENTS]
    if not steps.others:
        return values[steps.listed]
    last = steps.sum_others(values) if rest else np.full(values.shape[1], np.nan)
    return np.vstack([values[steps.listed], last])


def _find_most(*vectors: np.ndarray) -> float:
    """Return the largest number, up or down; 1 where all are 0."""
    return max(float(np.abs(each).max()) for each in vectors) or 1.0


def _list_notes(steps: Steps) -> Iterator[str]:
    """Say what a strip is, and what is left out."""
    d_head, n_keys = steps.head.d_head, len(steps.trace.tokens)
    components = f"the {d_head} components" if d_head > 1 else "the one component"
    if d_head > MAX_COMPONENTS:
        components = f"the first {MAX_COMPONENTS} of {d_head} components"
    yield f"each strip: {components} of a vector, blue below 0 and red above"
    if not steps.trace.attendable[steps.listed].all():
        yield "−∞: this query may not attend to the key (step 5)"
    if steps.others:
        largest = (
            f"the {len(steps.listed)} with the largest weights"
            if len(steps.listed) > 1
            else "that of the largest weight"
        )
        yield f"of {n_keys} keys, {largest} have a row each, and the others one together"
