"""`attnviz explain`: a model's answer by the heads that wrote it, or the arithmetic of one query, step by step."""

from __future__ import annotations

from attnviz import store
from attnviz.commands.explain.inputs import PICTURES, works_by_hand
from attnviz.commands.explain.report import explain_report
from attnviz.commands.explain.spec import ExplainSpec
from attnviz.inputs import Inputs
from attnviz.models.protocols import Traceable
from attnviz.running import Events, Result
from attnviz.running.pictures import Pictures
from attnviz.selection import find_token, select_numbers
from attnviz.text import decode_argument

LESSON = 'attnviz lesson "a sentence" makes a page of the same steps, to explore'


def explain(spec: ExplainSpec, inputs: Inputs) -> Events:
    """Explain a model's answer or one look of a head, or work out one query of one text by hand.

    Raises ExecutionError or InvalidModel where the arithmetic does not give what the model gives.
    """
    if not works_by_hand(spec, inputs.model):
        from attnviz.commands.explain.answer.run import explain_model  # torch comes with it

        yield from explain_model(spec, inputs)
        return
    (document,) = inputs.documents
    model = inputs.model.open(inputs.corpus.texts)
    assert isinstance(model, Traceable)
    (layer,) = select_numbers((str(spec.layer or 0),), model.n_layers, "layer")
    heads = select_numbers(spec.head, model.n_heads, "head") if spec.head else (0,)
    encoding = model.encode(document.text)
    pieces, notices = encoding.tokens.pieces, list(inputs.corpus.notices)
    # The first token unless one is given; of a causal model the last, since the first sees only itself.
    query = len(encoding.ids) - encoding.n_padding - 1 if spec.model.causal else 0
    if not (spec.text.index or spec.text.inline):
        notices.append(f"explaining {document.name}; --text and --index choose others")
    if spec.query is None:
        notices.append(f"explaining token {query} {pieces[query]!r}; --query chooses others")
    else:
        query = find_token(decode_argument(spec.query), pieces)
    found = model.trace(document.text, document.name, layer, query)
    report = explain_report(found, heads, spec.figure)
    with store.locked(inputs.out):
        drawn = yield from Pictures.from_options(spec.figure, PICTURES, store.RECORD).write(report, inputs.out, None)
    yield Result(report, drawn.files, notices=(*notices, *drawn.notices), closing=(LESSON,))
