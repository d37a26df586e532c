"""`attnviz attribute`: which tokens an answer hangs on, and a card that tests the methods that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from attnviz import store
from attnviz.commands.attribute.spec import AttributeSpec
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.attribution import METHODS, Attributable
from attnviz.models.built_in import TRAINED
from attnviz.models.loading import ModelReference, find_model
from attnviz.models.protocols import Classifies
from attnviz.records.attribution import Question
from attnviz.registry import find
from attnviz.running import Events
from attnviz.running.explaining import Explaining
from attnviz.text import Corpus

if TYPE_CHECKING:
    pass

MAX_DRAWN = 100  # texts
ALL = "all"


def attribute(spec: AttributeSpec) -> Events:
    """Explain each text, or test methods over all of them. What can be refused without a model is refused first."""
    methods, inputs = methods_of(spec.method), attribute_inputs(spec)
    if spec.card:
        from attnviz.commands.attribute.card import card_of

        model = open_answering(spec, inputs.model, inputs.corpus)
        return card_of(question_of(spec), methods, model, inputs.corpus, inputs.documents)
    return _draw(spec, methods, inputs)


def attribute_inputs(spec: AttributeSpec) -> Inputs:
    """One model with answers, and the texts. Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection."""
    if spec.top_k < 1:
        raise InvalidOption(f"--top-k {spec.top_k} is too small", hint="It is at least 1.")
    if spec.max_tokens is not None and spec.max_tokens < 2:
        raise InvalidOption(f"--max-tokens {spec.max_tokens} is too small", hint="It is at least 2.")
    reference = find_model(spec.model).answering()
    reference.check(Attributable)
    text = spec.text
    if spec.inline_text is not None:
        text = replace(text, text=(spec.inline_text, *text.text))
    inputs = read_inputs([reference], text, every=text.inline or spec.card, out=None if spec.card else spec.figure.out)
    if not spec.card and len(inputs.documents) > MAX_DRAWN:
        found = f"{len(inputs.documents):,} texts, at most {MAX_DRAWN} are drawn"
        raise InvalidOption(found, hint="Choose with --index.")
    return inputs


def methods_of(names: str) -> list[str]:
    """Names of methods, all of them for "all". Raises InvalidOption for one that there is not."""
    if names.strip() == ALL:
        return [method.name for method in METHODS]
    return list(dict.fromkeys(find(METHODS, name.strip(), "method").name for name in names.split(",")))


def open_answering(spec: AttributeSpec, reference: ModelReference, corpus: Corpus) -> Attributable:
    """The model, reading as much of a text as it was made for. Raises InvalidModel for one without answers."""
    model = reference.open(corpus.texts)
    if isinstance(model, Classifies):
        model = model.limit_tokens(spec.max_tokens or model.max_tokens, spec.keep or model.keep)
    elif spec.max_tokens is not None or spec.keep is not None:
        cut = replace(reference.spec, max_tokens=spec.max_tokens, keep=spec.keep or "head")
        model = replace(reference, spec=cut).open(corpus.texts)
    if not isinstance(model, Attributable):
        raise InvalidModel(f"{reference} has no answer to explain", hint=TRAINED)
    return model


def _draw(spec: AttributeSpec, methods: Sequence[str], inputs: Inputs) -> Events:
    out, documents = inputs.out, inputs.documents
    explaining = Explaining.of(methods, question_of(spec), spec.figure, spec.top_k)
    model = open_answering(spec, inputs.model, inputs.corpus)
    with store.locked(out):
        for count, document in enumerate(documents):
            folder = out if len(documents) == 1 else out / document.slug
            drawn = yield from explaining.draw(model, document, folder)
            yield replace(drawn, notices=(*(inputs.corpus.notices if count == 0 else ()), *drawn.notices))


def question_of(spec: AttributeSpec) -> Question:
    """What is asked of each text."""
    return Question(spec.target, spec.against, spec.encoder_alone, spec.model.seed)
