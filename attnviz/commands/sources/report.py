"""Which passages an answer needs, as a report: the answer, the passages by what goes without them, and a map."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from jaxtyping import Float64

from attnviz.display import JOIN, escape_for_display, list_first
from attnviz.records import Provenance, Tokens
from attnviz.report import Block, Column, Heatmap, Note, Report, Row, Scale, Table
from attnviz.table.intervals import write_p_value
from attnviz.table.numbers import Numbers
from attnviz.views import captions

PICTURE = "sources"
MAX_ANSWER, MAX_BEGINNING, MAX_LABEL, MAX_TEXT = 60, 24, 24, 10_000
MAX_NAMED = 3
LEAST = 1.0  # nats that a passage has to cost beyond the best random knock-out
MIN_SHOWN = 5  # passages that any screen lists
MORE = "All passages: --table full."
NEEDED = (
    "Needed: where question and answer may not look at it, the answer loses a nat, and a nat more than by chance: the "
    "worst of {} knock-outs of as many other tokens; p, corrected for all passages (Holm 1979), is at most 0.05. –: it "
    "loses less than a nat, or the others are too short."
)
READ = "Read by: the head that gives a passage most, and how much; attention: what it gets, on average over heads."
HINT = "Choose a word of the answer: each passage is shaded by what the word loses without it. Or choose a passage."


@dataclass(frozen=True, eq=False)
class Sources:
    """An answer, and of each passage of its prompt a row: what goes without it, and without random places."""

    texts: tuple[str, ...]  # of the passages
    answer: Tokens
    log_probability: float  # of the whole answer, in nats
    table: Numbers  # passage, tokens, loss, random (None: not tried), p_value, needed, attention, reader, read
    losses: Float64[np.ndarray, "token passage"]
    together: float  # nats that go without all passages
    n_draws: int
    provenance: Provenance

    @property
    def said(self) -> str:
        """Join the answer as it is written: a character that several tokens are bytes of stands once."""
        return "".join(piece for piece, _ in dict.fromkeys(zip(self.answer.pieces, self.answer.offsets, strict=True)))


def sources_report(found: Sources, title: str | None) -> Report:
    """Report which passages an answer needs. The data hold every number."""
    rows = found.table.rows()
    order = np.argsort(-found.losses.sum(axis=0), kind="stable").tolist()
    needed = [number for number in order if rows[number]["needed"]]
    attention, looked = max((row["attention"], row["passage"]) for row in rows)
    model = captions.name_model(found.provenance)
    answer = escape_for_display(found.said.strip(), MAX_ANSWER)
    origin, said = _describe_origin(found, needed)
    words = _trim(found.answer)
    most = float(np.abs(found.losses).max())
    scale = Scale("diverging", -most, most, "nats that the token loses without the passage")
    picture = Heatmap(
        name=PICTURE,
        title="each token of the answer without each passage",
        values=found.losses.T.astype(np.float32),
        allowed=np.ones(found.losses.T.shape, dtype=bool),
        rows=_name_passages(found.texts, MAX_LABEL),
        row_texts=_name_passages(found.texts, MAX_TEXT),
        columns=tuple(escape_for_display(piece, MAX_LABEL) for piece in words.pieces),
        row_axis="without passage",
        column_axis="token of the answer",
        scale=scale,
    )
    losses, attended = (Column("lost", digits=2), Column("by chance", digits=2)), Column("attention", digits=3)
    columns = (Column("passage"), Column("begins with"), *losses, Column("p (Holm)"), attended, Column("read by"))
    listed: list[Row] = [
        (
            number,
            escape_for_display(found.texts[number], MAX_BEGINNING),
            rows[number]["loss"],
            *(("–", "–") if random is None else (random, write_p_value(rows[number]["p_value"]))),
            rows[number]["attention"],
            f"{rows[number]['reader']} {rows[number]['read']:.2f}",
        )
        for number in order
        for random in [rows[number]["random"]]
    ]
    more = MORE if len(rows) > MIN_SHOWN else ""
    blocks: list[Block] = [
        Note(said, leads=True),
        Note(f"Attention alone would say: passage {looked} ({attention:.3f} on average over heads).", leads=True),
        Table("passages", "nats that the answer loses where it may not look at", "answer", columns, listed, more=more),
        picture,
        Note(NEEDED.format(found.n_draws)),
        Note(READ, is_detail=True),
    ]
    extent = f"{len(found.texts)} passages, {sum(row['tokens'] for row in rows)} tokens"
    return Report(
        title=captions.choose_title(title, f"{model} answers “{answer}”, from{JOIN}{origin}"),
        subtitle=captions.join(captions.describe_origin(found.provenance), extent),
        blocks=tuple(blocks),
        scale=scale,
        facts=captions.list_facts(found.provenance),
        data={
            "model": found.provenance.model,
            "revision": found.provenance.revision,
            "text_sha256": found.provenance.text_sha256,
            "answer": list(found.answer.pieces),
            "tokens": asdict(words),
            "log_probability": found.log_probability,
            "without_all": found.together,
            "draws": found.n_draws,
            "passages": [{"text": text} | row for text, row in zip(found.texts, rows, strict=True)],
            "losses": found.losses.tolist(),
        },
        hint=(HINT,),
        max_lines=20,
        kept=(answer,),
    )


def _name_passages(texts: Sequence[str], length: int) -> tuple[str, ...]:
    return tuple(f"{number}: {escape_for_display(' '.join(text.split()), length)}" for number, text in enumerate(texts))


def _trim(answer: Tokens) -> Tokens:
    """Leave out the spaces before words, which a page sets between them."""
    pieces = tuple(piece.lstrip() or piece for piece in answer.pieces)
    begins = [max(begin, end - len(piece)) for piece, (begin, end) in zip(pieces, answer.offsets, strict=True)]
    offsets = tuple((begin, end) for begin, (_, end) in zip(begins, answer.offsets, strict=True))
    return replace(answer, pieces=pieces, offsets=offsets)


def _describe_origin(found: Sources, needed: Sequence[int]) -> tuple[str, str]:
    """Say where an answer comes from, in few words and in a sentence."""
    rows = found.table.rows()
    if needed:
        lost = [f"{rows[number]['loss']:.1f} nats without passage {number}" for number in needed]
        said = f"The answer loses {list_first(lost, MAX_NAMED)}, {found.together:.1f} without all passages."
        return list_first([f"passage{JOIN}{number}" for number in needed], MAX_NAMED), said
    if any(row["loss"] >= LEAST and row["random"] is None for row in rows):
        short = f"the others are too short for {found.n_draws} different knock-outs"
        return "no passage that stands out", f"No passage stands out: {short}."
    most = max(row["loss"] for row in rows)
    what = "No single passage is needed" if most < LEAST else "No passage stands out from as many tokens elsewhere"
    without = f"the answer loses at most {most:.1f} nats without one, {found.together:.1f} without all"
    return "no passage of its own", f"{what}: {without}."
