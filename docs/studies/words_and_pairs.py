"""Reviews judged by words and pairs of words alone, without any attention: what docs/heads.md holds models against.

`python docs/studies/words_and_pairs.py path/to/imdb` learns from the split `train` and prints the accuracy on `test`.

A text is the set of its words and of its pairs of neighbours. Each has a weight per label: the log ratio of naive Bayes
times a trust that logistic regression learns, divided by the root of how many the text has (Wang & Manning 2012, ACL
P12-2018). Vocabulary, texts held out and how much of a text is read are those of `attnviz train`: it learns from the
reviews that the models learned from, and is asked what they were asked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from attnviz.commands.train.recipe import choose_held_out
from attnviz.commands.train.spec import TrainSpec
from attnviz.commands.train.training import Examples
from attnviz.measures.classification import accuracy
from attnviz.models import tokenizer
from attnviz.models.predicting import Ids, cut_text
from attnviz.models.tokenizer import SPECIAL, TextTokenizer
from attnviz.specs import TextOptions
from attnviz.text import Corpus, load_corpus

MAX_PAIRS = 65_536
MIN_TEXTS = 5  # that hold a pair, for it to be counted
PENALTY = 1e-6  # × (trust - 1/2)² of every word and pair: the ratios of naive Bayes are a good guess already
ITERATIONS = 25  # of L-BFGS, which has not converged by then: sums in another order end between 0.9166 and 0.9186


def number_pairs(ids: Ids, n_words: int) -> np.ndarray:
    """Return one number for each pair of neighbours: n_words · first + second."""
    whole = ids.astype(np.int64)
    return whole[:-1] * n_words + whole[1:]


def compute_g_squared(
    holding: Int[np.ndarray, "pair label"], n_texts: Int[np.ndarray, " label"]
) -> Float[np.ndarray, " pair"]:
    """Return 2 Σ observed ln(observed / expected), over the texts of each label with a pair and without it.

    Dunning 1993, ACL J93-1003.
    """
    total = np.zeros(len(holding))
    for observed in (holding, n_texts - holding):
        expected = observed.sum(axis=1, keepdims=True) * (n_texts / n_texts.sum())
        ratio = np.divide(observed, expected, out=np.ones(observed.shape), where=observed > 0)
        total += 2 * (observed * np.log(ratio)).sum(axis=1)
    return np.maximum(total, 0.0)  # a pair that tells nothing may come out at -1e-16


def choose_pairs(examples: Examples, n_words: int) -> np.ndarray:
    """Choose the pairs that tell the labels apart best, in rising order.

    Ranked by G² between label and presence in a text (Dunning 1993, ACL J93-1003): half as many pairs do better so than
    the commonest ones, most of which ("of the") tell nothing.
    """
    found = [np.unique(number_pairs(text, n_words)) for text in examples.texts]
    pairs, place = np.unique(np.concatenate(found), return_inverse=True)
    n_texts = np.bincount(examples.labels)
    label = np.repeat(examples.labels, [len(each) for each in found])
    holding = np.bincount(place * len(n_texts) + label, minlength=len(pairs) * len(n_texts))
    holding = holding.reshape(len(pairs), len(n_texts))
    score = np.where(holding.sum(axis=1) < MIN_TEXTS, -1, compute_g_squared(holding, n_texts))
    best = np.argsort(-score, kind="stable")[:MAX_PAIRS]
    return np.sort(pairs[best[score[best] >= 0]])


def list_features(ids: Ids, pairs: np.ndarray, n_words: int) -> np.ndarray:
    """List the words of a text and then its chosen pairs, each once, by number; special tokens are no words."""
    words = np.unique(ids)
    numbers = np.unique(number_pairs(ids, n_words))
    places = np.searchsorted(pairs, numbers)
    chosen = places[np.append(pairs, -1)[places] == numbers]
    return np.concatenate([words[words >= len(SPECIAL)], n_words + chosen]).astype(np.int64)


class Bags:
    """The features of many texts in one row, as torch's embedding_bag takes them."""

    def __init__(self, features: Sequence[np.ndarray]) -> None:
        sizes = torch.tensor([len(each) for each in features])
        self.features = torch.from_numpy(np.concatenate(features))
        self.text = torch.repeat_interleave(torch.arange(len(features)), sizes)
        self.starts = sizes.cumsum(0) - sizes
        self.scale = sizes.clamp(min=1).double().rsqrt().float()[self.text]

    def score(self, weights: Tensor) -> Tensor:
        """Return [text, label]: the sum of each text's weights, scaled."""
        return functional.embedding_bag(self.features, weights, self.starts, mode="sum", per_sample_weights=self.scale)


def fit(bags: Bags, labels: Tensor, n_features: int) -> tuple[Tensor, Tensor]:
    """Return weights [feature, label] and bias [label]. A ratio is ln(share of a label's features), less their mean."""
    n_labels = int(labels.max()) + 1
    counts = torch.bincount(bags.features * n_labels + labels[bags.text], minlength=n_features * n_labels)
    logs = (counts.view(n_features, n_labels) + 1.0).log() - (counts.view(n_features, n_labels) + 1.0).sum(dim=0).log()
    ratios = logs - logs.mean(dim=1, keepdim=True)
    trust = torch.ones(n_features, 1, requires_grad=True)
    bias = torch.zeros(n_labels, requires_grad=True)
    search = torch.optim.LBFGS([trust, bias], max_iter=ITERATIONS, history_size=8, line_search_fn="strong_wolfe")

    def loss() -> float:
        search.zero_grad()
        fitted = functional.cross_entropy(bags.score(trust * ratios) + bias, labels)
        value = fitted + PENALTY * ((trust - 0.5) ** 2).sum()
        value.backward()
        return value.item()

    search.step(loss)
    return (trust * ratios).detach(), bias.detach()


def read(corpus: Corpus, vocabulary: TextTokenizer, spec: TrainSpec) -> Examples:
    """Return a split as ids, as much of each text as the model would read, with its labels."""
    texts = [cut_text(ids, spec.max_tokens, spec.keep, n_markers=0) for ids in vocabulary.ids(corpus.texts)]
    return Examples(texts, np.array([document.label for document in corpus.documents]))


def main(data: str) -> None:
    """Fit to the texts that `attnviz train` learns from, and ask those of the split `test`."""
    spec = TrainSpec()
    train, test = (load_corpus(TextOptions(dataset=data, split=split)) for split in ("train", "test"))
    vocabulary = tokenizer.train(train.texts, spec.vocabulary)
    n_words, learned = len(vocabulary), read(train, vocabulary, spec)
    held_out = choose_held_out(learned.labels, spec.validation)
    learned = learned.select(np.setdiff1d(np.arange(len(learned)), held_out))
    asked = read(test, vocabulary, spec)
    pairs = choose_pairs(learned, n_words)
    own, others = (Bags([list_features(ids, pairs, n_words) for ids in of.texts]) for of in (learned, asked))
    weights, bias = fit(own, torch.from_numpy(learned.labels), n_words + len(pairs))
    found = accuracy(asked.labels, (others.score(weights) + bias).argmax(dim=1).numpy())
    sys.stdout.write(f"words and {len(pairs):,} pairs, learned from {len(learned):,} texts; of {len(asked):,} others\n")
    sys.stdout.write(f"accuracy {found.value:.4f}, 95 % interval over texts {found.low:.4f} to {found.high:.4f}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
