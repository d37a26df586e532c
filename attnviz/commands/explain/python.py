"""`attnviz.explain`: which heads of a model wrote its answer, in Python and notebooks."""

from typing import Any

from attnviz.commands.explain.answer.report import make_report
from attnviz.commands.explain.inputs import check_answering
from attnviz.commands.explain.spec import ExplainSpec
from attnviz.models.loading import find_model
from attnviz.python.api import parse_settings
from attnviz.python.notebook import Display
from attnviz.running.pictures import Pictures
from attnviz.specs import TextOptions
from attnviz.text import load_corpus


def explain(
    model: str,
    text: str,
    *,
    answer: str | None = None,
    against: str | None = None,
    head: str | None = None,
    query: str | int | None = None,
    **settings: Any,
) -> Display:
    """Explain which heads of a model wrote its answer, and why they looked where they did.

    What `attnviz explain --model MODEL TEXT` prints and draws; the numbers are in `.report.data`.

    Args:
        model: a trained one (`multi`), a packaged one (`smollm2`), a folder, or a name on the hub.
        text: what it goes on with, classifies, or fills in where its mask stands.
        answer: the token or class to explain, the model's own unless said.
        against: the one that it is explained against, the most probable of the others unless said.
        head: in place of the answer, one look of this head, such as "18.6".
        query: of `head`, the word or position that it looks from; of a decoder the last unless said.
        **settings: `without`, `seed`, `device`, `max_memory`, `title`, `theme`, `width`.

    Returns:
        What a notebook shows as a page, and where it shows no HTML as a PNG.

    Raises:
        InvalidModel: for a model that has no answer, or whose parts do not sum to its own numbers.
        InvalidOption: for an answer that the model does not have, and for a setting that there is not.
        InvalidSelection: for a head or a word that is not there.
    """
    asked = {"model": model, "answer": answer, "against": against, "head": head, "query": query, **settings}
    spec = parse_settings(ExplainSpec, **{name: value for name, value in asked.items() if value is not None})
    reference = check_answering(spec, find_model(spec.model))
    corpus = load_corpus(TextOptions(text=(text,)))
    (document,) = corpus.documents
    look = Pictures.from_options(spec.figure, (), "").look
    report, _ = make_report(spec, reference, document, corpus.texts)
    return Display(report, look)
