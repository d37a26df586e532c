"""Which passages an answer needs, as a report: the answer, the passages by what goes without them, and a map."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from attnviz.display import escape_for_display, list_first
from attnviz.records import Provenance
from attnviz.report import Block, Column, Heatmap, Note, Report, Row, Scale, Table
from attnviz.table.numbers import Numbers
from attnviz.views import captions

PICTURE = "sources"
MAX_NAME, MAX_ANSWER, MAX_BEGINNING, MAX_LABEL = 80, 60, 36, 24
MAX_NAMED = 3
MORE = "All passages: --table full."


@dataclass(frozen=True, eq=False)
class Sources:
    """An answer, and of each passage of its prompt a row: what goes without it, and without random places."""

    texts: tuple[str, ...]  # of the passages
    answer: tuple[str, ...]  # its tokens
    log_probability: float  # of the whole answer, in nats
    table: Numbers  # passage, tokens, loss, random (None: not tried), needed, attention, reader, read
    losses: Float64[np.ndarray, "token passage"]
    together: float  # nats that go without all passages
    n_draws: int
    provenance: Provenance


def sources_report(found: Sources, title: str | None) -> Report:
    """Report which passages an answer needs. The data hold every number."""
    rows = found.table.rows()
    order = np.argsort(-found.losses.sum(axis=0), kind="stable").tolist()
    needed = [number for number in order if rows[number]["needed"]]
    model = escape_for_display(found.provenance.model, MAX_NAME)
    answer = escape_for_display("".join(found.answer).strip(), MAX_ANSWER)
    names = [f"passage {number}" for number in needed]
    origin = list_first(names, MAX_NAMED, str) if needed else "no passage of its own"
    most = float(np.abs(found.losses).max())
    scale = Scale("diverging", -most, most, "nats that the token loses without the passage")
    picture = Heatmap(
        name=PICTURE,
        title="each token of the answer without each passage",
        values=found.losses.T.astype(np.float32),
        allowed=np.ones(found.losses.T.shape, dtype=bool),
        rows=tuple(f"{number}: {escape_for_display(text, MAX_LABEL)}" for number, text in enumerate(found.texts)),
        columns=tuple(escape_for_display(piece, MAX_LABEL) for piece in found.answer),
        row_axis="passage that may not be looked at",
        column_axis="token of the answer",
        scale=scale,
    )
    columns = (
        Column("passage"),
        Column("begins with"),
        Column("lost", digits=2),
        Column("by chance", digits=2),
        Column("attention", digits=3),
    )
    listed: list[Row] = [
        (
            number,
            escape_for_display(found.texts[number], MAX_BEGINNING),
            rows[number]["loss"],
            "–" if rows[number]["random"] is None else rows[number]["random"],
            rows[number]["attention"],
        )
        for number in order
    ]
    blocks: list[Block] = [
        Note(_say_needed(found, needed), leads=True),
        Table("passages", "nats that the answer loses where it may not look at", "answer", columns, listed, more=MORE),
        picture,
        *map(Note, _say_more(found, needed)),
    ]
    extent = f"{len(found.texts)} passages, {sum(row['tokens'] for row in rows)} tokens"
    return Report(
        title=captions.choose_title(title, f"{model} answers “{answer}”, from {origin}"),
        subtitle=captions.join(captions.describe_origin(found.provenance), extent),
        blocks=tuple(blocks),
        scale=scale,
        facts=captions.list_facts(found.provenance),
        data={
            "model": found.provenance.model,
            "revision": found.provenance.revision,
            "text_sha256": found.provenance.text_sha256,
            "answer": list(found.answer),
            "log_probability": found.log_probability,
            "without_all": found.together,
            "draws": found.n_draws,
            "passages": [{"text": text} | row for text, row in zip(found.texts, rows, strict=True)],
            "losses": found.losses.tolist(),
        },
        max_lines=20,
        kept=(answer,),
    )


def _say_needed(found: Sources, needed: list[int]) -> str:
    rows = found.table.rows()
    if not needed:
        return (
            "No passage is needed more than as many tokens elsewhere: the answer comes from the weights, or from all "
            f"passages together (it loses {found.together:.1f} nats without all of them)."
        )
    lost = [f"{rows[number]['loss']:.1f} nats without passage {number}" for number in needed]
    return f"The answer loses {list_first(lost, MAX_NAMED, str)}, {found.together:.1f} without all passages."


def _say_more(found: Sources, needed: list[int]) -> list[str]:
    rows = found.table.rows()
    looked = max(range(len(rows)), key=lambda number: float(rows[number]["attention"]))
    said = "the same" if looked in needed[:1] else "another"
    heads = [f"{rows[number]['reader']} reads passage {number} ({rows[number]['read']:.2f})" for number in needed]
    attention = f"Attention alone would name passage {looked} ({rows[looked]['attention']:.3f} on average over heads)"
    return [
        f"Without a passage: question and answer may not look at it. It is needed where the answer then loses a nat or "
        f"more beyond the worst of {found.n_draws} knock-outs of as many tokens of the others.",
        f"{attention}, {said}." if needed else f"{attention}, and the answer needs none.",
        *([f"Of the heads, {list_first(heads, MAX_NAMED, str)}."] if heads else []),
    ]
