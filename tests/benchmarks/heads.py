"""What the heads of a trained model do, on reviews that it was not trained on and that no accuracy is reported on.

    python -m tests.benchmarks.heads path/to/imdb [model ...]

What its accuracy owes to attention: with the weights as they are, with each text's queries taken from another text, and
with every key attended to alike, by the encoder alone and with the n-grams beside it. Then what each head looks at.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from attnviz.models import attention
from attnviz.models.batches import Ids, cut_text
from attnviz.models.built_in import SHIPPED
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.classifier import Classifier
from attnviz.models.predicting import parts
from attnviz.records.training_metrics import name_heads
from attnviz.running.metrics import load_metrics
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from attnviz.views.patterns import NO_PATTERN

HELD_OUT = "train[11250:12500]+train[23750:25000]"
FUSED = attention.attend_fused


def alike(
    query: Tensor, key: Tensor, value: Tensor, attendable: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    return FUSED(torch.zeros_like(query), key, value, attendable)


def of_another(
    query: Tensor, key: Tensor, value: Tensor, attendable: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    return FUSED(query.flip(0), key, value, attendable, bias)


WAYS: dict[str, Callable[..., Tensor]] = {
    "as it is": FUSED,
    "queries of another text": of_another,
    "every key alike": alike,
}


def ablate(classifier: Classifier, texts: list[Ids], gold: np.ndarray) -> None:
    for name, way in WAYS.items():
        attention.attend_fused = way
        found, beside = parts(classifier, texts)
        alone, both = ((z.argmax(dim=-1).numpy() == gold).mean() for z in (found, found + beside))
        print(f"accuracy, {name}: encoder alone {alone:.4f}, with n-grams {both:.4f} ({len(gold):,} texts)", flush=True)
        if way is FUSED:
            spread = [(z[:, 1] - z[:, 0]).std().item() for z in (found, beside)]
            print(f"logits: standard deviation {spread[0]:.2f} of the encoder, {spread[1]:.2f} of the n-grams")
    attention.attend_fused = FUSED
    print(f"accuracy, n-grams alone: {(beside.argmax(dim=-1).numpy() == gold).mean():.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("models", nargs="*", default=["single", "multi-2", "multi-4", "multi-8"])
    asked = parser.parse_args()
    documents = list(load_corpus(TextOptions(dataset=asked.data, split=HELD_OUT)).documents)
    gold = np.array([document.label for document in documents])
    for model in asked.models:
        saved = load_checkpoint(SHIPPED / model)  # a folder of ours, or any path
        texts = [cut_text(ids, saved.max_tokens, saved.keep) for ids in saved.tokenizer.ids(d.text for d in documents)]
        print(model)
        ablate(saved.classifier, texts, gold)
        measured = load_metrics(SHIPPED / model).heads
        if measured is not None:
            for layer, names in enumerate(name_heads(measured)):
                for head, name in enumerate(names):
                    told = f"{name[0]} {name[1]:.3f}, {name[2]:.1f} x an equal share" if name else NO_PATTERN
                    print(f"layer {layer} head {head}: {told}")


if __name__ == "__main__":
    main()
