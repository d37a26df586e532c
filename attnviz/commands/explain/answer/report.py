"""An explanation as a report: the heads of an answer, each with its knock-out, the steps behind them, and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attnviz.commands.explain.answer.picture import draw_answer, draw_cell
from attnviz.commands.explain.answer.words import (
    describe_answer,
    describe_contribution,
    describe_look,
    describe_steps,
    quote_answer,
    quote_word,
)
from attnviz.display import escape_for_display
from attnviz.records import Provenance, Tokens
from attnviz.records.explanation import CellExplanation, Contribution, Explanation, Look
from attnviz.report import Block, Column, Note, Report, Row, Table
from attnviz.views import captions
from attnviz.views.data import describe_tokens

MAX_NAME = 80
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


def answer_report(found: Explanation, title: str | None) -> Report:
    """Report the heads that wrote an answer. The data hold every number."""
    tokens, target = found.tokens, found.target
    answer = quote_answer(target.name)
    model = escape_for_display(found.provenance.model, MAX_NAME)
    blocks: list[Block] = [
        draw_answer(tokens, found.contributions, answer, found.n_layers),
        _heads_table(found),
        _steps_table(tokens, _unique_looks(found.contributions)),
        _sum_table(found),
    ]
    blocks += [
        Note(" ".join((describe_contribution(tokens, target, each), *describe_steps(tokens, each.looks))))
        for each in found.contributions
    ]
    held = HELD if found.form == "token" else f"{HELD} {BEHIND}"
    blocks += [Note(each) for each in (*([POOLED] if found.n_queries > 1 else []), held, SELF_REPAIR)]
    blocks += captions.describe_unknown(tokens, "tokens")
    return Report(
        title=captions.choose_title(title, describe_answer(model, found)),
        subtitle=_compose_subtitle(found.provenance, tokens),
        blocks=tuple(blocks),
        facts=captions.list_facts(found.provenance),
        data={
            **_describe_source(found.provenance, tokens),
            "answer": target.name,
            "against": target.against,
            "probability": target.probability,
            **({"score": target.score} if found.form == "score" else {}),
            "logit_difference": found.logit,
            "sum_of_parts": found.total,
            "by_kind": dict(found.by_kind),
            "heads": [_describe_contribution(each) for each in found.contributions],
        },
    )


def cell_report(found: CellExplanation, title: str | None) -> Report:
    """Report why one query of one head looks where it does."""
    tokens, first = found.tokens, found.looks[0]
    model = escape_for_display(found.provenance.model, MAX_NAME)
    said = f"{model}: why {first.head} looks from {quote_word(tokens, first.query)} to {quote_word(tokens, first.key)}"
    sentences = (describe_look(tokens, first), *describe_steps(tokens, found.looks))
    return Report(
        title=captions.choose_title(title, said),
        subtitle=_compose_subtitle(found.provenance, tokens),
        blocks=(
            draw_cell(tokens, found.looks, found.n_layers),
            _steps_table(tokens, found.looks),
            *([_shares_table(first)] if first.shares else []),
            *map(Note, sentences),
            Note(HELD),
            *captions.describe_unknown(tokens, "tokens"),
        ),
        facts=captions.list_facts(found.provenance),
        data={**_describe_source(found.provenance, tokens), "looks": [_describe_look(look) for look in found.looks]},
    )


def _compose_subtitle(provenance: Provenance, tokens: Tokens) -> str:
    name = escape_for_display(provenance.text_name, MAX_NAME)
    extent = captions.describe_extent(provenance, len(tokens) - sum(tokens.special))
    return captions.join(name, captions.describe_origin(provenance), extent)


def _unique_looks(contributions: Sequence[Contribution]) -> list[Look]:
    found = {(look.head, look.query, look.key): look for each in contributions for look in each.looks}
    return list(found.values())


def _heads_table(found: Explanation) -> Table:
    columns = (
        Column("head"),
        Column("reads"),
        Column("weight"),
        Column("writes", digits=2),
        Column("without the head", digits=2),
        Column("looks there because of"),
        Column("weight without that"),
    )
    rows: list[Row] = []
    for each in found.contributions:
        look = each.looks[0]
        because = "no one writer" if look.named is None else str(look.named.writer)
        without = "" if look.weight_without is None else look.weight_without
        word = quote_word(found.tokens, each.source)
        rows.append((str(each.head), word, look.weight, each.written, each.removal, because, without))
    over = " over its rival" if found.target.against else ""
    title = f"the {len(rows)} heads that wrote most, in logits of {quote_answer(found.target.name)}{over}"
    return Table("answer", title, "facts", columns, tuple(rows))


def _steps_table(tokens: Tokens, looks: Sequence[Look]) -> Table:
    columns = (
        *map(Column, ("head", "from", "to", "because of", "which read")),
        *map(Column, ("weight", "without it")),
        Column("random heads"),
    )
    rows: list[Row] = []
    for look in looks:
        named = look.named
        rows.append(
            (
                str(look.head),
                quote_word(tokens, look.query),
                quote_word(tokens, look.key),
                "no one writer" if named is None else str(named.writer),
                "" if look.source is None else quote_word(tokens, look.source),
                look.weight,
                "" if look.weight_without is None else look.weight_without,
                f"{min(look.random):.2f}-{max(look.random):.2f}" if look.random else "",
            )
        )
    return Table("looks", "why they look there", "facts", columns, tuple(rows))


def _shares_table(look: Look) -> Table:
    rows = tuple((str(share.writer), share.lead) for share in look.shares)
    title = f"who raises the score of this key over the others, {look.lead:.2f} in all"
    return Table("shares", title, "facts", (Column("who wrote there"), Column("lead", digits=2)), rows)


def _sum_table(found: Explanation) -> Table:
    rows = (*found.by_kind, ("sum", found.total), ("the model's own", found.logit))
    columns = (Column("what"), Column("logits", digits=4))
    title = f"what the {'difference' if found.target.against else 'logit'} is made of"
    return Table("sum", title, "facts", columns, rows)


def _describe_source(provenance: Provenance, tokens: Tokens) -> Mapping[str, object]:
    return {
        "model": provenance.model,
        "revision": provenance.revision,
        "text": provenance.text_name,
        "text_sha256": provenance.text_sha256,
        "tokens": describe_tokens(tokens),
    }


def _describe_contribution(found: Contribution) -> Mapping[str, object]:
    return {
        "head": str(found.head),
        "written": found.written,
        "source": found.source,
        "from_source": found.from_source,
        "removal": found.removal,
        "looks": [_describe_look(look) for look in found.looks],
    }


def _describe_look(look: Look) -> Mapping[str, object]:
    return {
        "head": str(look.head),
        "query": look.query,
        "key": look.key,
        "weight": look.weight,
        "lead": look.lead,
        "shares": [{"writer": str(share.writer), "lead": share.lead} for share in look.shares],
        "named": None if look.named is None else str(look.named.writer),
        "source": look.source,
        "weight_without": look.weight_without,
        "weights_without_random_heads": list(look.random),
    }
