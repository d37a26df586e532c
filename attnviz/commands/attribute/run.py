"""`attnviz attribute`: which tokens an answer hangs on, and a card that tests the methods that say so."""

from dataclasses import replace

from attnviz import store
from attnviz.commands.attribute.inputs import methods_of
from attnviz.commands.attribute.spec import AttributeSpec
from attnviz.errors import InvalidModel, InvalidText
from attnviz.inputs import Inputs
from attnviz.models.attribution import Attributable
from attnviz.models.built_in import TRAINED
from attnviz.models.protocols import Classifies
from attnviz.records.attribution import Attribution, Question
from attnviz.running import Events, Progress
from attnviz.running.pictures import Pictures
from attnviz.specs import OTHER_LANGUAGES
from attnviz.views.attribution import attribution_report, attribution_rows

PICTURES = ("attribution",)  # what they are called


def attribute(spec: AttributeSpec, inputs: Inputs) -> Events:
    """Explain each text, or test methods over all of them. Raises InvalidModel for a model without answers."""
    pictures = Pictures.from_options(spec.figure, () if spec.card else PICTURES, store.RECORD)
    reference, corpus, documents = inputs.model, inputs.corpus, inputs.documents
    model = reference.open(corpus.texts)  # reads as much of a text as it was made for
    if isinstance(model, Classifies):
        model = model.limit_tokens(spec.max_tokens or model.max_tokens, spec.keep or model.keep)
    elif spec.max_tokens is not None or spec.keep is not None:
        cut = replace(reference.spec, max_tokens=spec.max_tokens, keep=spec.keep or "head")
        model = replace(reference, spec=cut).open(corpus.texts)
    if not isinstance(model, Attributable):
        raise InvalidModel(f"{reference} has no answer to explain", hint=TRAINED)
    question, methods = Question(spec.target, spec.against, spec.model.seed), methods_of(spec.method)
    notices = corpus.notices
    from attnviz.commands.attribute.card import card_of  # torch has come with the model
    from attnviz.models.attribution.subject import attribute as score

    with store.locked(out := inputs.out):
        if spec.card:
            card, rows, left_out = yield from card_of(question, methods, model, corpus, documents)
            drawn = yield from pictures.write(card, out, None)
            yield replace(drawn, rows=rows, notices=(*left_out, *drawn.notices))
            return
        for document in documents:
            subject = model.subject(document.text, document.name, question)
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
