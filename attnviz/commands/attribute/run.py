"""`attnviz attribute`: which tokens an answer hangs on, and a card that tests the methods that say so."""

from __future__ import annotations

from dataclasses import replace

from attnviz import store
from attnviz.commands.attribute.inputs import ALL, methods_of
from attnviz.commands.attribute.spec import AttributeSpec
from attnviz.errors import InvalidModel, InvalidOption, InvalidText
from attnviz.inputs import Inputs
from attnviz.models.attribution import INTEGRATED_GRADIENTS, Attributable
from attnviz.models.built_in import TRAINED
from attnviz.models.loading import ModelReference
from attnviz.models.protocols import Classifies
from attnviz.records.attribution import Attribution, Question
from attnviz.running import Events, Progress
from attnviz.specs import OTHER_LANGUAGES
from attnviz.text import Corpus
from attnviz.views.attribution import attribution_report, attribution_rows

PICTURES = ("attribution",)  # what they are called


def attribute(spec: AttributeSpec, inputs: Inputs) -> Events:
    """Explain each text, or test methods over all of them."""
    if not spec.card:
        return _draw(spec, inputs)
    from attnviz.commands.attribute.card import card_of  # torch comes with it: what is drawn is checked without

    model = open_answering(spec, inputs.model, inputs.corpus)
    methods, left_out = _choose_methods(spec)
    corpus = replace(inputs.corpus, notices=(*inputs.corpus.notices, *left_out))
    return card_of(question_of(spec), methods, model, corpus, inputs.documents)


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


def _draw(spec: AttributeSpec, inputs: Inputs) -> Events:
    from attnviz.running.pictures import Pictures  # matplotlib comes with it

    out, documents = inputs.out, inputs.documents
    pictures = Pictures.from_options(spec.figure, PICTURES, store.RECORD)
    model = open_answering(spec, inputs.model, inputs.corpus)
    from attnviz.models.attribution.subject import attribute as score  # torch has come with the model

    methods, left_out = _choose_methods(spec)
    notices = (*inputs.corpus.notices, *left_out)
    with store.locked(out):
        for document in documents:
            subject = model.subject(document.text, document.name, question_of(spec))
            if (tokens := subject.tokens).mostly_unknown:  # there is no verdict to explain
                unknown = f"{sum(tokens.unknown)} of {len(tokens) - sum(tokens.special)} tokens of {document.name}"
                problem = f"{unknown} are not in the model's vocabulary, so its answer says little of the text"
                raise InvalidText(problem, hint=OTHER_LANGUAGES)
            found: list[Attribution] = []
            for method in methods:
                yield Progress(len(found), len(methods), "methods", method)
                found.append(score(subject, method))
            folder = out if len(documents) == 1 else out / document.slug
            report = attribution_report(found, spec.figure.title, spec.top_k)
            drawn = yield from pictures.write(report, folder, None)
            yield replace(drawn, rows=attribution_rows(found), is_text=True, notices=(*notices, *drawn.notices))
            notices = ()


def _choose_methods(spec: AttributeSpec) -> tuple[list[str], tuple[str, ...]]:
    """Return the methods that are asked for; of all, those that can be had here, and why not the others."""
    methods = methods_of(spec.method)
    if spec.method.strip() != ALL:
        return methods, ()
    from attnviz.models.attribution.gradients import check_captum  # torch comes with it

    try:
        check_captum()
    except InvalidOption as error:
        methods.remove(INTEGRATED_GRADIENTS)
        return methods, (f"{INTEGRATED_GRADIENTS} is left out: {error}",)
    return methods, ()


def question_of(spec: AttributeSpec) -> Question:
    """What is asked of each text."""
    return Question(spec.target, spec.against, spec.model.seed)
