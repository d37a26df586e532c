"""How good a classifier's answers are. Knows arrays of labels and probabilities; no texts, no models, no views.

These are numbers of a set of texts, not of a head, and so no measures that a user can name. Labels are counted from 0.
All are of one text at least: a mean of nothing is neither 0 nor 1.
"""

from math import sqrt
from statistics import NormalDist

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.table.intervals import Interval

N_BINS = 15  # as in Guo et al.
N_CALIBRATED_DRAWS = 200
Z = NormalDist().inv_cdf(0.975)  # 1.96: 95 % of a normal distribution lie within ± Z
MIN_PROBABILITY = float(np.finfo(np.float64).eps)  # 2.2e-16; its log loss is 36 nats

Labels = Int[np.ndarray, " text"]
Confidences = Float[np.ndarray, " text"]
Correct = Bool[np.ndarray, " text"]
Confusion = Int[np.ndarray, "gold predicted"]


def confusion_matrix(gold: Labels, predicted: Labels, n_labels: int) -> Confusion:
    """Count the texts of each gold label (row) predicted to have each label (column); all 0 without texts."""
    for labels in (gold, predicted):
        assert ((labels >= 0) & (labels < n_labels)).all(), "a label that is not there"  # -1 would count as the last
    counts = np.zeros((n_labels, n_labels), dtype=np.int64)
    np.add.at(counts, (gold, predicted), 1)
    return counts


def accuracy(gold: Labels, predicted: Labels) -> Interval:
    """Return the share of texts whose predicted label is the gold one, with its 95 % score interval.

    From 0 to 1. The interval is that of Wilson 1927, doi:10.1080/01621459.1927.10502953: it stays within 0 to 1 and is
    never empty, not even where all texts are right. It takes the texts for independent draws.
    """
    return compute_score_interval(float((gold == predicted).mean()), len(gold))


def compute_score_interval(share: float, n: int) -> Interval:
    """Return a share of n texts, above 0, with its 95 % score interval: what other texts would give."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return Interval(share, low=max(0.0, min(share, middle - half)), high=min(1.0, max(share, middle + half)))


def f1(confusion: Confusion) -> Float[np.ndarray, " label"]:
    """Return 2 tp / (2 tp + fp + fn) of each label, the harmonic mean of precision and recall (van Rijsbergen 1979).

    From 0 (never right) to 1 (found always, and claimed only where it is so); chapter 7. A label that neither occurs
    nor is predicted has no F1; 0 stands in its place (see `find_occurring_labels`).
    """
    right = 2.0 * np.diag(confusion)
    there = confusion.sum(axis=0) + confusion.sum(axis=1)
    return np.asarray(np.divide(right, there, out=np.zeros_like(right), where=there > 0))


def find_occurring_labels(confusion: Confusion) -> Bool[np.ndarray, " label"]:
    """Return which labels are gold or predicted anywhere."""
    return np.asarray((confusion.sum(axis=0) + confusion.sum(axis=1)) > 0)


def macro_f1(confusion: Confusion) -> float:
    """Return the mean F1 of the labels, common and rare alike (averaged F1 of Opitz and Burst 2019, arXiv:1911.03347).

    From 0 to 1. A label that neither occurs nor is predicted is left out, so that a perfect classifier has 1.
    """
    return float(f1(confusion)[find_occurring_labels(confusion)].mean())


def calibration_error(probability: Confidences, correct: Correct, n_bins: int = N_BINS) -> float:
    """Return Σ over bins of share of texts × |accuracy - mean confidence|, the expected calibration error.

    From 0 (of the texts with confidence p, a share p is right) to 1 (Guo et al. 2017, arXiv:1706.04599). Bins are of
    equal width: bin b of n holds b/n < confidence ≤ (b + 1)/n, the first also 0. The error depends on their number, and
    few texts have more of it by chance.
    """
    edges = np.arange(1, n_bins) / n_bins  # divided and not added up, so that 0.2 lies on the edge 3/15
    bins = np.searchsorted(edges, probability, side="left")
    n_texts = np.bincount(bins, minlength=n_bins)
    filled = n_texts > 0
    sums = (np.bincount(bins, weights=values, minlength=n_bins)[filled] for values in (correct, probability))
    right, confidence = (of_bins / n_texts[filled] for of_bins in sums)
    return float((n_texts[filled] * np.abs(right - confidence)).sum() / len(probability))


def draw_calibrated_error(probability: Confidences, n_bins: int = N_BINS) -> tuple[float, float]:
    """Return the mean error of a model that is right with just these probabilities, and a bound on 95 % of its errors.

    The fewer the texts, the more error chance gives: 60 texts have about 0.1 of it however well calibrated their model
    is, so that an error says something only beside this. By 200 draws of which texts are right (consistency sampling,
    Bröcker and Smith 2007, doi:10.1175/WAF993.1), the same each time.
    """
    drawn = np.random.default_rng(0)
    errors = [
        calibration_error(probability, drawn.random(len(probability)) < probability, n_bins)
        for _ in range(N_CALIBRATED_DRAWS)
    ]
    return float(np.mean(errors)), float(np.quantile(errors, 0.95))


def log_loss(probabilities: Float[np.ndarray, "text label"], gold: Labels) -> float:
    """Return the mean over texts of -ln p, p the probability of the gold label (Good 1952, the logarithmic score).

    Nats, from 0 (certain and right). A p below 2.2e-16 counts as 2.2e-16, so that one text that the model rules out
    costs 36 nats and not all there is.
    """
    given = probabilities[np.arange(len(gold)), gold].astype(np.float64)
    # ln(1/p) and not -ln p: 0 for certainty, never -0.
    return float(np.log(1 / np.clip(given, MIN_PROBABILITY, 1.0)).mean())
