"""What `attnviz explain` reads."""

from __future__ import annotations

from dataclasses import fields

from attnviz.commands.explain.spec import ExplainSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.loading import find_model
from attnviz.models.protocols import Traceable
from attnviz.options import find_changed
from attnviz.selection import select_numbers
from attnviz.specs import PrintOptions

EXAMPLE_OPTIONS = {"example", "lang", "top_k", *(field.name for field in fields(PrintOptions))}


def explain_inputs(spec: ExplainSpec) -> Inputs:
    """Find one model and one text; nothing for the example. Raises InvalidOption, InvalidModel or InvalidSource."""
    _check(spec)
    if spec.example:
        return Inputs()
    reference = find_model(spec.model)
    reference.check(Traceable)
    if reference.n_layers is not None and reference.n_heads is not None:
        select_numbers((str(spec.layer),), reference.n_layers, "layer")
        select_numbers(spec.head, reference.n_heads, "head")
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
    for name in find_changed(spec):
        if name not in EXAMPLE_OPTIONS:
            option = "a text" if name == "inline_text" else f"--{name.replace('_', '-')}"
            raise InvalidOption(
                f"{option} with --example, which has a text and numbers of its own", hint="Leave one out."
            )
