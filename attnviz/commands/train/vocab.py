"""`attnviz vocab`: a vocabulary from a corpus, and how much of a text it does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attnviz import store
from attnviz.commands.train.spec import VocabSpec
from attnviz.commands.train.vocabulary import Coverage, vocabulary_report
from attnviz.inputs import Inputs
from attnviz.models.tokenizer import UNKNOWN, TextTokenizer, train
from attnviz.running import Events, Result
from attnviz.specs import VocabularyOptions

HELD_OUT_STRIDE = 10  # without a held-out split, one text in ten is held out


def vocab(spec: VocabSpec, inputs: Inputs) -> Events:
    """Build a vocabulary, measure it on texts that it was not made from, and save it."""
    corpus, folder = inputs.corpus, inputs.out
    texts = corpus.texts
    vocabulary = train(texts, spec.vocabulary)
    if inputs.held_out is None:
        coverage = _measure_on_tenth(texts, spec.vocabulary)
    else:
        coverage = _measure_coverage(vocabulary, inputs.held_out.texts, inputs.held_out.name)
    report = vocabulary_report(
        corpus=corpus.name,
        n_texts=len(texts),
        entries=vocabulary.entries,
        counts=vocabulary.count(texts),
        coverage=coverage,
        sha256=vocabulary.sha256,
    )
    with store.locked(folder):
        store.write(folder / "tokenizer.json", vocabulary.to_json().encode())
    return iter((Result(report, (folder / "tokenizer.json",), corpus.notices),))


def _measure_on_tenth(texts: Sequence[str], spec: VocabularyOptions) -> Coverage | None:
    """Measure on a tenth of the texts a vocabulary of the other nine; the one that is saved is of all."""
    if len(texts) < HELD_OUT_STRIDE:
        return None
    rest = [text for position, text in enumerate(texts) if position % HELD_OUT_STRIDE]
    where = "every tenth text, with a vocabulary made from the others"
    return _measure_coverage(train(rest, spec), texts[::HELD_OUT_STRIDE], where)


def _measure_coverage(vocabulary: TextTokenizer, texts: Sequence[str], where: str) -> Coverage:
    counts: Counter[str] = vocabulary.count(texts)
    return Coverage(where, n_tokens=counts.total(), n_known=counts.total() - counts[UNKNOWN])
