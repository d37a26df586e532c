"""One query's way through a layer of a model, step by step, as a report. Knows records; no renderers, no models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from attnviz.commands.explain.picture import draw_steps
from attnviz.commands.explain.steps import (
    DIGITS,
    Steps,
    component_columns,
    component_rows,
    count_shown,
    drop_zero_sign,
)
from attnviz.display import escape_for_display
from attnviz.errors import InvalidSelection
from attnviz.records.attention_trace import AttentionTrace, VerifiedTrace
from attnviz.report import Block, Column, Note, Report, Row, Section, Table, name_map
from attnviz.views import captions
from attnviz.views.data import describe_provenance, describe_tokens
from attnviz.views.tokens import name_token


def explain_report(found: VerifiedTrace, heads: Sequence[int], top_k: int, own_title: str | None = None) -> Report:
    """Show the way from the states to the output: the chosen heads key by key, then all heads together and the check.

    Raises InvalidSelection for a head that is not there.
    """
    trace = found.trace
    for head in heads:
        if not 0 <= head < len(trace.heads):
            raise InvalidSelection(f"no head {head}", hint=f"This model has heads 0 to {len(trace.heads) - 1}.")
    blocks: list[Block] = [*_states(found)]
    for place, head in enumerate(heads):
        blocks += _head(found, head, top_k, explains=place == 0)
    if (n_others := len(trace.heads) - len(heads)) == 1:
        blocks.append(Note("The other head does the same with numbers of its own; --head shows it."))
    elif n_others:
        blocks.append(Note(f"The other {n_others} heads do the same with numbers of their own; --head shows them."))
    blocks += [*_concatenation(trace), *_projection(trace), *_show_check(found)]
    blocks += captions.describe_misuse(found.provenance, len(trace.tokens))
    blocks += captions.describe_unknown(trace.tokens, "tokens")
    blocks.append(Note("What a layer does with the output of its attention, and the layers after it, are not shown."))
    tokens, provenance = trace.tokens, found.provenance
    named = (provenance.model, captions.describe_origin(provenance), provenance.text_name)
    model, *origin = (escape_for_display(name, captions.MAX_NAME_LENGTH) for name in named)
    extent = captions.describe_extent(provenance, len(tokens) - sum(tokens.special))
    said = [*origin, extent, f"layer {found.layer} of {found.n_layers}"]
    said += ["causal"] if provenance.facts.causal else []
    title = f"Attention from token {_name_query(trace)} in {model}, step by step"
    return Report(
        title=captions.choose_title(own_title, title),
        subtitle=" · ".join(said),
        blocks=tuple(blocks),
        facts=captions.list_facts(found.provenance),
        data=_data(title, found),
    )


def _concatenation(trace: AttentionTrace) -> Iterator[Block]:
    """Show step 9: the heads side by side."""
    n_heads, d_head = len(trace.heads), trace.heads[0].d_head
    yield Section("Step 9: concatenation")
    if n_heads == 1:
        yield Note("With one head there is nothing to put side by side: c = o.")
        return
    yield Note(f"The {n_heads} outputs of width {d_head} stand side by side: c has {n_heads} × {d_head} components.")
    rows = component_rows(np.stack([head.output for head in trace.heads]))
    yield Table(
        "concatenation",
        "",
        "facts",
        (Column("head"), Column("components of c"), *component_columns("o", d_head)),
        tuple((head, _format_span(head, d_head), *row) for head, row in enumerate(rows)),
    )


def _states(found: VerifiedTrace) -> Iterator[Block]:
    trace, query = found.trace, found.trace.query
    d_model = trace.states.shape[1]
    n_tokens = len(trace.tokens)
    each = f"each of {n_tokens} tokens" if n_tokens > 1 else "the one token"
    made = "the embedding of the word"
    if found.projects and found.layer:
        made = f"what layer {found.layer - 1} gives"
    elif found.projects and not dict(found.provenance.settings).get("max_distance"):
        made = "the embeddings of the word and of its position, summed"
    made += ", after a layer norm" * (found.projects and found.normed)
    yield Section("Step 1: what attention is given")
    yield Note(
        f"One vector of d_model = {d_model} numbers for {each}: {made}. "
        f"The query is token {_name_query(trace)}. Tokens and components are counted from 0: x_{query}[0] is the "
        "first component of its vector."
    )
    yield Table(
        "state",
        "",
        "facts",
        (Column("token"), *component_columns("x", d_model)),
        ((_name_query(trace), *component_rows(trace.states[[query]])[0]),),
    )


def _head(found: VerifiedTrace, head: int, top_k: int, explains: bool) -> Iterator[Block]:
    trace, n_heads = found.trace, len(found.trace.heads)
    yield Section(f"Head {head}, one of {n_heads}" if n_heads > 1 else "The one head")
    yield Section("Step 2: query, keys and values", 2)
    of, d_model = trace.heads[head], trace.states.shape[1]
    if found.projects:
        columns = f" This head has columns {_format_span(head, of.d_head)} of the layer's matrices." * (n_heads > 1)
        drawn = "learned" if found.provenance.trained else "drawn at random, as the model is untrained"
        yield Note(
            f"q = x W_Q + b_Q, k = x W_K + b_K, v = x W_V + b_V: each vector is multiplied by matrices of {d_model} × "
            f"{of.d_head} that were {drawn}, and a bias is added.{columns}"
        )
    else:
        yield Note("This model has no projections: queries, keys and values are the embeddings themselves.")
    steps = Steps(trace, of, f"head-{head}", top_k, explains)
    yield from steps.show_steps()
    made = [f"{name} = x" + f" W_{name.upper()} + b_{name.upper()}" * found.projects for name in "qkv"]
    yield draw_steps(steps, f"steps-{name_map(found.layer, head)}", f"layer {found.layer}, head {head}", made)


def _projection(trace: AttentionTrace) -> Iterator[Block]:
    yield Section("Step 10: output projection")
    if trace.projection is None:
        yield Note("This model has none: c is the output.")
        return
    n_inputs, n_outputs = trace.projection.matrix.shape
    yield Note(f"y = c W_O + b_O: one more matrix, of {n_inputs} × {n_outputs}, mixes what the heads found.")
    summed = {"c W_O": trace.projected, "b_O": trace.projection.bias, "their sum": trace.output}
    yield _components("projection", {name: values.tolist() for name, values in summed.items()})


def _show_check(found: VerifiedTrace) -> Iterator[Block]:
    """Show what was worked out beside what the model gave."""
    trace = found.trace
    source = "x and the model's matrices" if found.projects else "x"
    yield Section("Check: does the model say the same?")
    outputs = {"worked out here": trace.output, "the model's": found.model_output}
    yield _components("check", {name: [*map(drop_zero_sign, values.tolist())] for name, values in outputs.items()})
    yield Note(
        f"Yes. All steps were computed again in 64 bits from {source}. Over all {len(trace.output)} "
        f"components of y the largest difference from the model's own output, which it computes in 32 bits, is "
        f"{found.error:.2g} ({found.allowed:.2g} is allowed). Of the weights of all heads it is "
        f"{found.weights_error:.2g}."
    )


def _components(name: str, of_y: Mapping[str, Sequence[float]]) -> Table:
    """List each component of y that is written out in a row, with a column for each way to it."""
    rows: list[Row] = [(f"y[{i}]", *values) for i, values in enumerate(zip(*of_y.values(), strict=True))]
    columns = (Column("component"), *(Column(header, digits=DIGITS) for header in of_y))
    shown = count_shown(len(rows))
    return Table(name, "", "facts", columns, (*rows[:shown], *([("…",) * len(columns)] if shown < len(rows) else ())))


def _name_query(trace: AttentionTrace) -> str:
    return name_token(trace.tokens, trace.query)


def _format_span(head: int, d_head: int) -> str:
    """Write which components of all heads together are those of one."""
    first, last = head * d_head, (head + 1) * d_head - 1
    return f"{first} to {last}" if d_head > 1 else str(first)


def _data(title: str, found: VerifiedTrace) -> Mapping[str, object]:
    """Return every number of every head, in float64."""
    trace, provenance = found.trace, found.provenance
    projection = trace.projection
    return {
        "title": title,
        **describe_provenance(provenance),
        "layer": found.layer,
        "normed": found.normed,
        "tokens": describe_tokens(trace.tokens),
        "query": trace.query,
        "attendable": trace.attendable,
        "states": trace.states,
        "heads": [asdict(head) for head in trace.heads],
        "concatenated": trace.concatenated,
        "projection": projection and {"matrix": projection.matrix, "bias": projection.bias},
        "output": trace.output,
        "model_output": found.model_output,
        "largest_error": found.error,
        "allowed_error": found.allowed,
        "largest_error_of_weights": found.weights_error,
    }
