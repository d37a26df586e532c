"""`attnviz explain`: a model's answer by the heads that wrote it, or the arithmetic of one query, step by step."""

from dataclasses import replace

from attnviz import store
from attnviz.commands.explain.inputs import PICTURES, works_by_hand
from attnviz.commands.explain.report import explain_report
from attnviz.commands.explain.spec import ExplainSpec
from attnviz.inputs import Inputs
from attnviz.models.protocols import Traceable
from attnviz.running import Events, Progress, Result
from attnviz.running.pictures import Pictures
from attnviz.selection import find_token, select_pairs

LESSON = 'attnviz lesson "a sentence" makes a page of the same steps, to explore'


def explain(spec: ExplainSpec, inputs: Inputs) -> Events:
    """Explain a model's answer or one look of a head, or work out one query of one text by hand.

    Raises ExecutionError or InvalidModel where the arithmetic does not give what the model gives.
    """
    (document,) = inputs.documents
    pictures = Pictures.from_options(spec.figure, PICTURES, store.RECORD)
    notices = list(inputs.corpus.notices)
    if not (spec.text.index or spec.text.inline):
        notices.append(f"explaining {document.name}; --text and --index choose others")
    if works_by_hand(spec, inputs.model):
        result = _work_by_hand(spec, inputs)
    else:
        from attnviz.commands.explain.answer.report import make_report  # torch comes with it

        yield Progress(0, 1, "texts")
        report, looks = make_report(spec, inputs.model, document, inputs.corpus.texts)
        result = Result(report, rows=looks.cells(), is_text=True)
    assert result.report is not None
    with store.locked(inputs.out):
        drawn = yield from pictures.write(result.report, inputs.out, None)
    yield replace(result, report=drawn.report, files=drawn.files, notices=(*notices, *result.notices, *drawn.notices))


def _work_by_hand(spec: ExplainSpec, inputs: Inputs) -> Result:
    (document,) = inputs.documents
    model = inputs.model.open(inputs.corpus.texts)
    assert isinstance(model, Traceable)
    ((layer, head),) = select_pairs((spec.head or "0.0",), range(model.n_layers), range(model.n_heads))
    encoding = model.encode(document.text)
    pieces = encoding.tokens.pieces
    # The first token unless one is given; of a causal model the last, since the first sees only itself.
    first = len(encoding.ids) - 1 if spec.model.causal else 0
    query = first if spec.query is None else find_token(spec.query, pieces)
    said = f"explaining token {query} {pieces[query]!r}; --query chooses others"
    notices = (said,) if spec.query is None else ()
    found = model.trace(document.text, document.name, layer, query)
    return Result(explain_report(found, head, spec.figure), notices=notices, closing=(LESSON,))
