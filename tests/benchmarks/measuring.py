"""How long statistics over many reviews take, ours beside the loop that one writes down for them.

    python -m tests.benchmarks.measuring [path/to/imdb] [--texts 640]

multi:8 over a seeded sample of reviews, in the order of the data, at most 512 tokens each as `attnviz compare` has it.
By turns, 32 reviews at a time, after 32 that are not counted: the headline measures of each text and head, then the
divergence of each two heads as well. The naive loop pads the 32 to the longest of them, holds the weights as the plain
formula gives them, and takes the same measures from the batch, in float32, with the padding masked out. Both ways have
to find the same numbers. The bar is the median of masked / ours.

The packaged sample shows what short texts cost: little is padded, and most of the time goes to calls of ours that a
batch makes once. The bar is not for them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the commands do

import numpy as np
import torch
from torch import Tensor

from attnviz.measures import measure_maps
from attnviz.measures.divergence import measure_divergences
from attnviz.models.batches import pad
from attnviz.models.built_in import SHIPPED
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.encoder import Encoder
from attnviz.models.encoder_model import EncoderModel
from attnviz.specs import ModelOptions, TextOptions
from attnviz.text import load_corpus
from tests.benchmarks.throughput import in_textbook_attention
from tests.made import load_encoder

MODEL = ModelOptions(model="multi:8", max_tokens=512, keep="head-tail", device="cpu")
BATCH = 32
BAR = 4.0
REVIEWS = 25_000  # what one split of IMDb holds
EPSILON = 1e-12  # without which 0 log 0 is NaN
NEAR = 2e-5  # relative: float32 sums against float64

Numbers = dict[str, np.ndarray]  # by measure: [text, head], divergences [text, head, head]
Way = Callable[[Sequence[str]], Numbers]


@dataclass(frozen=True, eq=False)
class Model:
    """The same weights, ours and written in the textbook way."""

    attender: EncoderModel
    naive: Encoder


def opened() -> Model:
    naive = load_checkpoint(SHIPPED / "multi-8").classifier.encoder.eval()
    in_textbook_attention(naive)
    return Model(load_encoder(MODEL), naive)


def sample(data: str, number: int) -> list[str]:
    """Texts of the test split, drawn with a seed, in the order of the data; over again where there are too few."""
    documents = load_corpus(TextOptions(dataset=data, split="test")).documents
    drawn = np.random.default_rng(0).choice(len(documents), number, replace=number > len(documents))
    return [documents[place].text for place in sorted(drawn)]


def ours(model: Model, together: bool, texts: Sequence[str]) -> Numbers:
    found: dict[str, list[np.ndarray]] = {}
    for text in texts:
        maps = model.attender.attention(text)
        for measurement in measure_maps(maps):
            found.setdefault(measurement.name, []).append(measurement.values[0])
        if together:
            found.setdefault("divergence", []).append(measure_divergences(maps, 0))
    return {name: np.stack(values) for name, values in found.items()}


def masked(model: Model, together: bool, texts: Sequence[str]) -> Numbers:
    """Measures of the whole batch at once; padding is left out of the means."""
    batch = pad([np.array(model.attender.encode(text).ids) for text in texts])
    counted = batch.real.unsqueeze(1)
    (weights,) = model.naive.attention(batch.ids, counted)
    counted = counted.float()  # text, 1, query
    n_tokens = counted.sum(-1)
    position = torch.arange(weights.shape[-1])
    apart = (position[:, None] - position).abs()

    def mean(by_query: Tensor) -> Tensor:
        return (by_query * counted).sum(-1) / n_tokens

    spread = -(weights * (weights + EPSILON).log()).sum(-1)
    found = {
        "entropy": mean(spread),
        "effective_keys": mean(spread.exp()),
        "distance": mean((weights * apart).sum(-1)),
        "peak": mean(weights.max(-1).values),
    }
    if together:
        found["divergence"] = torch.zeros(*weights.shape[:2], weights.shape[1])
        for one, other in zip(*np.triu_indices(weights.shape[1], k=1), strict=True):
            mixed = (weights[:, one] + weights[:, other]) / 2
            jsd = -(mixed * (mixed + EPSILON).log()).sum(-1) - (spread[:, one] + spread[:, other]) / 2
            found["divergence"][:, one, other] = found["divergence"][:, other, one] = mean(jsd[:, None])[:, 0]
    return {name: values.numpy() for name, values in found.items()}


def check(one: Numbers, other: Numbers) -> None:
    """Whether two ways agree; divergences only to what float32 leaves of a difference of entropies."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        least = 1e-5 if name == "divergence" else 0.0
        np.testing.assert_allclose(other[name], values, rtol=NEAR, atol=least, err_msg=name)


def timed(ways: Mapping[str, Way], texts: Sequence[str]) -> dict[str, list[float]]:
    """Seconds that each way takes for each batch."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for first in range(0, len(texts), BATCH):
        found = {}
        for name, way in ways.items():
            begun = time.perf_counter()
            found[name] = way(texts[first : first + BATCH])
            seconds[name].append(time.perf_counter() - begun)
        for name in ways:
            check(found["ours"], found[name])
    return {name: of_way[1:] for name, of_way in seconds.items()}  # the first is to warm up


def spread(values: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:6.2f} ({low:.2f} to {high:.2f})"


def told(what: str, seconds: dict[str, list[float]]) -> float:
    """Print what each way took; gives the median of masked / ours."""
    n_texts = BATCH * len(seconds["ours"])
    print(f"{what}, {n_texts} texts: in all, then {REVIEWS:,} at the median of a batch of {BATCH} (quartiles)")
    for name, times in seconds.items():
        minutes = [REVIEWS / BATCH * each / 60 for each in times]
        print(f"  {name:16}{n_texts / sum(times):7.1f} texts/s {spread(minutes)} min")
    ratios = [theirs / own for theirs, own in zip(seconds["masked"], seconds["ours"], strict=True)]
    print(f"  {'masked / ours':16}{sum(seconds['masked']) / sum(seconds['ours']):7.2f} ×       {spread(ratios)} ×")
    return statistics.median(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="sample")
    parser.add_argument("--texts", type=int, default=640)
    asked = parser.parse_args()
    model, texts = opened(), sample(asked.data, asked.texts + BATCH)
    lengths = [len(model.attender.encode(text).ids) for text in texts]
    print(
        f"{statistics.fmean(lengths):.0f} tokens on average, {max(lengths)} at most, "
        f"{torch.get_num_threads()} thread(s)"
    )
    medians = []
    for what, together in (("headline measures", False), ("and head divergences", True)):
        ways: dict[str, Way] = {way.__name__: partial(way, model, together) for way in (ours, masked)}
        with torch.inference_mode():
            medians.append(told(what, timed(ways, texts)))
    if asked.data == "sample":
        print("the bar is for reviews of IMDb")
        return
    kept = min(medians) >= BAR
    print(f"the bar of {BAR:g} × is {'kept' if kept else 'missed'}")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
