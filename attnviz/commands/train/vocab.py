"""`attnviz vocab`: a vocabulary from a corpus, and how much of a text it does not know."""

from attnviz import store
from attnviz.commands.train.spec import VocabSpec
from attnviz.display import escape_for_display
from attnviz.inputs import Inputs
from attnviz.models.tokenizer import UNKNOWN, train
from attnviz.report import Block, Column, Note, Report, Row, Table
from attnviz.running import Events, Result

HELD_OUT_STRIDE = 10  # one text in ten is held out, to measure on
N_LISTED = 10
MAX_NAME_LENGTH = 200
NOT_MEASURED = "Coverage was not measured: there are fewer than ten texts."


def vocab(spec: VocabSpec, inputs: Inputs) -> Events:
    """Build a vocabulary, measure it on texts that it was not made from, and save it.

    Shows size, coverage, and the commonest entries with how often they occur in the corpus.
    """
    corpus, texts, coverage = inputs.corpus, inputs.corpus.texts, None
    vocabulary = train(texts, spec.vocabulary)
    counts = vocabulary.count(texts)
    sizes = {"entries": len(vocabulary), "texts": len(texts), "tokens": counts.total()}
    facts, notes = list[Row](sizes.items()), [Note(NOT_MEASURED)]
    if len(texts) >= HELD_OUT_STRIDE:  # what is measured is made of nine tenths, and what is saved of all
        rest = train([text for place, text in enumerate(texts) if place % HELD_OUT_STRIDE], spec.vocabulary)
        held = rest.count(texts[::HELD_OUT_STRIDE])
        coverage = 1 - held[UNKNOWN] / held.total() if held.total() else 0.0
        facts.append(("coverage (share of tokens known)", coverage))
        facts.append(("measured on", "every tenth text, with a vocabulary made from the others"))
        notes = []
    commonest = [(entry, count) for entry, count in counts.most_common(N_LISTED + 1) if entry != UNKNOWN][:N_LISTED]
    rows = tuple((escape_for_display(entry), count) for entry, count in commonest)
    blocks: tuple[Block, ...] = (
        Table("facts", "size and coverage", "facts", (Column("what"), Column("value", digits=4)), tuple(facts)),
        Table("commonest", "commonest entries", "facts", (Column("entry"), Column("count", digits=0)), rows),
        *notes,
    )
    name = f"vocabulary of {escape_for_display(corpus.name, MAX_NAME_LENGTH)}"
    said = {"coverage": coverage, "commonest": [*map(list, commonest)], "sha256": vocabulary.sha256}
    data = {"corpus": corpus.name, "texts": len(texts), **sizes, **said}
    report = Report(name, f"sha256 {vocabulary.sha256[:12]}…", blocks, data=data)
    with store.locked(inputs.out):
        store.write(inputs.out / "tokenizer.json", vocabulary.to_json().encode())
    return iter((Result(report, (inputs.out / "tokenizer.json",), corpus.notices),))
