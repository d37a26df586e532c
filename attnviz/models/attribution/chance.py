"""Random scores, the same for the same text and seed: what a method that knows nothing would give."""

from __future__ import annotations

import numpy as np

from attnviz.models.attribution.scores import MethodScores
from attnviz.models.attribution.subject import Subject


def chance(subject: Subject) -> MethodScores:
    """From 0 to 1, evenly distributed."""
    generator = np.random.default_rng([subject.seed, *subject.ids])
    return MethodScores(generator.random(len(subject.ids)), 0, signed=False)
