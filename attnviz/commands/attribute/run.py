"""`attnviz attribute`: which tokens an answer hangs on, and a card that tests the methods that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attnviz import store
from attnviz.commands.attribute.inputs import methods_of
from attnviz.commands.attribute.spec import AttributeSpec
from attnviz.errors import InvalidModel
from attnviz.inputs import Inputs
from attnviz.models.attribution import Attributable
from attnviz.models.built_in import TRAINED
from attnviz.models.loading import ModelReference
from attnviz.models.protocols import Classifies
from attnviz.records.attribution import Question
from attnviz.running import Events
from attnviz.running.explaining import Explaining
from attnviz.text import Corpus


def attribute(spec: AttributeSpec, inputs: Inputs) -> Events:
    """Explain each text, or test methods over all of them."""
    methods = methods_of(spec.method)
    if spec.card:
        from attnviz.commands.attribute.card import card_of  # torch comes with it: what is drawn is checked without

        model = open_answering(spec, inputs.model, inputs.corpus)
        return card_of(question_of(spec), methods, model, inputs.corpus, inputs.documents)
    return _draw(spec, methods, inputs)


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
    explaining = Explaining.from_options(methods, question_of(spec), spec.figure, spec.top_k)
    model = open_answering(spec, inputs.model, inputs.corpus)
    with store.locked(out):
        for count, document in enumerate(documents):
            folder = out if len(documents) == 1 else out / document.slug
            drawn = yield from explaining.draw(model, document, folder)
            yield replace(drawn, notices=(*(inputs.corpus.notices if count == 0 else ()), *drawn.notices))


def question_of(spec: AttributeSpec) -> Question:
    """What is asked of each text."""
    return Question(spec.target, spec.against, spec.encoder_alone, spec.model.seed)
