"""How fast training is, beside the same model written in the textbook way.

    python -m tests.benchmarks.throughput [path/to/imdb] [--texts 2000] [--steps 20]

The recipe of `attnviz train` twice: the same first weights, in each step the same texts and the same tokens of each.
The textbook model pads every batch to 512 tokens and holds the weights of every head, as softmax(q kᵀ / √d_head) is
written down. Both take each step in turn, the first is not counted, and both have to come to the same loss. Once with
the recipe's stretches of 256 tokens, once with whole texts (512 tokens at most).

Dropout of every kind is off, and texts begin at position 0: what is drawn depends on the shape of the batch, padding
included, so that no two ways of padding could have the same losses with it. The bar is the median ratio of the recipe.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the commands do

import torch
from torch import Tensor, nn

from attnviz.commands.train.recipe import begin
from attnviz.commands.train.spec import TrainSpec
from attnviz.commands.train.training import Training, TrainingStep
from attnviz.models.attention import AttentionOutput, MultiHeadAttention
from attnviz.models.classifier import Classifier
from attnviz.models.encoder import PAD_ID, EncoderBlock
from attnviz.options import build
from attnviz.specs import TextOptions
from attnviz.text import load_corpus

FIXED = 512  # tokens that the textbook pads to
BAR = 2.0
NEAR = 1e-4  # losses are about 0.7


class Textbook(nn.Module):
    """Multi-head attention as it stands in textbooks, with the projections of `ours`."""

    def __init__(self, ours: MultiHeadAttention) -> None:
        super().__init__()
        self.ours = ours

    def forward(
        self, queries: Tensor, memory: Tensor, attendable: Tensor | None = None, *, need_weights: bool = True
    ) -> AttentionOutput:
        def split(states: Tensor) -> Tensor:
            return states.reshape(*states.shape[:-1], self.ours.n_heads, self.ours.d_head).transpose(-3, -2)

        query, key = split(self.ours.query(queries)), split(self.ours.key(memory))
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.ours.d_head)
        if (position := self.ours.position) is not None:
            most = position.max_distance
            far = torch.arange(key.shape[-2]) - torch.arange(query.shape[-2])[:, None]
            scores = scores + position.bias[:, far.clamp(-most, most) + most]
        if attendable is not None:
            scores = scores.masked_fill(~attendable.unsqueeze(-3), -torch.inf)
        weights = scores.softmax(dim=-1)
        heads = weights @ split(self.ours.value(memory))
        return AttentionOutput(self.ours.output(heads.transpose(-3, -2).flatten(-2)), weights)


def in_textbook_attention(model: nn.Module) -> None:
    """Write the attention of a model's blocks as a textbook does. The parameters stay the same objects."""
    for block in list(model.modules()):
        if isinstance(block, EncoderBlock):
            assert isinstance(block.attention, MultiHeadAttention)
            block.attention = Textbook(block.attention)


def to_fixed(_: nn.Module, given: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Pad a batch of ids, and what of it is real, to `FIXED` tokens."""
    ids, real = given
    missing = (0, FIXED - ids.shape[1])
    return nn.functional.pad(ids, missing, value=PAD_ID), nn.functional.pad(real, missing, value=False)


def without_chance(classifier: Classifier) -> None:
    """No dropout, and every text at its own positions."""
    for module in classifier.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    classifier.encoder.embedding.reach = 0


def runs(texts: Sequence[str], labels: Sequence[int], crop: int) -> tuple[Training, Training]:
    """Ours and the textbook's, with the same first weights."""
    size = min(TrainSpec().batch_size, len(texts) // 5)  # the packaged sample is smaller than one batch
    spec = build(TrainSpec, crop=crop, batch_size=size, device="cpu")
    ours, textbook = (begin(texts, labels, spec).training for _ in range(2))
    for training in (ours, textbook):
        without_chance(training.classifier)
    in_textbook_attention(textbook.classifier)
    textbook.classifier.register_forward_pre_hook(to_fixed)
    return ours, textbook


class Turn(NamedTuple):
    """One step of each: seconds, losses, and the tokens that both read."""

    n_texts: int
    n_tokens: int
    ours: float
    textbook: float
    our_loss: float
    textbook_loss: float


def turns(ours: Training, textbook: Training, n_steps: int) -> Iterator[Turn]:
    """Steps in turn. Those that end an epoch also measure the texts held out, and are left out."""
    read: list[int] = []
    ours.classifier.register_forward_pre_hook(lambda _, given: read.append(int(given[1].sum())))
    steps = zip(_timed(ours.steps()), _timed(textbook.steps()), strict=False)
    for number, ((step, seconds), (other, other_seconds)) in enumerate(steps):
        if number and not step.ends_epoch:
            yield Turn(step.n_texts, read[-1], seconds, other_seconds, step.loss, other.loss)
        if number == n_steps:
            return


def _timed(steps: Iterator[TrainingStep]) -> Iterator[tuple[TrainingStep, float]]:
    begun = time.perf_counter()
    for step in steps:
        yield step, time.perf_counter() - begun
        begun = time.perf_counter()


def told(what: str, taken: Sequence[Turn]) -> float:
    """Print how fast both are; gives the median ratio."""
    n_texts, n_tokens = sum(turn.n_texts for turn in taken), sum(turn.n_tokens for turn in taken)
    print(f"{what}: {len(taken)} steps, {n_texts} texts, {n_tokens:,} tokens")
    for name, seconds in (
        ("ours", sum(turn.ours for turn in taken)),
        ("textbook", sum(turn.textbook for turn in taken)),
    ):
        print(f"  {name:9}{n_texts / seconds:8.0f} texts/s {n_tokens / seconds:10,.0f} tokens/s")
    ratios = [turn.textbook / turn.ours for turn in taken]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    apart = max(abs(turn.our_loss - turn.textbook_loss) for turn in taken)
    losses = f"{taken[0].our_loss:.4f} to {taken[-1].our_loss:.4f}"
    print(f"  textbook / ours {median:.2f} × ({low:.2f} to {high:.2f}); losses {losses}, at most {apart:.1e} apart")
    assert apart <= NEAR, "the losses are not the same"
    return median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="sample")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=20)
    asked = parser.parse_args()
    half = f"train[:{asked.texts // 2}]+train[-{asked.texts // 2}:]"  # IMDb comes ordered by label
    documents = load_corpus(
        TextOptions(dataset=asked.data, split="train" if asked.data == "sample" else half)
    ).documents
    texts, labels = [document.text for document in documents], [document.label or 0 for document in documents]
    print(f"{len(texts)} texts, {torch.get_num_threads()} thread(s)")
    recipe = TrainSpec().crop
    medians = [
        told(f"{what} of {crop} tokens at most", list(turns(*runs(texts, labels, crop), asked.steps)))
        for what, crop in (("stretches", recipe), ("texts", FIXED))
    ]
    kept = medians[0] >= BAR
    print(f"the bar of {BAR:g} × is {'kept' if kept else 'missed'}")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
