"""One query's way through a layer of a model as a report: scores, weights and the check. No renderers, no models.

Its picture holds the steps of one head. Every number is the trace's, and long texts and vectors are cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from attnviz.display import escape_for_display
from attnviz.records.attention_trace import AttentionTrace, Head, VerifiedTrace
from attnviz.records.head_names import write_share
from attnviz.report import Block, Calculation, CalculationStep, EdgeStrip, Note, Report, name_map
from attnviz.specs import FigureOptions
from attnviz.views import captions
from attnviz.views.data import describe_provenance
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
        notes.append("−∞: this query may not attend to the key")
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
    output = EdgeStrip("their sum, o = Σ a · v", head.output[:MAX_COMPONENTS])
    weights = ("a = exp(s) / Σ exp(s)",)
    of_scaled = f"s = q · k / √{head.d_head}" + " + b" * (head.position is not None)
    most = find_most(head.query, head.keys)
    yield CalculationStep("query and keys", (of_query, of_keys), "strip", choose(head.keys), most=most, above=query)
    yield CalculationStep("how well they fit", ("q · k",), "number", choose(head.scores), "→")
    if head.position is not None:
        yield CalculationStep("for the distance", ("b",), "number", choose(head.position))
    after_mask = np.where(trace.attendable, head.scaled, -np.inf)
    yield CalculationStep("scaled by the width", (of_scaled,), "number", choose(after_mask), "→")
    of_weights = choose(head.weights, is_summed=True)
    yield CalculationStep("weights: softmax", weights, "bar", of_weights, "→", find_most(head.weights))
    yield CalculationStep("values", (of_values,), "strip", choose(head.values), "×", find_most(head.values))
    weighted, most = choose(head.weighted, is_summed=True), find_most(head.weighted, head.output)
    yield CalculationStep("weighted values", ("a · v",), "strip", weighted, "=", most, below=output)


def explain_report(found: VerifiedTrace, head: int, figure: FigureOptions) -> Report:
    """Show how a head weighs the keys, a picture of all its steps, and the check of the layer's output."""
    trace = found.trace
    picture, weights = draw_steps(found, head, figure.lang), trace.heads[head].weights
    key = int(weights.argmax())
    most = f"{name_token(trace.tokens, trace.query)} looks most at {name_token(trace.tokens, key)}"
    source = "x and the model's matrices" if found.projects else "x"
    blocks: list[Block] = [
        Note(f"{most}: {write_share(float(weights[key]))}.", leads=True),
        picture.tabulate(),
        picture,
        Note(
            f"All heads and the layer's output were computed again from {source}, more exactly than the model does. "
            f"From its own numbers the output differs by at most {found.error:.2g} ({found.allowed:.2g} is allowed), "
            f"weights by {found.weights_error:.2g}."
        ),
        *captions.describe_misuse(found.provenance, len(trace.tokens)),
        *captions.describe_unknown(trace.tokens, "tokens"),
    ]
    tokens, provenance = trace.tokens, found.provenance
    named = (provenance.model, captions.describe_origin(provenance))
    model, *origin = (escape_for_display(name, captions.MAX_NAME_LENGTH) for name in named)
    said = [*origin, *captions.describe_text(provenance, tokens), f"layer {found.layer} of {found.n_layers}"]
    said += ["causal"] if provenance.facts.causal else []
    title = f"Attention from token {name_token(tokens, trace.query)} in {model}, step by step"
    return Report(
        title=captions.choose_title(figure.title, title),
        subtitle=" · ".join(said),
        blocks=tuple(blocks),
        facts=captions.list_facts(provenance),
        data=_data(title, found),
    )


def _data(title: str, found: VerifiedTrace) -> Mapping[str, object]:
    """Return every number of every head, in float64."""
    return {
        "title": title,
        **describe_provenance(found.provenance),
        "layer": found.layer,
        "normed": found.normed,
        **asdict(found.trace),
        "concatenated": found.trace.concatenated,
        "output": found.trace.output,
        "model_output": found.model_output,
        "largest_error": found.error,
        "allowed_error": found.allowed,
        "largest_error_of_weights": found.weights_error,
    }
