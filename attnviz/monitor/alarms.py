"""What is wrong with a head of a model that trains: scores explode, entropy collapses, or both are no numbers any more.

Knows numpy only.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

SCORE, ENTROPY = 0, 1  # places of the largest logit and of the entropy among the numbers of a head
N_BEFORE, MIN_BEFORE = 20, 3  # looks whose median score a head is held against
LARGE_SCORE, GROWTH = 30.0, 3.0  # e^30 is 10^13: one key gets all
COLLAPSED = 0.03  # entropy, of the most possible

HeadNumbers = Float[np.ndarray, "layer head number"]  # of a look, or the cells of its maps


class Alarm(NamedTuple):
    """What is wrong with a head, and since which step."""

    step: int
    layer: int
    head: int
    kind: str
    said: str

    def __str__(self) -> str:
        return f"step {self.step}: head {self.layer}.{self.head}: {self.kind} ({self.said})"


class Limits(NamedTuple):
    """Which scores are large and which entropies are low, and where that was taken from."""

    large_score: float = LARGE_SCORE
    collapsed: float = COLLAPSED
    name: str = "fixed limit"

    def judge(self, step: int, look: HeadNumbers, looks: Mapping[int, HeadNumbers]) -> Iterator[Alarm]:
        """Yield what is wrong with the heads of a look, held against the looks before it by their steps."""
        before = [each[..., SCORE] for each in list(looks.values())[-N_BEFORE:] if each.shape == look.shape]
        usual = np.median(before or [look[..., SCORE]], axis=0)
        # Layers of fewer heads than others are filled up with NaN: what was no number before is no alarm.
        is_lost = np.isfinite(usual) & ~np.isfinite(look[..., [SCORE, ENTROPY]]).all(axis=-1)
        for layer, head in np.argwhere(is_lost).tolist():
            yield Alarm(step, layer, head, "not finite", "its scores or weights are NaN or infinite")
        for layer, head in np.argwhere(look[..., SCORE] > self.large_score).tolist() if before else []:
            (score, entropy), normal = look[layer, head, [SCORE, ENTROPY]].tolist(), usual[layer, head]
            if len(before) >= MIN_BEFORE and score > GROWTH * normal:
                said = f"from {normal:.1f} to {score:.0f}; {self.name} {self.large_score:.0f}"
                yield Alarm(step, layer, head, "scores explode", said)
            if entropy < self.collapsed:
                said = f"{entropy:.3f} of the most possible; {self.name} {self.collapsed:.3f}"
                yield Alarm(step, layer, head, "entropy collapsed", said)
