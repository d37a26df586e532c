"""`attnviz attribute --card`: methods tested over texts, each against chance. What a pass costs is paid once a text.

Whether scores say what a model's answer hangs on is tested by deleting tokens, and by rank.
Comprehensiveness and sufficiency after DeYoung et al. 2020 (ERASER, arXiv:1911.03429, section 4); rank correlation
after Jain & Wallace 2019 (arXiv:1902.10186, section 4.1). Removal counts the few tokens that a method puts first, on
the side that it says they are on. τ counts every pair of tokens alike, also the many that hardly change anything,
and only their sizes. So a method may be good at one and poor at the other.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attnviz.commands.attribute.card_report import CHANCE, NUMBERS, card_report
from attnviz.display import format_count
from attnviz.errors import InvalidText
from attnviz.inputs import leave_out_copies
from attnviz.models.attribution import Attributable
from attnviz.models.attribution.subject import Subject, attribute
from attnviz.records.attribution import Attribution, Question
from attnviz.report import Report
from attnviz.running import Progress
from attnviz.table.numbers import Numbers
from attnviz.text import Corpus, Document

FRACTIONS = (0.05, 0.1, 0.2, 0.5)  # of a text's tokens, the first by score
MIN_TOKENS = 2  # fewer leave nothing when one is deleted
SHORT, UNKNOWN = "one token in all", "half of their tokens or more are not in the model's vocabulary"


def first_tokens(
    scores: Float[np.ndarray, " token"], removable: Bool[np.ndarray, " token"]
) -> list[Bool[np.ndarray, " token"]]:
    """Select the tokens that the scores put first, for each fraction: as many as fit, of equal ones the earliest.

    A fraction of less than one token is left out, and one that chooses as many as the one before.
    """
    places = np.flatnonzero(removable)
    order = places[np.argsort(-scores[places], kind="stable")]
    counts = dict.fromkeys(int(share * len(places)) for share in FRACTIONS)
    return [np.isin(np.arange(len(scores)), order[:count]) for count in counts if count]


def kendall(one: Float[np.ndarray, " token"], other: Float[np.ndarray, " token"]) -> float:
    """Compute Kendall's τ-b (1945, doi:10.1093/biomet/33.3.239), from -1 to 1; NaN if either has equal values only."""
    first, second = (np.sign(each[:, None] - each[None, :]) for each in (one, other))
    norm = np.sqrt(float((first**2).sum()) * float((second**2).sum()))
    return float((first * second).sum() / norm) if norm else float("nan")


LEAVE_ONE_OUT, GRADIENT = "leave-one-out", "gradient"
N_CHANCE = 4  # random orders of each text, so that chance strays less


def card_of(
    question: Question, methods: Sequence[str], model: Attributable, corpus: Corpus, documents: Sequence[Document]
) -> Generator[Progress, None, tuple[Report, Iterator[Sequence[Any]], tuple[str, ...]]]:
    """Test methods on each text, then say how each did. Chance and leave-one-out are always among them.

    A text that stands there several times is read once: its copies say nothing of other texts. Raises InvalidText where
    each is of one token or mostly unknown, so that there is no verdict to explain.
    """
    methods = [CHANCE, *(name for name in dict.fromkeys((*methods, LEAVE_ONE_OUT)) if name != CHANCE)]
    rows: list[dict[str, object]] = []
    documents, copies = leave_out_copies(documents)
    yield Progress(0, len(documents), "texts", notices=(*corpus.notices, *copies))
    left_out: list[str] = []
    for count, document in enumerate(documents, 1):
        subject = model.subject(document.text, document.name, question)
        is_short = sum(not special for special in subject.tokens.special) < MIN_TOKENS
        if is_short or subject.tokens.mostly_unknown:
            left_out.append(SHORT if is_short else UNKNOWN)
            continue
        rows += [{"text": document.name, **row} for row in test_methods(subject, methods)]
        yield Progress(count, len(documents), "texts", document.name)
    reasons, of = dict.fromkeys(left_out), f"of {format_count(len(documents), 'texts')}"
    if not rows:
        hint = "Give texts of two tokens or more, of words that the model knows."
        raise InvalidText(f"nothing is left {of}: {' or '.join(reasons)}", hint=hint)
    notices = tuple(f"leaving out {left_out.count(why)} {of}: {why}" for why in reasons)
    found = Numbers.from_rows(rows, ("text", "method"))
    return card_report(found, subject.provenance, corpus.name, subject.answering.kind), found.cells(), notices


def test_methods(subject: Subject, methods: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield a row for each method, with its NUMBERS on one text. A rank correlation that there is not is NaN."""
    found: dict[str, Attribution] = {}
    for name in dict.fromkeys((*methods, LEAVE_ONE_OUT, GRADIENT)):
        found[name] = attribute(subject, name)
    references = [np.abs(found[name].scores) for name in (LEAVE_ONE_OUT, GRADIENT)]
    removable = ~subject.tokens.markers  # not those that the model added
    orders = [(name, found[name].scores) for name in methods if name != CHANCE]
    generator = np.random.default_rng([subject.seed, *subject.ids])
    orders += [(CHANCE, generator.random(len(subject.ids))) for _ in range(N_CHANCE)]
    # What is lost without the first tokens of each order, and with nothing but these, as means over the fractions. The
    # parts of all orders are read together: a batch of many costs little more than one.
    chosen = np.array([first_tokens(scores, removable) for _, scores in orders])  # [order, fraction, token]
    parts = np.stack([~chosen, chosen | ~removable], axis=1)
    left = np.reshape(subject.values([*parts.reshape(-1, len(removable))]), parts.shape[:3])
    losses = (subject.target.value - left).mean(axis=-1)  # [order, comprehensiveness and sufficiency]
    for name in methods:
        own = [place for place, (of, _) in enumerate(orders) if of == name]
        taus = [
            [kendall(np.abs(orders[place][1])[removable], reference[removable]) for reference in references]
            for place in own
        ]
        numbers = (*losses[own].mean(axis=0).tolist(), *np.mean(taus, axis=0).tolist(), float(found[name].n_passes))
        yield {"method": name, **dict(zip(NUMBERS, numbers, strict=True))}
