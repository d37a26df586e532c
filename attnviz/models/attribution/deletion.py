"""Methods that ask a model for its answer without a token, and the chance that every method has to beat."""

import numpy as np

from attnviz.errors import InvalidText
from attnviz.models.attribution.subject import MethodScores, Subject


def leave_one_out(subject: Subject) -> MethodScores:
    """Measure how much of the answer's probability, or of its number, goes with each token (Li et al. 2016,
    arXiv:1612.08220).

    One pass for each token of the text, and one with all of them. Markers have 0. Raises InvalidText for one token:
    nothing is left without it.
    """
    n_tokens = len(subject.ids)
    places = np.flatnonzero(~np.array(subject.tokens.special, dtype=bool))
    if len(places) < 2:
        problem = "leave-one-out needs two tokens: nothing is left of one"
        raise InvalidText(problem, hint="Choose --method relevance, or a longer text.")
    scores = np.zeros(n_tokens)
    whole, *without = subject.values(
        [np.ones(n_tokens, dtype=bool), *(np.arange(n_tokens) != place for place in places)]
    )
    scores[places] = whole - np.array(without)
    return MethodScores(scores, 1 + len(places))


def chance(subject: Subject) -> MethodScores:
    """Return random scores from 0 to 1, evenly distributed, the same for the same text and seed."""
    generator = np.random.default_rng([subject.seed, *subject.ids])
    return MethodScores(generator.random(len(subject.ids)), 0, signed=False)
