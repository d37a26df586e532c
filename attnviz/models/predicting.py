"""From texts to probabilities, in batches of like lengths and in bounded memory. Knows torch; no files, no pictures."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from attnviz.bounded import check_room
from attnviz.errors import InvalidModel, InvalidText
from attnviz.models.batches import Ids, PaddedTexts, batch_by_length, cut_text, pad
from attnviz.models.checkpoint import Checkpoint
from attnviz.models.classifier import Classifier
from attnviz.models.device import enough_memory
from attnviz.models.protocols import WINDOW
from attnviz.models.sizes import BASE, FLOAT32
from attnviz.models.tokenizer import EMPTY
from attnviz.records.answers import AnswerKind
from attnviz.records.training_metrics import Prediction

BATCH = 64  # texts
BATCH_TOKENS = 2**12  # of all of them
WIDTH = 16  # tokens that widths of batches are multiples of, so that memory that was freed fits again
STATES = 16  # numbers of d_model for each token, measured: states, projections, feed-forward


def predict(
    saved: Checkpoint, texts: Iterable[str], names: Sequence[str] = (), max_memory: float = math.inf
) -> Iterator[Prediction]:
    """Yield one answer per text, in order, within so many GiB of the process.

    Raises InvalidText for a text without tokens, by its name if it has one, TooLarge before a batch is too large.
    """
    remaining = saved.tokenizer.ids(texts)
    named = iter(names) if names else (f"text {place}" for place in count())
    while window := list(islice(remaining, WINDOW)):
        n_markers = int(saved.tokenizer.classify)
        of_window = list(islice(named, len(window)))
        for name, ids in zip(of_window, window, strict=True):
            if len(ids) == n_markers:
                raise InvalidText(f"no tokens in {name}", hint=EMPTY)
        read = [cut_text(ids, saved.max_tokens, saved.keep, n_markers) for ids in window]
        longest = max(map(len, read))
        n_texts, config = min(BATCH, len(read), max(1, BATCH_TOKENS // longest)), saved.classifier.config.encoder
        needed = BASE + 2 * sum(parameter.nbytes for parameter in saved.classifier.parameters())
        needed += FLOAT32 * STATES * config.d_model * n_texts * longest
        if config.max_distance and n_texts > 1:  # else the kernel holds nothing for pairs of tokens
            needed += 2 * FLOAT32 * config.n_heads * n_texts * longest**2
        check_room(f"texts of {longest:,} tokens, {n_texts} at a time,", needed, max_memory)
        with enough_memory():
            found = probabilities(saved.classifier, logits(saved.classifier, read))
        check_finite(found)
        for name, ids, kept, row in zip(of_window, window, read, found, strict=True):
            counts = len(ids) - n_markers, len(kept) - n_markers, int((kept == saved.tokenizer.unknown_id).sum())
            yield Prediction(name, tuple(row.tolist()), None, *counts)


def logits(classifier: Classifier, texts: Sequence[Ids]) -> Float[Tensor, "text label"]:
    """Compute logits of texts that are cut, on the CPU and in order; not yet divided by the temperature."""
    device = classifier.temperature.device
    classifier.eval()
    found = torch.zeros(len(texts), len(classifier.config.labels))
    with torch.inference_mode():
        widths = [-(-len(text) // WIDTH) * WIDTH for text in texts]
        for chosen in batch_by_length(widths, BATCH, BATCH_TOKENS):
            batch: PaddedTexts = pad([texts[i] for i in chosen], WIDTH if len(chosen) > 1 else 1)
            found[torch.from_numpy(chosen)] = classifier(batch.ids.to(device), batch.real.to(device)).cpu()
    return found


def probabilities(classifier: Classifier, found: Float[Tensor, "text label"]) -> Float[np.ndarray, "text label"]:
    """Return calibrated probabilities, from logits."""
    return read_logits(found / classifier.temperature.cpu(), "label")


def read_logits(logits: Float[Tensor, "text answer"], kind: AnswerKind) -> Float64[np.ndarray, "text answer"]:
    """Return probabilities that sum to 1, or one for each label by itself, or the numbers as they are."""
    logits = logits.detach().cpu().double()  # mps has no float64
    found = logits.softmax(dim=-1) if kind == "label" else logits.sigmoid() if kind == "labels" else logits
    return np.asarray(found.numpy())


def check_finite(found: Float[np.ndarray, "text answer"]) -> None:
    """Raise InvalidModel for answers that are not numbers."""
    if not np.isfinite(found).all():
        raise InvalidModel("the model's answers are not numbers", hint="Its weights are damaged: copy them again.")
