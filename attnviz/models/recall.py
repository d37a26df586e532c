"""Recall: a task on which heads of attention count, and the smallest network that has it to do. Knows torch; no files.

A sequence of tokens, each with a value; `n_items` of them, at random places, carry a role of their own. One query has
to report the value of every role. What a token is, is the sum of a vector for its role and one for its value, so which
value belongs to which role has to be kept apart by attention: a mean over several items under equal weights loses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attnviz.capacity import N_VALUES, Trial
from attnviz.models.attention import AttentionOutput, MultiHeadAttention
from attnviz.models.device import seeded
from attnviz.models.optimizer import Optimizer
from attnviz.models.sequences import Convolution, DilatedConvolutions, Recurrence

BATCH_SIZE = 64
LEARNING_RATE, OF_WIDTH = 1e-2, 32  # of wider networks as much lower: at this rate some never begin to learn
TEST_SEED, N_TESTED = 1_000_003, 4096  # sequences that no training draws


class Sequences(NamedTuple):
    """A batch of the task. `places` says where the items stand, in the order of their roles."""

    roles: Int[Tensor, "batch token"]  # from 1; 0: the token has none
    values: Int[Tensor, "batch token"]
    places: Int[Tensor, "batch item"]

    @property
    def answers(self) -> Int[Tensor, "batch item"]:
        """The value of each role."""
        return self.values.gather(1, self.places)


def draw_sequences(n: int, length: int, n_items: int, generator: torch.Generator) -> Sequences:
    """Draw `n` sequences: all values and places are equally likely."""
    places = torch.rand(n, length, generator=generator).argsort(dim=1)[:, :n_items]
    values = torch.randint(N_VALUES, (n, length), generator=generator)
    numbers = torch.arange(1, n_items + 1).expand(n, n_items)
    return Sequences(torch.zeros_like(values).scatter_(1, places, numbers), values, places)


class RecallNetwork(nn.Module):
    """One layer that connects the query with the tokens, residual, norm, feed-forward, norm, and the read-out.

    Its size depends on the number of heads no more than `MultiHeadAttention`'s does. Raises InvalidOption where
    d_model is not divisible by them.
    """

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        d_model = trial.d_model
        self.n_items = trial.items
        self.roles = nn.Embedding(trial.items + 1, d_model)
        self.values = nn.Embedding(N_VALUES, d_model)
        self.query = nn.Parameter(torch.randn(d_model))
        self.mixer = _mixer(trial)
        self.mixer_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))
        self.norm = nn.LayerNorm(d_model)
        self.read_out = nn.Linear(d_model, trial.items * N_VALUES)

    def forward(
        self, roles: Int[Tensor, "batch token"], values: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch item value"]:
        """Logits of each role's value."""
        states = self.mixer_norm(self.query + self.mix(roles, values).output.squeeze(1))
        states = self.norm(states + self.feed_forward(states))
        return torch.as_tensor(self.read_out(states).unflatten(-1, (self.n_items, N_VALUES)))

    def mix(self, roles: Int[Tensor, "batch token"], values: Int[Tensor, "batch token"]) -> AttentionOutput:
        """What the query gets of the tokens, and the weights of each head where the layer is attention."""
        query = self.query.expand(len(roles), 1, -1)
        mixed: AttentionOutput = self.mixer(query, self.roles(roles) + self.values(values))
        return mixed


def _mixer(trial: Trial) -> nn.Module:
    match trial.layer:
        case "attention":
            return MultiHeadAttention(trial.d_model, trial.heads)
        case "recurrent" | "gated recurrent":
            return Recurrence(trial.d_model, gated=trial.layer == "gated recurrent")
        case "convolution":
            return Convolution(trial.d_model)
        case _:
            assert trial.layer == "dilated convolutions"
            return DilatedConvolutions(trial.d_model)


def learning_rate(d_model: int) -> float:
    """The highest of the run for a network of this width."""
    return LEARNING_RATE * min(1.0, OF_WIDTH / d_model)


def train_recall(trial: Trial) -> RecallNetwork:
    """Train a network as the trial says: the same weights each time, whatever was drawn before."""
    generator = torch.Generator().manual_seed(trial.seed)
    with seeded(trial.seed):
        network = RecallNetwork(trial)
    optimizer = Optimizer([network], learning_rate(trial.d_model), trial.steps, fused=True)
    for number in range(trial.steps):
        batch = draw_sequences(BATCH_SIZE, trial.length, trial.items, generator)
        logits = network(batch.roles, batch.values)
        optimizer.step(functional.cross_entropy(logits.flatten(0, 1), batch.answers.flatten()), number)
    return network.eval()


def sequences_to_test(trial: Trial, n: int = N_TESTED) -> Sequences:
    """The sequences on which networks of this length and number of items are measured: for all the same."""
    return draw_sequences(n, trial.length, trial.items, torch.Generator().manual_seed(TEST_SEED))


@contextmanager
def noise(attention: nn.Module, sigma: float) -> Iterator[None]:
    """Within, every value vector gets normal noise of `sigma` times their root mean square: the same each time."""
    generator = torch.Generator().manual_seed(TEST_SEED)

    def add(_: nn.Module, __: tuple[Tensor, ...], values: Tensor) -> Tensor:
        size = values.square().mean().sqrt()
        return values + sigma * size * torch.randn(values.shape, generator=generator)

    with attention.get_submodule("value").register_forward_hook(add):
        yield
