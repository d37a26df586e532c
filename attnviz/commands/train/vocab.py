"""`attnviz vocab`: a vocabulary from a corpus, and how much of a text it does not know."""

from attnviz import store
from attnviz.commands.train.spec import VocabSpec
from attnviz.display import escape_for_display
from attnviz.inputs import Inputs
from attnviz.models.tokenizer import UNKNOWN, TextTokenizer, train
from attnviz.report import Block, Column, Note, Report, Row, Table
from attnviz.running import Events, Result
from attnviz.text import Corpus

HELD_OUT_STRIDE = 10  # one text in ten is held out, to measure on
N_LISTED = 10
MAX_NAME_LENGTH = 200


def vocab(spec: VocabSpec, inputs: Inputs) -> Events:
    """Build a vocabulary, measure it on texts that it was not made from, and save it."""
    corpus, folder = inputs.corpus, inputs.out
    texts, coverage = corpus.texts, None
    vocabulary = train(texts, spec.vocabulary)
    if len(texts) >= HELD_OUT_STRIDE:  # what is measured is made of nine tenths, and what is saved of all
        rest = train([text for place, text in enumerate(texts) if place % HELD_OUT_STRIDE], spec.vocabulary)
        counts = rest.count(texts[::HELD_OUT_STRIDE])
        coverage = 1 - counts[UNKNOWN] / counts.total() if counts.total() else 0.0
    report = _describe_vocabulary(vocabulary, corpus, coverage)
    with store.locked(folder):
        store.write(folder / "tokenizer.json", vocabulary.to_json().encode())
    return iter((Result(report, (folder / "tokenizer.json",), corpus.notices),))


def _describe_vocabulary(vocabulary: TextTokenizer, corpus: Corpus, coverage: float | None) -> Report:
    """Show size, coverage, and the commonest entries with how often they occur in the corpus."""
    counts = vocabulary.count(corpus.texts)
    commonest = [(entry, count) for entry, count in counts.most_common(N_LISTED + 1) if entry != UNKNOWN][:N_LISTED]
    facts: list[Row] = [("entries", len(vocabulary)), ("texts", len(corpus.texts)), ("tokens", counts.total())]
    if coverage is not None:
        facts.append(("coverage (share of tokens known)", coverage))
        facts.append(("measured on", "every tenth text, with a vocabulary made from the others"))
    rows = tuple((escape_for_display(entry), count) for entry, count in commonest)
    blocks: list[Block] = [
        Table("facts", "size and coverage", "facts", (Column("what"), Column("value", digits=4)), tuple(facts)),
        Table("commonest", "commonest entries", "facts", (Column("entry"), Column("count", digits=0)), rows),
    ]
    if coverage is None:
        blocks.append(Note("Coverage was not measured: there are fewer than ten texts."))
    return Report(
        title=f"vocabulary of {escape_for_display(corpus.name, MAX_NAME_LENGTH)}",
        subtitle=f"sha256 {vocabulary.sha256[:12]}…",
        blocks=tuple(blocks),
        data={
            "corpus": corpus.name,
            "texts": len(corpus.texts),
            "entries": len(vocabulary),
            "tokens": counts.total(),
            "coverage": coverage,
            "commonest": [list(pair) for pair in commonest],
            "sha256": vocabulary.sha256,
        },
    )
