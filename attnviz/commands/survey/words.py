"""Which words heads attend to, beyond how often they stand there. Knows `survey`."""

from __future__ import annotations

import numpy as np

from attnviz.commands.survey.survey import MASS_BITS, Survey
from attnviz.display import escape_for_display
from attnviz.report import Column, LazyRows, Row, Table

N_WORDS = 3  # listed of each head
MIN_SUPPORT = 20  # times that a word stands in the texts: of rarer ones a mean says little


def words_table(survey: Survey) -> Table:
    """The words that receive most beyond an equal share: lift × and support."""
    columns = (Column("layer"), Column("head"), Column("words"))
    title = "What is attended to: × an equal share (times in the texts)"
    return Table("words", title, "facts", columns, LazyRows(lambda: _rows(survey)))


def lifts(survey: Survey) -> np.ndarray:
    """[word, head]: the mean share that a word's places receive, as a multiple of the mean over all places."""
    words = survey.words
    means = words.mass / 2**MASS_BITS / words.support[:, None]
    everywhere = words.mass.sum(axis=0) / 2**MASS_BITS / words.support.sum()
    return np.asarray(means / everywhere)


def _rows(survey: Survey) -> list[Row]:
    often = np.flatnonzero(survey.words.support >= MIN_SUPPORT)
    of_words, rows = lifts(survey)[often], list[Row]()
    for place, of in enumerate(survey.info.heads):
        best = np.argsort(-of_words[:, place], kind="stable")[:N_WORDS]
        said = ", ".join(
            f"{escape_for_display(survey.words.words[word], 16)} {lift:.1f} × ({survey.words.support[word]:,})"
            for word, lift in zip(often[best], of_words[best, place], strict=True)
        )
        rows.append((*of, said or "-"))
    return rows
