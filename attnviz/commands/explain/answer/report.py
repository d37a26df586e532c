"""An explanation as a report: the heads of an answer, each with its knock-out, the steps behind them, and a picture."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from attnviz.commands.explain.answer import words
from attnviz.commands.explain.answer.graph import draw_answer, draw_looks
from attnviz.commands.explain.answer.why import explain_answer, follow_looks
from attnviz.commands.explain.spec import ExplainSpec
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models.decomposition import Decomposable
from attnviz.models.loading import ModelReference
from attnviz.records import Provenance, Tokens
from attnviz.records.attribution import KEYS, Explanation, HeadName, Look, Looks, Question
from attnviz.report import Block, Column, Note, Report, Row, Table
from attnviz.selection import find_token, select_pairs
from attnviz.table.numbers import Numbers
from attnviz.text import Document
from attnviz.views import captions
from attnviz.views.answers import describe_target, quote_answer
from attnviz.views.tokens import label_token

MAX_LABEL = 12
OF_HEAD = {name: name for name in ("head", "written", "source", "from_source", "own", "removal")} | {"source": "key"}
WHERE = "head", "query", "key", "weight", "lead"
WHY = "named", "source", "weight_without", "controls", "n_passing", "n_writers", "weights"
HELD = (
    "Exact with the scale of norms held: all that was written sums to the model's own logit, and the scores to its own "
    "weights. A weight without a writer is that of this head alone, the writer taken out of its keys and the norm anew."
)
BEHIND = "Behind the last layer the weights of pooling and the gates of activations are held, too."
POOLED = (
    "The answer is read at every token: how far a head reads a word is the sum over all tokens that look there, and "
    "the look shown is that which took most of it."
)
SELF_REPAIR = (
    "What a head writes is not what its removal costs: later heads and MLPs read it, and some make up for it "
    "(self-repair). One sentence is no label: the same head may do something else in the next."
)
TESTED = (
    "A reason is what the weight falls by half without: a head or MLP by more than nine tenths of others; of a word or "
    "place nine tenths of others leave less, half of them half. Lost without a head: it gives zero, the model runs on."
)
MORE = "Each head in a sentence, with its weights and tests: --table full."


def answer_report(found: Explanation, title: str | None) -> Report:
    """Report the heads that wrote an answer. The data hold every number."""
    tokens, target = found.tokens, found.target
    sentences = (
        " ".join((words.describe_contribution(tokens, target, looks[0]), *words.describe_steps(tokens, looks)))
        for looks in found.heads
    )
    held = HELD if target.form == "token" else f"{HELD} {BEHIND}"
    made_of = (*found.by_kind, ("sum", found.total), ("the model's own", found.logit))
    title_of_sum = f"what the {'difference' if target.against else 'logit'} is made of"
    details = (*sentences, *([POOLED] if found.n_queries > 1 else []), held, SELF_REPAIR)
    blocks: list[Block] = [
        draw_answer(found),
        _heads_table(found),
        Table("sum", title_of_sum, "facts", (Column("what"), Column("logits", digits=4)), made_of),
        Note(TESTED),
        *(Note(each, is_detail=True) for each in details),
    ]
    blocks += [*captions.describe_misuse(found.provenance, len(tokens)), *captions.describe_unknown(tokens, "tokens")]
    answers = filter(None, (target.name, target.against))
    return Report(
        title=captions.choose_title(title, describe_target(captions.name_model(found.provenance), target)),
        subtitle=captions.join(*captions.describe_text(found.provenance, tokens)),
        blocks=tuple(blocks),
        kept=tuple(quote_answer(name)[1:-1] for name in answers) if "token" in target.form else (),
        facts=captions.list_facts(found.provenance),
        data={
            **captions.describe_source(found.provenance),
            "tokens": asdict(tokens),
            "answer": target.name,
            "against": target.against,
            "probability": target.probability,
            "rival_probability": target.rival and target.rival[1],
            **({"score": target.score} if target.form == "score" else {}),
            "logit_difference": found.logit,
            "sum_of_parts": found.total,
            "by_kind": dict(found.by_kind),
            "heads": [
                {new: looks[0][old] for new, old in OF_HEAD.items()} | {"looks": [*map(_describe_look, looks)]}
                for looks in found.heads
            ],
        },
        max_lines=20,
    )


def looks_report(tokens: Tokens, provenance: Provenance, looks: Looks, title: str | None) -> Report:
    """Report why one query of one head looks where it does, then why the head that wrote that did."""
    first, model = looks[0], captions.name_model(provenance)
    ends = f"from {words.quote_word(tokens, first['query'])} to {words.quote_word(tokens, first['key'])}"
    sentences = (words.describe_look(tokens, first), *words.describe_steps(tokens, looks))
    return Report(
        title=captions.choose_title(title, f"{model}: why {first['head']} looks {ends}"),
        subtitle=captions.join(*captions.describe_text(provenance, tokens), captions.describe_origin(provenance)),
        blocks=(
            draw_looks(tokens, looks),
            *([_shares_table(first)] if first["writers"] else []),
            *map(Note, sentences),
            Note(HELD),
            *captions.describe_unknown(tokens, "tokens"),
        ),
        facts=captions.list_facts(provenance),
        data={
            **captions.describe_source(provenance),
            "tokens": asdict(tokens),
            "looks": [_describe_look(look) for look in looks],
        },
    )


def _heads_table(found: Explanation) -> Table:
    """List the heads, a line each; what supports a line is in the sentences."""
    answer, against = found.target.name, found.target.against
    rows: list[Row] = []
    for look, *_ in found.heads:
        own, of_rival = look["own"], look["own"] - look["written"] if against else 0.0
        is_own = abs(own) >= abs(of_rival)
        does = "raises" if (own if is_own else of_rival) > 0 else "lowers"
        mostly = f"{does} {quote_answer(answer if is_own else against)}"
        because = words.name_reason(look).removeprefix("because of ")
        read = f"‘{label_token(found.tokens, look['key'], MAX_LABEL)}’"
        rows.append((look["head"], read, mostly, look["written"], -look["removal"], because))
    names = "head", "reads", "mostly", "writes", "lost without it", "looks there because of"
    title = f"logits of {quote_answer(answer)}{' over its rival' if against else ''}; above 0: for it"
    columns = tuple(Column(name, digits=2) for name in names)
    return Table("answer", title, "answer", columns, tuple(rows), more=MORE)


def _shares_table(look: Look) -> Table:
    rows = tuple(zip(look["writers"], look["leads"], strict=True))
    title = f"who raises the score of this key over the others, {look['lead']:.2f} in all"
    return Table("shares", title, "facts", (Column("who wrote there"), Column("lead", digits=2)), rows)


def _describe_look(look: Look) -> Mapping[str, object]:
    leads = zip(look["writers"], look["leads"], strict=True)
    shares = {"shares": [{"writer": writer, "lead": lead} for writer, lead in leads]}
    return {name: look[name] for name in WHERE} | shares | {name: look[name] for name in WHY}


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
    query = len(tokens) - 1 if spec.query is None else find_token(spec.query, tokens.pieces)
    (found_head,) = select_pairs((spec.head,), range(len(stream.blocks)), range(stream.blocks[0].n_heads))
    head = HeadName(*found_head)
    key = int(stream.weights_of(head, query).argmax())
    looks = Numbers.from_rows(follow_looks(stream, head, query, key), KEYS[1:])
    return looks_report(tokens, stream.subject.provenance, looks.rows(), spec.figure.title), looks
