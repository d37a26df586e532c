"""Leave-one-out: how much of the answer's probability goes with each token (Li et al. 2016, arXiv:1612.08220)."""

from __future__ import annotations

import numpy as np

from attnviz.models.attribution.scores import MethodScores
from attnviz.models.attribution.subject import Subject


def leave_one_out(subject: Subject) -> MethodScores:
    """One pass for each token of the text, and one with all of them. Markers have 0."""
    n_tokens = len(subject.ids)
    places = np.flatnonzero(~np.array(subject.tokens.special, dtype=bool))
    scores = np.zeros(n_tokens)
    if len(places) > 1:  # a text of no tokens has no answer
        whole, *without = subject.probabilities(
            [np.ones(n_tokens, dtype=bool), *(np.arange(n_tokens) != place for place in places)]
        )
        scores[places] = whole - np.array(without)
    return MethodScores(scores, 1 + len(places))
