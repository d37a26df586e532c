"""From texts to probabilities, in batches of like lengths and in bounded memory. Knows torch; no files, no pictures.

Ids of texts are cut to size and padded to tensors.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from attnviz.bounded import check_room
from attnviz.document import Document
from attnviz.errors import InvalidModel, InvalidText
from attnviz.models.checkpoint import Classifier
from attnviz.models.device import enough_memory
from attnviz.models.encoder import PAD_ID
from attnviz.models.protocols import WINDOW
from attnviz.models.sizes import BASE, FLOAT32, count_kept
from attnviz.models.tokenizer import Encoding
from attnviz.records.answers import AnswerKind, Prediction
from attnviz.specs import KeepKind

Ids = Int[np.ndarray, "_"]  # each text has a length of its own
SHORT = 0.3  # share of the texts of which a short stretch is taken
MIN_CROP, MAX_SHORT_CROP = 8, 64  # tokens of such a stretch, its logarithm evenly distributed
BUCKET = 50  # batches whose texts are sorted by length together, so that little padding is needed


def pad(texts: Sequence[Ids], multiple: int = 1) -> tuple[Int[Tensor, "text token"], Bool[Tensor, "text token"]]:
    """Pad texts to the rows of one batch, as wide as the longest, or up to the next multiple.

    Returns their ids, and which of these are real: False for padding.
    """
    lengths = torch.tensor([len(text) for text in texts])
    ids = torch.full((len(texts), -(-int(lengths.max()) // multiple) * multiple), PAD_ID)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.from_numpy(text)
    return ids, torch.arange(ids.shape[1]) < lengths.unsqueeze(1)


def cut_text(ids: Ids, max_tokens: int | None, keep: KeepKind, n_markers: int = 0) -> Ids:
    """Cut a text to `max_tokens`, as `TextTokenizer.encode` does: the markers, then what is kept of the text."""
    room = None if max_tokens is None else max(1, max_tokens - n_markers)
    head, tail = count_kept(len(ids) - n_markers, room, keep)
    return np.concatenate([ids[: n_markers + head], ids[len(ids) - tail :]]) if tail else ids[: n_markers + head]


def crop(ids: Ids, n_tokens: int, generator: np.random.Generator, n_markers: int = 0) -> Ids:
    """Cut a text to `n_tokens`: as often head and tail as a stretch from anywhere after its markers.

    Attention costs the square of the length: training on halves takes a quarter of the time.
    """
    if len(ids) <= n_tokens:
        return ids
    if generator.random() < 0.5:
        return cut_text(ids, n_tokens, "head-tail", n_markers)
    start = int(generator.integers(n_markers, len(ids) - (n_tokens - n_markers) + 1))
    return np.concatenate([ids[:n_markers], ids[start : start + n_tokens - n_markers]])


def stretch(ids: Ids, n_tokens: int, generator: np.random.Generator, n_markers: int = 0) -> Ids:
    """Cut as `crop` does, or for a share of the texts a sentence or a few, so that short texts are learned too."""
    n_words = len(ids) - n_markers
    if generator.random() >= SHORT or n_words <= MIN_CROP:
        return crop(ids, n_tokens, generator, n_markers)
    length = min(n_words, int(np.exp(generator.uniform(np.log(MIN_CROP), np.log(MAX_SHORT_CROP)))))
    start = n_markers + int(generator.integers(n_words - length + 1))
    return np.concatenate([ids[:n_markers], ids[start : start + length]])[: max(n_tokens, 1)]


def shuffle_batches(
    lengths: Sequence[int], batch_size: int, generator: np.random.Generator
) -> list[Int[np.ndarray, " text"]]:
    """Draw every text once, in batches of like lengths and in random order."""
    order = generator.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), batch_size * BUCKET):
        bucket = order[start : start + batch_size * BUCKET]
        bucket = bucket[np.argsort([lengths[text] for text in bucket], kind="stable")]
        batches += [bucket[first : first + batch_size] for first in range(0, len(bucket), batch_size)]
    return [batches[place] for place in generator.permutation(len(batches))]


def batch_by_length(
    lengths: Sequence[int], batch_size: int, max_tokens: int | None = None, *, alike: bool = False
) -> Iterator[Int[np.ndarray, " text"]]:
    """Yield every text once, the shortest first; in batches of no more than `max_tokens`, or of one text.

    `alike`: only texts of one length are in a batch.
    """
    order = np.argsort(lengths, kind="stable")
    first = 0
    while first < len(order):
        size, most = 1, min(batch_size, len(order) - first)
        while size < most:
            longest = lengths[order[first + size]]
            if (max_tokens and (size + 1) * longest > max_tokens) or (alike and longest > lengths[order[first]]):
                break
            size += 1
        yield order[first : first + size]
        first += size


BATCH = 64  # texts
BATCH_TOKENS = 2**12  # of all of them
WIDTH = 16  # tokens that widths of batches are multiples of, so that memory that was freed fits again
STATES = 16  # numbers of d_model for each token, measured: states, projections, feed-forward


def classify(
    documents: Sequence[Document],
    read: Callable[[str], Encoding],
    compute: Callable[[Sequence[Encoding]], Float[np.ndarray, "text answer"]],
    kind: AnswerKind = "label",
) -> Iterator[Prediction]:
    """Yield one prediction per text, in order, with a window of the texts in memory.

    `read` cuts a text into tokens, `compute` answers several. Raises InvalidText for a text without tokens, by its
    name, and as `compute` does.
    """
    for start in range(0, len(documents), WINDOW):
        window, encodings = documents[start : start + WINDOW], list[Encoding]()
        for each in window:
            try:
                encodings.append(read(each.text))
            except InvalidText as error:
                raise InvalidText(f"{each.name}: {error.problem}", hint=error.hint) from error
        found = compute(encodings)
        check_finite(found)
        for document, encoding, row in zip(window, encodings, found.tolist(), strict=True):
            n_read = len(encoding.ids) - sum(encoding.tokens.special)
            counts = encoding.n_tokens, n_read, sum(encoding.tokens.unknown)
            probabilities, scores = ((), tuple(row)) if kind == "score" else (tuple(row), ())
            yield Prediction(document.name, probabilities, document.label, *counts, scores)


def answer_texts(
    classifier: Classifier, texts: Sequence[Ids], max_memory: float = math.inf
) -> Float[np.ndarray, "text label"]:
    """Return calibrated probabilities of texts that are cut, within so many GiB of the process.

    Raises TooLarge before a batch is too large.
    """
    longest, config = max(map(len, texts)), classifier.config.encoder
    n_texts = min(BATCH, len(texts), max(1, BATCH_TOKENS // longest))
    needed = BASE + 2 * sum(parameter.nbytes for parameter in classifier.parameters())
    needed += FLOAT32 * STATES * config.d_model * n_texts * longest
    if config.max_distance and n_texts > 1:  # else the kernel holds nothing for pairs of tokens
        needed += 2 * FLOAT32 * config.n_heads * n_texts * longest**2
    check_room(f"texts of {longest:,} tokens, {n_texts} at a time,", needed, max_memory)
    with enough_memory():
        return probabilities(classifier, logits(classifier, texts))


def logits(classifier: Classifier, texts: Sequence[Ids]) -> Float[Tensor, "text label"]:
    """Compute logits of texts that are cut, on the CPU and in order; not yet divided by the temperature."""
    device = classifier.temperature.device
    classifier.eval()
    found = torch.zeros(len(texts), len(classifier.config.labels))
    with torch.inference_mode():
        widths = [-(-len(text) // WIDTH) * WIDTH for text in texts]
        for chosen in batch_by_length(widths, BATCH, BATCH_TOKENS):
            ids, real = pad([texts[i] for i in chosen], WIDTH if len(chosen) > 1 else 1)
            found[torch.from_numpy(chosen)] = classifier(ids.to(device), real.to(device)).cpu()
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
