"""Training without labels, before training with them: the texts themselves say what was hidden or replaced.

Krishna et al. 2022 (arXiv:2209.14389) and Amos et al. 2023 (arXiv:2310.02980) find that this helps also where there
are no other texts than those to be classified. It is what gives heads something to look for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from attnviz.commands.train.masking import Corrupted, Windows
from attnviz.commands.train.optimizer import Optimizer
from attnviz.errors import ExecutionError
from attnviz.models.attention import PositionBias
from attnviz.models.encoder import Encoder

LEARNING_RATE = 3e-3  # for several heads
LEARNING_RATE_OF_ONE_HEAD = 1.2e-3  # a head of full width collapses onto few keys at 4e-3
BATCH = 12  # windows
N_HELD_OUT_WINDOWS = 96  # windows that the loss is measured on
REPLACED_WEIGHT = 5.0  # of the loss of replaced words beside that of masked ones, which is about ten times as large


class WordObjectives(nn.Module):
    """What an encoder needs to say which word is hidden and which is replaced. No part of a checkpoint."""

    def __init__(self, n_words: int, d_model: int) -> None:
        super().__init__()
        self.word_bias = nn.Parameter(torch.zeros(n_words))
        self.replaced = nn.Linear(d_model, 1)

    def compute_word_logits(
        self, encoder: Encoder, states: Float[Tensor, "masked d_model"]
    ) -> Float[Tensor, "masked word"]:
        """Return logits by the embeddings, which are the output layer too (Press & Wolf 2017, arXiv:1608.05859)."""
        return functional.linear(states, encoder.embedding.words.weight, self.word_bias)

    def compute_losses(self, encoder: Encoder, given: Corrupted) -> tuple[Float[Tensor, ""], Float[Tensor, ""], float]:
        """Return the loss of masked words, that of which others are replaced, and the share of masked words found.

        Losses are cross-entropies in nats, the second a binary one: replaced words are told from those of the text.
        """
        states = encoder(given.ids)
        logits, words = self.compute_word_logits(encoder, states[given.masked]), given.original[given.masked]
        found = (logits.argmax(dim=-1) == words).cpu().double().mean().item()
        seen = self.replaced(states[~given.masked]).squeeze(-1)
        replaced = functional.binary_cross_entropy_with_logits(seen, given.replaced[~given.masked].to(seen.dtype))
        return functional.cross_entropy(logits, words), replaced, found


class Pretraining:
    """The first stage: `epochs` passes over the texts. As for `Training`, each step follows from seed and number."""

    def __init__(
        self, encoder: Encoder, windows: Windows, epochs: int, seed: int, learning_rate: float | None = None
    ) -> None:
        self.encoder = encoder
        config = encoder.config
        device = encoder.embedding.words.weight.device
        self.objectives = WordObjectives(config.n_words, config.d_model).to(device)
        self.windows = windows
        self.seed = seed
        self.done = 0
        self.steps_per_epoch = -(-len(windows) // BATCH)
        self.n_steps = epochs * self.steps_per_epoch
        usual = LEARNING_RATE_OF_ONE_HEAD if config.n_heads == 1 else LEARNING_RATE
        self.learning_rate = usual if learning_rate is None else learning_rate
        self._device = device
        self.optimizer = Optimizer((encoder, self.objectives), self.learning_rate, self.n_steps)

    def steps(self) -> Iterator[tuple[float, float]]:
        """Train, and yield for each step the loss of masked words and the share of them that is found."""
        self._choose_what_learns()
        while self.done < self.n_steps:
            epoch = self.done // self.steps_per_epoch
            windows = self.windows.shuffle(np.random.default_rng((self.seed, epoch, self.n_steps)))
            for number in range(self.steps_per_epoch):
                generator = np.random.default_rng((self.seed, self.done))
                parts = self.windows.corrupt(windows[number * BATCH : (number + 1) * BATCH], generator)
                given = Corrupted(*(part.to(self._device) for part in parts))
                self.encoder.eval()  # no dropout: what is hidden and replaced is noise enough
                hidden, replaced, found = self.objectives.compute_losses(self.encoder, given)
                loss = hidden + REPLACED_WEIGHT * replaced
                if not loss.isfinite():
                    raise ExecutionError(f"pretraining diverged: the loss of step {self.done + 1} is {loss.item()}")
                self.optimizer.step(loss, self.done)
                self.done += 1
                yield hidden.item(), found
        self._choose_what_learns()

    def _choose_what_learns(self) -> None:
        """Let position biases learn now and stay afterwards: torch's quickest kernel takes no mask that learns."""
        for module in self.encoder.modules():
            if isinstance(module, PositionBias):
                module.bias.requires_grad_(self.done < self.n_steps)

    def measure_held_out_loss(self, windows: Windows) -> float:
        """Return the masked-word loss on some windows of texts that were not trained on, the same each time."""
        generator = np.random.default_rng(self.seed)
        given = windows.corrupt(windows.shuffle(generator)[:N_HELD_OUT_WINDOWS], generator)
        self.encoder.eval()
        with torch.inference_mode():
            given = Corrupted(*(part.to(self._device) for part in given))
            hidden, _, _ = self.objectives.compute_losses(self.encoder, given)
        return hidden.item()
