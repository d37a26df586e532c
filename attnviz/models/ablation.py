"""What a model answers when one of its heads is put out of action. Knows torch; no texts and no files.

All heads of a layer of a classifier are tried side by side: as many copies of a text, and in each of them another head
is replaced.

Of a model without some of its heads for good, the weights of the output projection are changed, not the pass, so that
every kernel, capture and explanation sees one and the same model. A projection is known by its input: the very numbers
that an attention gave. Knows no kind of model.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attnviz.errors import InvalidModel, InvalidSelection, InvalidText
from attnviz.models.attention import OutputWeights
from attnviz.models.attribution.operators import AttendingCall, attending
from attnviz.models.checkpoint import Classifier
from attnviz.models.predicting import WIDTH, Ids, pad, probabilities
from attnviz.models.protocols import AttentionModel
from attnviz.selection import select_pairs
from attnviz.specs import ModelOptions

Seen = list[tuple[Tensor, Any]]  # states that a layer read, each with what it gave


def find_projections(root: nn.Module, run: Callable[[], object]) -> list[OutputWeights]:
    """Find the output projection of each attention of one pass, in order: a layer whose weight reads what it gave."""
    weights = [(module, getattr(module, "weight", None)) for module in root.modules()]
    owners = {weight.data_ptr(): (module, weight.stride()) for module, weight in weights if isinstance(weight, Tensor)}
    found: list[OutputWeights] = []

    def keep(attention: AttendingCall) -> None:
        read_by = attention.read_by
        if read_by is not None and read_by.data_ptr() in owners:
            module, strides = owners[read_by.data_ptr()]
            found.append(OutputWeights(module, attention.n_heads, read_by.stride() == strides))

    with attending(projected=keep):
        run()
    return found


def find_projecting_layers(root: nn.Module, projections: Sequence[OutputWeights]) -> list[nn.Module]:
    """Return the layers that these projections are in, one each; none where they are in no list of layers."""
    lists = [each for each in root.modules() if isinstance(each, nn.ModuleList) and len(each) == len(projections)]
    for layers in lists:
        if all(of.module in {*layer.modules()} for layer, of in zip(layers, projections, strict=True)):
            return [*layers]
    return []


def remove_heads(model: AttentionModel, spec: ModelOptions) -> None:
    """Remove the heads that options name, for good.

    Raises InvalidSelection for a head that there is not, InvalidModel where heads have no projection of their own.
    """
    projections, n_layers, name = model.list_projections(), model.n_layers, model.name.removesuffix(spec.removal)
    modules = {id(each.module) for each in projections if isinstance(getattr(each.module, "weight", None), Tensor)}
    if len(projections) != n_layers or len(modules) != n_layers:
        raise InvalidModel(
            f"no head can be left out of {name}: not every layer projects what its heads give by weights of its own",
            hint="Leave out --without.",
        )
    pairs = select_pairs(spec.without, range(n_layers), range(min(each.n_heads for each in projections)))
    if any(head >= projections[layer].n_heads for layer, head in pairs):
        raise InvalidSelection("the mean over heads is not a head", hint="Name heads by their numbers: --without 0.3.")
    with torch.no_grad():
        for layer, head in pairs:
            projections[layer].select(projections[layer].weight, head).zero_()


@contextmanager
def silence_heads(projections: Sequence[OutputWeights], heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Let these heads, pairs of a layer and a head, give zeros at every token until the context is left."""
    with ExitStack() as stack:
        for layer, head in heads:

            def silence(states: Tensor, projection: OutputWeights = projections[layer], head: int = head) -> Tensor:
                changed = states.clone()
                projection.select(changed, head).zero_()
                return changed

            stack.enter_context(change_heads(projections[layer].module, silence))
        yield


@contextmanager
def repeat_layers(layers: Iterable[tuple[nn.Module, Seen]]) -> Iterator[None]:
    """Let layers that read what they have read before give what they gave then, until the context is left.

    What a layer reads beside the states, such as where they stand, has to follow from them.
    """
    with ExitStack() as stack:
        for layer, seen in layers:
            layer.forward = partial(_run_once, layer.forward, seen)
            stack.callback(delattr, layer, "forward")  # what its class does is seen again
        yield


def _run_once(run: Callable[..., Any], seen: Seen, hidden_states: Tensor, *given: Any, **named: Any) -> Any:
    """Return what a layer gave to these states, or run it. Copies of both are kept: some models write to them."""
    for states, gave in seen:
        if torch.equal(states, hidden_states):
            return deepcopy(gave)
    states = hidden_states.clone()
    gave = run(hidden_states, *given, **named)
    seen.append((states, deepcopy(gave)))
    return gave


def change_heads(projection: nn.Module, change: Callable[[Tensor], Tensor]) -> RemovableHandle:
    """Let a projection read something else than its heads [… token, heads], until the handle is removed."""
    return projection.register_forward_pre_hook(lambda _, given: (change(given[0]), *given[1:]))


def average_heads(
    projections: Sequence[nn.Module], passes: Iterable[Callable[[], object]]
) -> list[Float64[Tensor, " heads"]]:
    """Return the mean over all tokens of some passes of what each projection reads: its heads side by side.

    The same passes in the same order give the same bits. There is at least one with tokens.
    """
    totals: list[Any] = [0.0] * len(projections)
    n_tokens = 0

    def add(layer: int, states: Tensor) -> Tensor:
        nonlocal n_tokens
        states_of_tokens = states.detach().flatten(0, -2).cpu().double()
        totals[layer] = totals[layer] + states_of_tokens.sum(dim=0)
        n_tokens += len(states_of_tokens) if layer == 0 else 0
        return states

    with ExitStack() as stack:
        for layer, each in enumerate(projections):
            stack.enter_context(change_heads(each, partial(add, layer)))
        for run in passes:
            with suppress(InvalidText):  # one without tokens
                run()
    return [total / n_tokens for total in totals]


COPIES = 64  # of a text in one pass
Heads = Bool[Tensor, "copy head"]  # which are out in a copy; one row says it of every copy
Answers = Float[np.ndarray, "_ label"]  # of copies, or of heads


def answers_without_heads(
    classifier: Classifier,
    attentions: Sequence[nn.Module],
    ids: Ids,
    other: Ids,
    kinds: Sequence[str],
    means: Float[np.ndarray, "layer d_model"] | None = None,
) -> tuple[Answers, dict[str, Answers]]:
    """Return the answer to a text, and by kind those without each head, layer after layer. `other` is another text.

    zero: the head adds nothing. mean: each query gets what the head gives on average, of `mean_outputs`, heads of a
    layer side by side. uniform: each query attends to all keys alike. queries: it attends as the query at its place in
    the other text would.
    """
    assert means is not None or "mean" not in kinds
    classifier.eval()
    with torch.inference_mode():
        whole = _answers(classifier, ids, 1)
        found: dict[str, Answers] = {}
        for kind in kinds:
            rows = []
            for layer, attention in enumerate(attentions):
                mean = None if means is None else torch.from_numpy(means[layer].astype(np.float32))
                theirs = _queries_of(classifier, attention, other) if kind == "queries" else None
                is_own = torch.eye(getattr(attention, "n_heads", 1), dtype=torch.bool)
                with _replace(kind, attention, is_own, len(ids), theirs, mean):
                    rows.append(_answers(classifier, ids, len(is_own)))
            found[kind] = np.concatenate(rows)
    return whole, found


def answers_with_heads(
    classifier: Classifier, attention: nn.Module, ids: Ids, kept: Bool[np.ndarray, "answer head"]
) -> Answers:
    """Return the answers to a text where of one layer these heads give what they give, and the others zero."""
    classifier.eval()
    found = []
    for few in np.array_split(kept, -(-len(kept) // COPIES)):
        with torch.inference_mode(), alter_heads(attention, torch.from_numpy(~few), torch.zeros_like):
            found.append(_answers(classifier, ids, len(few)))
    return np.concatenate(found)


def _answers(classifier: Classifier, ids: Ids, n_copies: int) -> Answers:
    device = classifier.temperature.device
    copies, real = pad([ids] * n_copies, WIDTH)
    return probabilities(classifier, classifier(copies.to(device), real.to(device)).cpu())


def _queries_of(classifier: Classifier, attention: nn.Module, ids: Ids) -> Tensor:
    """Find the queries of a text in this layer."""
    seen: list[Tensor] = []
    with attention.get_submodule("query").register_forward_hook(lambda _, __, output: seen.append(output)):
        _answers(classifier, ids, 1)
    return seen[0][0, : len(ids)]


def _replace(
    kind: str, attention: nn.Module, is_out: Heads, n_tokens: int, theirs: Tensor | None, mean: Tensor | None
) -> AbstractContextManager[object]:
    """Let the heads that are out in a copy be replaced as the kind says."""
    if theirs is not None:
        return alter_queries(attention, is_out, lambda own: theirs[torch.arange(own.shape[1]) % len(theirs)])

    def make(values: Tensor) -> Tensor:
        if kind == "zero":
            return torch.zeros_like(values)
        return values[0, :n_tokens].mean(dim=0) if mean is None or kind == "uniform" else mean.to(values.device)

    return alter_heads(attention, is_out, make)


def alter_queries(attention: nn.Module, is_out: Heads, choose: Callable[[Tensor], Tensor]) -> RemovableHandle:
    """Let the heads that are out in a copy ask queries chosen from those of all copies, until the handle is removed."""
    query = attention.get_submodule("query")
    return query.register_forward_hook(lambda _, __, queries: _replace_heads(queries, choose(queries), is_out))


@contextmanager
def alter_heads(attention: nn.Module, is_out: Heads, make: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let the heads that are out in a copy give what is made of the layer's values, until the context is left."""
    values: list[Tensor] = []

    def give(heads: Tensor) -> Tensor:
        return _replace_heads(heads, make(values[-1]), is_out)

    watching = attention.get_submodule("value").register_forward_hook(lambda _, __, output: values.append(output))
    with watching, change_heads(attention.get_submodule("output"), give):
        yield


def _replace_heads(states: Tensor, others: Tensor, is_out: Heads) -> Tensor:
    """Return the states of the copies, with others in the parts of the heads that are out in a copy."""
    by_number = is_out.to(states.device).repeat_interleave(states.shape[-1] // is_out.shape[1], dim=1)
    return torch.where(by_number[:, None], others, states)
