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
    """Show size, coverage, and the commonest and rarest entries with how often they occur in the corpus."""
    entries, counts = vocabulary.entries, vocabulary.count(corpus.texts)
    special = {entry for entry in entries if entry.startswith("[") and entry.endswith("]") and len(entry) > 2}
    learned = [(entry, count) for entry, count in counts.items() if entry in entries and entry not in special]
    ordered = sorted(learned, key=lambda pair: (-pair[1], entries[pair[0]]))
    listed = {"commonest": ordered[:N_LISTED], "rarest": ordered[-N_LISTED:][::-1]}
    facts: list[Row] = [("entries", len(entries)), ("texts", len(corpus.texts)), ("tokens", counts.total())]
    if coverage is not None:
        facts.append(("coverage (share of tokens known)", coverage))
        facts.append(("measured on", "every tenth text, with a vocabulary made from the others"))
    columns = Column("what"), Column("value", digits=4)
    blocks: list[Block] = [Table("facts", "size and coverage", "facts", columns, tuple(facts))]
    for name, pairs in listed.items():
        rows = tuple((escape_for_display(entry), count) for entry, count in pairs)
        blocks.append(Table(name, f"{name} entries", "facts", (Column("entry"), Column("count", digits=0)), rows))
    if coverage is None:
        blocks.append(Note("Coverage was not measured: there are fewer than ten texts."))
    return Report(
        title=f"vocabulary of {escape_for_display(corpus.name, MAX_NAME_LENGTH)}",
        subtitle=f"sha256 {vocabulary.sha256[:12]}…",
        blocks=tuple(blocks),
        data={
            "corpus": corpus.name,
            "texts": len(corpus.texts),
            "entries": len(entries),
            "tokens": counts.total(),
            "coverage": coverage,
            **{name: [list(pair) for pair in pairs] for name, pairs in listed.items()},
            "sha256": vocabulary.sha256,
        },
    )
