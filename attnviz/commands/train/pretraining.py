"""Training without labels, before training with them: the texts themselves say what was hidden or replaced.

Krishna et al. 2022 (arXiv:2209.14389) and Amos et al. 2023 (arXiv:2310.02980) find that this helps also where there
are no other texts than those to be classified. It is what gives heads something to look for.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attnviz.commands.train.optimizer import Optimizer
from attnviz.errors import ExecutionError
from attnviz.models.attention import PositionBias
from attnviz.models.encoder import PAD_ID, Encoder
from attnviz.models.predicting import Ids

# Windows as the model gets them, as they were, which words are masked, and in which others a different word stands.
Corrupted = tuple[Int[Tensor, "window token"], ...]
MASKED_SHARE = 0.15  # of the words that is hidden (Devlin et al. 2019, arXiv:1810.04805)
REPLACED_SHARE = 0.12  # that another word stands in for (Clark et al. 2020, arXiv:2003.10555, with a second model)
WINDOW = 128  # tokens
LEARNING_RATE = 3e-3  # for several heads
LEARNING_RATE_OF_ONE_HEAD = 1.2e-3  # a head of full width collapses onto few keys at 4e-3
BATCH = 12  # windows
N_HELD_OUT_WINDOWS = 96  # windows that the loss is measured on
REPLACED_WEIGHT = 5.0  # of the loss of replaced words beside that of masked ones, which is about ten times as large


class Windows:
    """Texts one after the other, cut into windows without regard to where they end: no padding."""

    def __init__(self, texts: Sequence[Ids]) -> None:
        self.texts = texts
        self.stream = np.concatenate(texts).astype(np.int64)
        self.n_tokens = min(WINDOW, len(self.stream))
        firsts = self.stream[:-1]
        self._by_word = np.argsort(firsts, kind="stable")  # positions of each word, but for that of the last token
        self._counts = np.bincount(firsts, minlength=int(self.stream.max()) + 1)
        self._starts = np.cumsum(self._counts) - self._counts

    def __len__(self) -> int:
        return len(self.stream) // self.n_tokens

    def shuffle(self, generator: np.random.Generator) -> Int[np.ndarray, "window token"]:
        """Return windows of the texts in random order, each once; what is left at the end fills no window."""
        stream = np.concatenate([self.texts[text] for text in generator.permutation(len(self.texts))])
        windows = stream[: len(self) * self.n_tokens].reshape(len(self), self.n_tokens).astype(np.int64)
        return windows[generator.permutation(len(windows))]

    def corrupt(self, windows: Int[np.ndarray, "window token"], generator: np.random.Generator) -> Corrupted:
        """Mask and replace words; half of the replacements are drawn by frequency, half follow the word before."""
        chance = generator.random(windows.shape)
        masked = chance < MASKED_SHARE
        chosen = (chance >= MASKED_SHARE) & (chance < MASKED_SHARE + REPLACED_SHARE)
        anywhere = self.stream[generator.integers(len(self.stream), size=windows.shape)]
        before = np.concatenate([windows[:, :1], windows[:, :-1]], axis=1)
        nth = (generator.random(windows.shape) * self._counts[before]).astype(np.int64)
        found = self._by_word[np.minimum(self._starts[before] + nth, len(self._by_word) - 1)]
        follower = np.where(self._counts[before] > 0, self.stream[found + 1], self.stream[0])  # the first where none is
        other = np.where(generator.random(windows.shape) < 0.5, anywhere, follower)
        ids = np.where(masked, PAD_ID, np.where(chosen, other, windows))
        replaced = (ids != windows) & ~masked
        return tuple(map(torch.from_numpy, (ids, windows, masked, replaced)))


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
        ids, original, masked, other = (part.to(self.word_bias.device) for part in given)
        states = encoder(ids)
        logits, words = self.compute_word_logits(encoder, states[masked]), original[masked]
        found = (logits.argmax(dim=-1) == words).cpu().double().mean().item()
        seen = self.replaced(states[~masked]).squeeze(-1)
        replaced = functional.binary_cross_entropy_with_logits(seen, other[~masked].to(seen.dtype))
        return functional.cross_entropy(logits, words), replaced, found


class Pretraining:
    """The first stage: `epochs` passes over the texts, or none.

    As for `Training`, each step follows from seed and number.
    """

    def __init__(self, encoder: Encoder, windows: Windows, epochs: int, seed: int, learning_rate: float | None) -> None:
        self.encoder = encoder
        config = encoder.config
        self.objectives = WordObjectives(config.n_words, config.d_model).to(encoder.embedding.words.weight.device)
        self.windows = windows
        self.seed = seed
        self.done = 0
        self.steps_per_epoch = -(-len(windows) // BATCH)
        self.n_steps = epochs * self.steps_per_epoch
        usual = LEARNING_RATE_OF_ONE_HEAD if config.n_heads == 1 else LEARNING_RATE
        self.optimizer = Optimizer((encoder, self.objectives), learning_rate or usual, self.n_steps)

    def steps(self) -> Iterator[tuple[float, float]]:
        """Train, and yield for each step the loss of masked words and the share of them that is found."""
        self._choose_what_learns()
        while self.done < self.n_steps:
            epoch = self.done // self.steps_per_epoch
            windows = self.windows.shuffle(np.random.default_rng((self.seed, epoch, self.n_steps)))
            for number in range(self.steps_per_epoch):
                generator = np.random.default_rng((self.seed, self.done))
                given = self.windows.corrupt(windows[number * BATCH : (number + 1) * BATCH], generator)
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
            if isinstance(module, PositionBias) and self.n_steps:
                module.bias.requires_grad_(self.done < self.n_steps)

    def measure_held_out_loss(self, windows: Windows) -> float:
        """Return the masked-word loss on some windows of texts that were not trained on, the same each time."""
        generator = np.random.default_rng(self.seed)
        given = windows.corrupt(windows.shuffle(generator)[:N_HELD_OUT_WINDOWS], generator)
        self.encoder.eval()
        with torch.inference_mode():
            hidden, _, _ = self.objectives.compute_losses(self.encoder, given)
        return hidden.item()
