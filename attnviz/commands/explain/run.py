"""`attnviz explain`: the arithmetic of one query, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from attnviz.commands.explain.spec import ExplainSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.loading import find_model
from attnviz.models.protocols import Traceable
from attnviz.options import changed_values
from attnviz.running import Events, Result
from attnviz.selection import numbers, position
from attnviz.specs import PrintOptions
from attnviz.text import Document, typed

OF_EXAMPLE = {"example", "lang", "top_k", *(field.name for field in fields(PrintOptions))}


def explain(spec: ExplainSpec) -> Events:
    """Work out one query of one text, or the example. What can be refused without reading a model is refused first.

    Raises ExecutionError where the arithmetic does not give what the model gives.
    """
    inputs = explain_inputs(spec)
    return iter((_example(spec) if spec.example else _explain(spec, inputs),))


def explain_inputs(spec: ExplainSpec) -> Inputs:
    """One model and one text; nothing for the example. Raises InvalidOption, InvalidModel or InvalidSource."""
    _check(spec)
    if spec.example:
        return Inputs()
    reference = find_model(spec.model)
    reference.check(Traceable)
    if reference.n_layers is not None and reference.n_heads is not None:
        numbers((str(spec.layer),), reference.n_layers, "layer")
        numbers(spec.head, reference.n_heads, "head")
    inputs = read_inputs([reference], spec.text, every=spec.text.inline)
    if len(inputs.documents) != 1:
        found = f"{len(inputs.documents)} texts, where one is explained at a time"
        raise InvalidOption(found, hint="--index chooses one.")
    return inputs


def _check(spec: ExplainSpec) -> None:
    """Raises InvalidOption where options contradict each other."""
    if spec.top_k < 1:
        raise InvalidOption(f"--top-k {spec.top_k} is too small", hint="It is at least 1.")
    if not spec.example:
        if spec.lang is not None:
            raise InvalidOption("--lang is for the labels of --example", hint="Give both, or leave it out.")
        return
    for name in changed_values(spec):
        if name not in OF_EXAMPLE:
            option = f"--{name.replace('_', '-')}"
            raise InvalidOption(
                f"{option} with --example, which has a text and numbers of its own", hint="Leave one out."
            )


def _example(spec: ExplainSpec) -> Result:
    from attnviz.commands.explain.example import examples
    from attnviz.commands.explain.example_report import example_report

    return Result(example_report(examples(spec.lang or "en"), spec.top_k))


def _explain(spec: ExplainSpec, inputs: Inputs) -> Result:
    from attnviz.commands.explain.report import explain_report

    (document,) = inputs.documents
    model = inputs.model.open(inputs.corpus.texts)  # and with it torch, which takes seconds
    assert isinstance(model, Traceable)
    (layer,) = numbers((str(spec.layer),), model.n_layers, "layer")
    heads = numbers(spec.head, model.n_heads, "head") if spec.head else (0,)
    encoding = model.encode(document.text)
    query = _query(spec, encoding.tokens.pieces, len(encoding.ids) - encoding.n_padding)
    found = model.trace(document.text, document.name, layer, query)
    notices = (*inputs.corpus.notices, *_notices(spec, document, encoding.tokens.pieces[query], query))
    return Result(explain_report(found, heads, spec.top_k), notices=notices)


def _query(spec: ExplainSpec, pieces: tuple[str, ...], n_real: int) -> int:
    """Unless it is given, the first token; of a causal model the last, since the first sees itself and nothing else."""
    if spec.query is not None:
        return position(typed(spec.query), pieces)
    return n_real - 1 if spec.model.causal else 0


def _notices(spec: ExplainSpec, document: Document, piece: str, query: int) -> Iterator[str]:
    if not (spec.text.index or spec.text.inline):
        yield f"explaining {document.name}; --text and --index choose others"
    if spec.query is None:
        yield f"explaining token {query} {piece!r}; --query chooses others"
