"""What the heads of a trained model do, on reviews that it was not trained on and that no accuracy is reported on.

    python -m tests.benchmarks.heads path/to/imdb [model]

First, what its accuracy owes to attention: with the weights as they are, with each text's queries taken from another
text, and with every key attended to alike. Then, for each head, the words that get the most and the least attention,
as multiples of the same share for all, and how much a row differs from the mean row.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnviz.models import attention
from attnviz.models.batches import cut
from attnviz.models.checkpoint import Checkpoint
from attnviz.models.classifier_model import ClassifierModel
from attnviz.models.predicting import logits
from attnviz.specs.model import ModelOptions
from attnviz.specs.text import TextOptions
from attnviz.text import load_corpus
from attnviz.text.document import Document
from tests.made import load_encoder

HELD_OUT = "train[11250:12500]+train[23750:25000]"
DESCRIBED = 100  # texts of each label
FEWEST = 15  # occurrences of a word that is listed
SHOWN = 8
FUSED = attention.fused


def ablate(saved: Checkpoint, documents: list[Document]) -> None:
    texts = [cut(ids, saved.max_tokens, saved.keep) for ids in saved.tokenizer.ids(d.text for d in documents)]
    gold = np.array([document.label for document in documents])

    def uniform(query: Tensor, key: Tensor, value: Tensor, attendable: Tensor | None = None) -> Tensor:
        return FUSED(torch.zeros_like(query), key, value, attendable)

    def of_another(query: Tensor, key: Tensor, value: Tensor, attendable: Tensor | None = None) -> Tensor:
        return FUSED(query.flip(0), key, value, attendable)

    ways: dict[str, Callable[..., Tensor]] = {
        "as it is": FUSED,
        "queries of another text": of_another,
        "every key alike": uniform,
    }
    for name, way in ways.items():
        attention.fused = way
        predicted = logits(saved.classifier, texts).argmax(dim=-1).numpy()
        print(f"accuracy, {name}: {(predicted == gold).mean():.4f} ({len(gold):,} texts)")
    attention.fused = FUSED


def entropy(weights: np.ndarray) -> np.ndarray:
    values: np.ndarray = -(weights * np.log(np.maximum(weights, 1e-12))).sum(axis=-1)
    return values


def describe(model: ClassifierModel, documents: list[Document]) -> None:
    received: list[dict[str, list[float]]] = [defaultdict(list) for _ in range(model.n_heads)]
    apart = np.zeros(model.n_heads)
    spread = np.zeros(model.n_heads)
    for document in documents:
        maps = model.attention(document.text)
        n_tokens = maps.weights.shape[-1]
        for head, weights in enumerate(maps.weights[0]):
            mean = weights.mean(axis=0)
            for piece, share in zip(maps.queries.pieces, mean * n_tokens, strict=True):
                received[head][piece.lower()].append(float(share))
            apart[head] += (entropy(mean) - entropy(weights).mean()) / len(documents)
            spread[head] += np.exp(entropy(weights)).mean() / n_tokens / len(documents)
    for head, words in enumerate(received):
        lift: dict[str, Any] = {word: np.mean(shares) for word, shares in words.items() if len(shares) >= FEWEST}
        ranked = sorted(lift, key=lambda word: -lift[word])
        listed = ", ".join(f"{word} {lift[word]:.1f}" for word in ranked[:SHOWN])
        least = ", ".join(f"{word} {lift[word]:.2f}" for word in ranked[-3:])
        print(f"head {head}: effective keys {spread[head]:.0%} of the tokens, rows differ by {apart[head]:.2f} nats")
        print(f"        most {listed}; least {least}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("model", nargs="?", default="multi:8")
    asked = parser.parse_args()
    model = load_encoder(ModelOptions(model=asked.model, max_tokens=200, device="cpu"))
    assert isinstance(model, ClassifierModel), "a trained model is needed"
    documents = list(load_corpus(TextOptions(dataset=asked.data, split=HELD_OUT)).documents)
    ablate(model.saved, documents)
    half = len(documents) // 2
    describe(model, documents[:DESCRIBED] + documents[half : half + DESCRIBED])


if __name__ == "__main__":
    main()
