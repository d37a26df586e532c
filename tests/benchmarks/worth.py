"""What a classifier's attention is worth: how much accuracy goes where heads look elsewhere, paired by text.

Every key alike: a head attends to each token of the text as much. Queries of another text: it attends as the same
places of another text of about the same length do. Beside them each single head with every key alike.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attnviz.models.ablation import alter_heads, alter_queries
from attnviz.models.checkpoint import Classifier
from attnviz.models.encoder import EncoderBlock
from attnviz.models.predicting import Ids, batch_by_length, pad
from attnviz.records.answers import AttentionCost
from attnviz.table.intervals import Interval, correct_p_values, p_value, summarize

BATCH, TOKENS = 64, 2**14  # texts, and tokens of them, at a time
ALIKE, OTHER = "every key alike", "queries of another text"
Right = Bool[np.ndarray, " text"]
LayersAndHeads = Bool[Tensor, "layer head"]  # which are changed


def measure_costs(classifier: Classifier, texts: Sequence[Ids], gold: Int[np.ndarray, " text"]) -> dict[str, Right]:
    """Return by change, "" for none, which texts are still judged rightly."""
    attentions = [block.attention for block in classifier.encoder.blocks if isinstance(block, EncoderBlock)]
    every = torch.ones(len(attentions), attentions[0].n_heads, dtype=torch.bool)
    changed = {"": (ALIKE, ~every), ALIKE: (ALIKE, every), OTHER: (OTHER, every)}
    if every.shape[1] > 1:
        for layer, head in np.ndindex(*every.shape):
            alone = torch.zeros_like(every)
            alone[layer, head] = True
            changed[f"layer {layer}, head {head}: {ALIKE}"] = (ALIKE, alone)
    return {name: _judge(classifier, texts, gold, *change) for name, change in changed.items()}


def describe_costs(right: dict[str, Right]) -> tuple[AttentionCost, ...]:
    """Return what goes with each change: mean, interval over texts, and p corrected for their number."""
    whole, rows = right[""].astype(np.float64), [(what, each) for what, each in right.items() if what]
    intervals, p_values = [], []
    for _, each in rows:
        lost = whole - each
        of = summarize(lost[:, None])
        mean, low, high, error = np.nan_to_num([of.mean[0], of.low[0], of.high[0], of.error[0]]).tolist()
        intervals.append(Interval(mean, low, high))
        p_values.append(p_value(mean / error, len(lost) - 1) if error else 1.0)
    return tuple(
        AttentionCost(what, interval, None, p)
        for (what, _), interval, p in zip(rows, intervals, correct_p_values(p_values), strict=True)
    )


def _judge(
    classifier: Classifier, texts: Sequence[Ids], gold: Int[np.ndarray, " text"], change: str, is_out: LayersAndHeads
) -> Right:
    right = np.zeros(len(texts), dtype=bool)
    classifier.eval()
    with torch.inference_mode():
        for chosen in batch_by_length([len(text) for text in texts], BATCH, TOKENS):
            ids, real = pad([texts[place] for place in chosen], 8)
            with ExitStack() as stack:
                for block, of_layer in zip(classifier.encoder.blocks, is_out, strict=True):
                    stack.enter_context(_change(change, block.get_submodule("attention"), of_layer[None], real))
                right[chosen] = classifier(ids, real).argmax(dim=-1).numpy() == gold[chosen]
    return right


def _change(
    change: str, attention: nn.Module, is_out: Bool[Tensor, "1 head"], real: Tensor
) -> AbstractContextManager[object]:
    """Let heads of a layer attend otherwise."""
    if change == OTHER:
        return alter_queries(attention, is_out, lambda queries: queries.roll(1, dims=0))
    counted = real.unsqueeze(-1).float()
    return alter_heads(
        attention, is_out, lambda values: (values * counted).sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True)
    )
