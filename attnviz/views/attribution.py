"""Which tokens an answer hangs on, by one method or several: shaded text and a table. Knows records and `report`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from attnviz.display import escape_for_display
from attnviz.records.attribution import Attribution
from attnviz.report import Block, Column, Heatmap, Note, Report, Row, Scale, Table
from attnviz.views import captions
from attnviz.views.answers import describe_target
from attnviz.views.tokens import label_tokens

SHARES_TITLE = "each token by its share of each method's largest score"


def attribution_report(found: Sequence[Attribution], title: str | None, top_k: int) -> Report:
    """Report how much each token did for one answer; of several methods as shares of each one's largest score.

    The data hold every score: target, against, probability or score, tokens, and by method scores, passes, total,
    others.
    """
    first = found[0]
    tokens, provenance = label_tokens(first.tokens), first.provenance
    scale, values = _choose_scale(found)
    rows = tuple(each.method for each in found)
    of = "answer" if first.target.score is None else "score"
    alone = f"each token by what it did for the {of}" if first.signed else "each token by the size of its score"
    picture = Heatmap(
        name="attribution",
        title=SHARES_TITLE if len(found) > 1 else alone,
        values=values,
        allowed=np.ones(values.shape, dtype=bool),
        rows=rows,
        columns=tokens,
        row_axis="by",
        column_axis="token",
        scale=scale,
    )
    asked = first.target
    target = asked.name if asked.score is not None else f"‘{asked.name}’"
    if asked.against:
        target = f"{target} − ‘{asked.against}’"
    blocks: list[Block] = [picture, _tokens_table(found, tokens, top_k)]
    blocks += map(Note, _compose_notes(found, escape_for_display(target, captions.MAX_NAME_LENGTH)))
    text, extent = captions.describe_text(provenance, first.tokens)
    return Report(
        title=captions.choose_title(title, describe_target(captions.name_model(provenance), asked)),
        subtitle=captions.join(text, captions.describe_origin(provenance), extent, f"by {', '.join(rows)}"),
        blocks=tuple(blocks),
        scale=scale,
        facts=captions.list_facts(provenance),
        data=_collect_data(found),
        focus=(picture,),
    )


def attribution_rows(found: Sequence[Attribution]) -> Iterator[Row]:
    """Yield a header and a row per token, for CSV."""
    yield ("position", "token", *(each.method for each in found))
    for position, piece in enumerate(found[0].tokens.pieces):
        yield (position, piece, *(float(one.scores[position]) for one in found))


def _choose_scale(found: Sequence[Attribution]) -> tuple[Scale, np.ndarray]:
    """Return the scale and the scores themselves, or of several methods the shares of each one's largest."""
    values = np.stack([each.scores for each in found])
    if len(found) == 1:
        most = float(np.abs(values).max())
        return Scale("diverging", -most, most, f"{found[0].method}: against ← 0 → for"), values.astype(np.float32)
    largest = np.abs(values).max(axis=1, keepdims=True)
    shares = values / np.where(largest > 0, largest, 1.0)
    unsigned = [each.method for each in found if not each.signed]
    sizes = f"; {', '.join(unsigned)}: sizes, for neither side" if unsigned else ""
    return Scale("diverging", -1.0, 1.0, f"share of the method's largest score{sizes}"), shares.astype(np.float32)


def _tokens_table(found: Sequence[Attribution], tokens: Sequence[str], top_k: int) -> Table:
    """List the tokens that did most, for or against, by the first method."""
    scores = found[0].scores
    order = np.argsort(-np.abs(scores), kind="stable")[:top_k]
    digits = 4 if len(found) == 1 else 3
    columns = (
        Column("position"),
        Column("token"),
        *(Column(each.method, digits=digits) for each in found),
    )
    rows: list[Row] = [(int(i), tokens[i], *(float(each.scores[i]) for each in found)) for i in order]
    left = len(scores) - len(rows)
    title = "tokens" if left <= 0 else f"the {len(rows)} of {len(scores)} tokens that did most"
    return Table("tokens", title, "facts", columns, tuple(rows))


def _compose_notes(found: Sequence[Attribution], target: str) -> Iterator[str]:
    is_score = found[0].target.score is not None
    explained = target if is_score else f"the logit of {target}"
    for each in found:
        if each.total is not None:
            rest = ", ".join(f"{name} {share:+.4f}" for name, share in each.others)
            yield (
                f"Checked: {each.method} adds up to {explained}, {each.scores.sum():.4f} and {rest} to "
                f"{each.total:.4f}."
            )
    signed = [each.method for each in found if each.signed]
    if signed:
        sides = f"raises {target}, below 0 lowers it" if is_score else f"speaks for {target}, below 0 against it"
        yield f"Above 0 {sides} ({', '.join(signed)})."
    passes = ", ".join(f"{each.method} {each.n_passes}" for each in found)
    yield f"Forward passes, a backward pass counted as two: {passes}. attnviz attribute --card tests these methods."


def _collect_data(found: Sequence[Attribution]) -> Mapping[str, object]:
    first = found[0]
    total = "logit" if first.target.score is None else "score"
    return {
        **captions.describe_source(first.provenance),
        "tokens_in_text": first.provenance.facts.tokens_in_text,
        "target": first.target.name,
        "against": first.target.against or None,
        "probability": first.target.probability,
        **({} if first.target.score is None else {"score": first.target.score}),
        "tokens": asdict(first.tokens),
        "methods": {
            each.method: {
                "scores": each.scores.tolist(),
                "passes": each.n_passes,
                **({} if each.total is None else {total: each.total, "others": dict(each.others)}),
            }
            for each in found
        },
    }
