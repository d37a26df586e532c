"""A model's answer, or one look of a head, explained and drawn."""

from collections.abc import Iterable

from attnviz.commands.explain.answer.report import answer_report, looks_report
from attnviz.commands.explain.answer.why import explain_answer, follow_looks
from attnviz.commands.explain.spec import ExplainSpec
from attnviz.display import decode_argument
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models.decomposition import Decomposable
from attnviz.models.loading import ModelReference
from attnviz.records.attribution import Question
from attnviz.records.explanation import KEYS, HeadName
from attnviz.report import Report
from attnviz.selection import find_token, select_pairs
from attnviz.table.numbers import Numbers
from attnviz.text import Document


def make_report(
    spec: ExplainSpec, reference: ModelReference, document: Document, texts: Iterable[str]
) -> tuple[Report, Numbers]:
    """Explain the answer to one text, or one look of a head where the options name one, and give a row for each look.

    Raises InvalidModel, InvalidOption, and InvalidSelection for a head or token that there is not.
    """
    model = reference.open(texts)
    if not isinstance(model, Decomposable):
        raise InvalidModel(f"{reference} was not trained to answer", hint="--by-hand works one query of it out.")
    question = Question(spec.answer, spec.against, seed=spec.model.seed, option="answer")
    stream = model.take_apart(document.text, document.name, question if spec.head is None else None)
    if spec.head is None:
        found = explain_answer(stream)
        return answer_report(found, spec.figure.title), found.looks
    tokens, looks_ahead = stream.subject.tokens, stream.blocks[0].attention.attendable[:1, 1:].any()
    if spec.query is None and looks_ahead:
        raise InvalidOption(f"in {reference} every token looks at all others", hint="Say from which with --query WORD.")
    query = len(tokens) - 1 if spec.query is None else find_token(decode_argument(spec.query), tokens.pieces)
    (found_head,) = select_pairs((spec.head,), range(len(stream.blocks)), range(stream.blocks[0].n_heads))
    head = HeadName(*found_head)
    key = int(stream.weights_of(head, query).argmax())
    looks = Numbers.from_rows(follow_looks(stream, head, query, key), KEYS[1:])
    return looks_report(tokens, stream.subject.provenance, looks.rows(), spec.figure.title), looks
