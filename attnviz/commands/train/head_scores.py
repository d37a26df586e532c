"""What the heads of an encoder look at over held-out texts, by the patterns that name them in one text. No files."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch

from attnviz.measures.concentration import make_uniform
from attnviz.measures.patterns import measure_patterns
from attnviz.models.encoder_model import EncoderModel
from attnviz.models.protocols import MEASURED
from attnviz.records import AttentionMaps
from attnviz.records.training_metrics import HeadMetrics, HeadScore
from attnviz.shapes import PerHead

N_TOKENS = 128  # read of each text
N_RANDOM = 20  # encoders with random weights: what chance gives


def describe_heads(model: EncoderModel, texts: Sequence[str]) -> HeadMetrics | None:
    """Measure what each head gives to each pattern, beside an equal share and the most that a random encoder's gives.

    None where no text has any pattern.
    """
    shares = _average_shares(model.attention(text, choice=MEASURED) for text in texts)
    equal = _average_shares(make_uniform(model.attention(text, choice=MEASURED)) for text in texts)
    chance: dict[str, float] = {}
    on_cpu = replace(model, device=torch.device("cpu"))  # no device is waited for, text by text
    for seed in range(N_RANDOM):  # on the same texts, since shares go with their lengths
        attend = on_cpu.with_first_weights(seed).attention
        for name, of_heads in _average_shares(attend(text, choice=MEASURED) for text in texts).items():
            chance[name] = max(chance.get(name, 0.0), float(of_heads.max()))
    scores = tuple(
        HeadScore(name, tuple(map(tuple, of_heads.tolist())), float(equal[name].mean()))
        for name, of_heads in shares.items()
    )
    return HeadMetrics(len(texts), N_TOKENS, scores, N_RANDOM, chance) if scores else None


def _average_shares(several: Iterable[AttentionMaps]) -> dict[str, PerHead]:
    """Return by pattern the mean share of each head over the texts that have it."""
    found = defaultdict[str, list[PerHead]](list)
    for maps in several:
        for name, shares, _ in measure_patterns(maps):
            found[name].append(shares)
    return {name: np.mean(of_texts, axis=0) for name, of_texts in found.items()}
