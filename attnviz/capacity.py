"""The experiment of `attnviz capacity`: what is trained, and what comes of it. Knows no torch and no pictures.

The task is recall, see `attnviz.models.recall`: of `length` tokens `items` carry a role, and a query reports the value
of each. What is trained is one layer that connects the query with the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

N_VALUES = 16
MAX_ITEMS = 26  # roles are called a to z
NOISES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # of the root mean square of the values
LENGTHS = (4, 16, 64)  # of sequences with one item, on which layers are compared
LAYERS = ("attention", "gated recurrent", "recurrent", "convolution", "dilated convolutions")


@dataclass(frozen=True)
class Trial:
    """One network to train: from these follow all its numbers."""

    layer: str  # of LAYERS
    heads: int  # of attention
    items: int
    d_model: int
    length: int
    steps: int
    seed: int

    @property
    def slug(self) -> str:
        """What its file is called."""
        layer = self.layer.replace(" ", "-")
        sizes = f"{self.heads}-heads-{self.items}-of-{self.length}-width-{self.d_model}"
        return f"{layer}-{sizes}-{self.steps}-steps-seed-{self.seed}"


@dataclass(frozen=True)
class Plan:
    """What is trained, each from seeds 0 to `seeds` - 1; the trials here are those of seed 0."""

    grid: tuple[Trial, ...]  # every number of heads with every number of items
    wider: tuple[Trial, ...]  # fewest heads and most items, with more parameters
    longer: tuple[Trial, ...]  # likewise, trained for more steps
    layers: tuple[Trial, ...]  # attention and other layers on one item, in sequences of LENGTHS
    seeds: int

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All of them, each once."""
        of_one_seed = dict.fromkeys((*self.grid, *self.wider, *self.longer, *self.layers))
        return tuple(replace(trial, seed=seed) for trial in of_one_seed for seed in range(self.seeds))


@dataclass(frozen=True)
class Outcome:
    """What a trained network can do. Shares are of sequences that it was not trained on, the same for all networks."""

    trial: Trial
    n_parameters: int
    all_right: float  # share of sequences of which every item is reported right
    item_right: float  # share of items that are
    by_noise: tuple[float, ...]  # `all_right` at each of NOISES
    margins: tuple[float, ...]  # of each item, its value's logit above the highest of other values: a mean
    weights: tuple[tuple[float, ...], ...]  # [head][item], a mean
    text: str  # the first sequence
    maps: tuple[tuple[float, ...], ...]  # [head][token] of that


def role_name(number: int) -> str:
    """The letter of a role: a is 1."""
    return chr(ord("a") + number - 1)
