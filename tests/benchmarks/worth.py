"""What a classifier's attention is worth: how much accuracy goes where heads look elsewhere, paired by text.

Every key alike: a head attends to each token of the text as much. Queries of another text: it attends as the same
places of another text of about the same length do. Beside them each single head with every key alike.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attnviz.models.ablation import change_heads
from attnviz.models.attention import MultiHeadAttention
from attnviz.models.checkpoint import Classifier
from attnviz.models.encoder import EncoderBlock
from attnviz.models.predicting import Ids, batch_by_length, pad
from attnviz.records.answers import AttentionCost
from attnviz.table.intervals import Interval, correct_p_values, p_value, summarize

BATCH, TOKENS = 64, 2**14  # texts, and tokens of them, at a time
ALIKE, OTHER = "every key alike", "queries of another text"
Right = Bool[np.ndarray, " text"]


def measure_costs(classifier: Classifier, texts: Sequence[Ids], gold: Int[np.ndarray, " text"]) -> dict[str, Right]:
    """Return by change, "" for none, which texts are still judged rightly."""
    found = {"": _judge(classifier, texts, gold, {})}
    attentions = [block.attention for block in classifier.encoder.blocks if isinstance(block, EncoderBlock)]
    heads = [(layer, head) for layer, each in enumerate(attentions) for head in range(each.n_heads)]
    for change in (ALIKE, OTHER):
        found[change] = _judge(classifier, texts, gold, dict.fromkeys(heads, change))
    if len(heads) > len(attentions):
        for layer, head in heads:
            found[f"layer {layer}, head {head}: {ALIKE}"] = _judge(classifier, texts, gold, {(layer, head): ALIKE})
    return found


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
    classifier: Classifier, texts: Sequence[Ids], gold: Int[np.ndarray, " text"], changes: dict[tuple[int, int], str]
) -> Right:
    right = np.zeros(len(texts), dtype=bool)
    classifier.eval()
    with torch.inference_mode():
        for chosen in batch_by_length([len(text) for text in texts], BATCH, TOKENS):
            ids, real = pad([texts[place] for place in chosen], 8)
            with _changed(classifier, changes, real):
                right[chosen] = classifier(ids, real).argmax(dim=-1).numpy() == gold[chosen]
    return right


@contextmanager
def _changed(classifier: Classifier, changes: dict[tuple[int, int], str], real: Tensor) -> Iterator[None]:
    """While it is open, the heads that are named attend otherwise."""
    with ExitStack() as stack:
        for layer, block in enumerate(classifier.encoder.blocks):
            assert isinstance(block, EncoderBlock)
            for change in (ALIKE, OTHER):
                heads = [head for (where, head), what in changes.items() if where == layer and what == change]
                if heads:
                    stack.enter_context(_hook(block.attention, heads, change, real))
        yield


@contextmanager
def _hook(attention: MultiHeadAttention, heads: Sequence[int], change: str, real: Tensor) -> Iterator[None]:
    is_changed = torch.isin(torch.arange(attention.n_heads), torch.tensor(heads)).repeat_interleave(attention.d_head)
    if change == OTHER:

        def ask(_: nn.Module, __: Any, queries: Tensor) -> Tensor:
            return torch.where(is_changed, queries.roll(1, dims=0), queries)

        with attention.query.register_forward_hook(ask):
            yield
        return
    values: list[Tensor] = []
    counted = real.unsqueeze(-1).float()

    def average(states: Tensor) -> Tensor:
        mean = (values[-1] * counted).sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True)
        return torch.where(is_changed, mean, states)

    watching = attention.value.register_forward_hook(lambda _, __, output: values.append(output))
    with watching, change_heads(attention.output, average):
        yield
