"""What a model answers when one of its heads is put out of action. Knows torch; no texts and no files.

All heads of a layer of a classifier are tried side by side: as many copies of a text, and in each of them another head
is replaced.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnviz.models.attribution import Attributable
from attnviz.models.attribution.subject import Subject
from attnviz.models.batches import Ids, pad
from attnviz.models.classifier import Classifier
from attnviz.models.predicting import WIDTH, probabilities
from attnviz.models.without import OutputWeights, Projecting, change_heads, silence_heads

COPIES = 64  # of a text in one pass
Answers = Float[np.ndarray, "_ label"]  # of copies, or of heads
MeanOutputs = Float[np.ndarray, "layer d_model"]  # the heads of a layer side by side


def answers_without_heads(
    classifier: Classifier,
    attentions: Sequence[nn.Module],
    ids: Ids,
    other: Ids,
    kinds: Sequence[str],
    means: MeanOutputs | None = None,
) -> tuple[Answers, dict[str, Answers]]:
    """Return the answer to a text, and by kind those without each head, layer after layer. `other` is another text.

    zero: the head adds nothing. mean: each query gets what the head gives on average, of `mean_outputs`. uniform: each
    query attends to all keys alike. queries: it attends as the query at its place in the other text would.
    """
    assert means is not None or "mean" not in kinds
    classifier.eval()
    with torch.inference_mode():
        whole = _answers(classifier, ids, 1)
        found: dict[str, Answers] = {}
        for kind in kinds:
            rows = []
            for layer, attention in enumerate(attentions):
                n_heads = getattr(attention, "n_heads", 1)
                mean = None if means is None else torch.from_numpy(means[layer].astype(np.float32))
                theirs = _queries_of(classifier, attention, other) if kind == "queries" else None
                with ExitStack() as stack:
                    for handle in _hooks(kind, attention, n_heads, len(ids), theirs, mean):
                        stack.enter_context(handle)
                    rows.append(_answers(classifier, ids, n_heads))
            found[kind] = np.concatenate(rows)
    return whole, found


@runtime_checkable
class Silenceable(Attributable, Projecting, Protocol):
    """A model whose heads can be silenced while it answers."""


def answer_without_heads(
    subject: Subject, projections: Sequence[OutputWeights], heads: Sequence[tuple[int, int]]
) -> Iterator[float]:
    """Yield the answer's probability, or its number, when a head gives nothing at any token: for each layer and head.

    `projections` are those of the model, one for each layer.
    """
    for pair in heads:
        with silence_heads(projections, [pair]):
            yield float(subject.values([np.ones(len(subject.ids), dtype=bool)])[0])


def answers_with_heads(
    classifier: Classifier, attention: nn.Module, ids: Ids, kept: Bool[np.ndarray, "answer head"]
) -> Answers:
    """Return the answers to a text where of one layer these heads give what they give, and the others zero."""
    classifier.eval()
    found = []
    for few in np.array_split(kept, -(-len(kept) // COPIES)):
        scale = torch.from_numpy(few.astype(np.float32))[:, None, :, None]

        def give(heads: Tensor, scale: Tensor = scale) -> Tensor:
            by_head = heads.reshape(*heads.shape[:-1], scale.shape[2], -1)
            return torch.flatten(by_head * scale.to(heads.device), -2)

        with torch.inference_mode(), change_heads(attention.get_submodule("output"), give):
            found.append(_answers(classifier, ids, len(few)))
    return np.concatenate(found)


def _answers(classifier: Classifier, ids: Ids, n_copies: int) -> Answers:
    device = classifier.temperature.device
    batch = pad([ids] * n_copies, WIDTH)
    return probabilities(classifier, classifier(batch.ids.to(device), batch.real.to(device)).cpu())


def _queries_of(classifier: Classifier, attention: nn.Module, ids: Ids) -> Tensor:
    """Find the queries of a text in this layer."""
    seen: list[Tensor] = []
    with attention.get_submodule("query").register_forward_hook(lambda _, __, output: seen.append(output)):
        _answers(classifier, ids, 1)
    return seen[0][0, : len(ids)]


def _hooks(
    kind: str, attention: nn.Module, n_heads: int, n_tokens: int, theirs: Tensor | None, mean: Tensor | None
) -> Iterator[Any]:
    """Yield what watches and changes the layer, so that in copy h head h is replaced."""
    if theirs is not None:

        def ask(_: nn.Module, __: Any, queries: Tensor) -> Tensor:
            places = torch.arange(queries.shape[1], device=queries.device) % len(theirs)
            return _replace_heads(queries, theirs[places], n_heads)

        yield attention.get_submodule("query").register_forward_hook(ask)
        return
    values: list[Tensor] = []

    def give(heads: Tensor) -> Tensor:
        if kind == "zero":
            return _replace_heads(heads, torch.zeros_like(heads[0]), n_heads)
        alike = values[-1][0, :n_tokens].mean(dim=0) if mean is None or kind == "uniform" else mean.to(heads.device)
        return _replace_heads(heads, alike.expand_as(heads[0]), n_heads)

    yield attention.get_submodule("value").register_forward_hook(lambda _, __, output: values.append(output))
    yield change_heads(attention.get_submodule("output"), give)


def _replace_heads(states: Tensor, others: Tensor, n_heads: int) -> Tensor:
    """Return the states of the copies, in copy h with others in the part of head h."""
    is_own = torch.eye(n_heads, dtype=torch.bool, device=states.device)
    return torch.where(is_own.repeat_interleave(states.shape[-1] // n_heads, dim=1)[:, None], others, states)
