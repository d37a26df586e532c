"""A logit and the scores of attention as sums over who wrote what they read, norms held: exact, and checked each time.

A norm is linear once its scale is held, and so are projections and rotations of positions. So the gradient of a logit,
or of a score q · k with q held, with respect to the residual stream says what each vector in the stream adds to it
(Elhage et al. 2021, https://transformer-circuits.pub/2021/framework). Where layers norm their sums, as in BERT, what
was written early goes through the norms of later layers, and so does the gradient, the other way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from attnviz.errors import InvalidModel
from attnviz.models.ablation import silence_heads
from attnviz.models.attention import OutputWeights
from attnviz.models.attribution.subject import Subject
from attnviz.models.capture.captured import Asked
from attnviz.models.decomposition.blocks import StreamBlock, replace_state
from attnviz.models.decomposition.stream_pass import FORMS, TOLERANCE, Kernels, StreamPass
from attnviz.records.attribution import HeadName, Writer

WEIGHT_TOLERANCE = 5e-6
AT_ONCE = 2**13  # tokens of other states that are read together

PerToken = Float64[np.ndarray, " token"]
Logits = Float64[np.ndarray, " answer"]


@dataclass(frozen=True, eq=False)
class Parts:
    """What each writer gave at each token to a number, or to a number of each token; `totals` sums over writers.

    `gradients` are of that number with respect to what the heads of each layer write, or to the state where they end.
    """

    embedding: PerToken
    heads: Float64[np.ndarray, "layer head token"]
    mlps: Float64[np.ndarray, "layer token"]
    constants: PerToken  # of biases, and what is added to a score by distance
    gradients: Sequence[Float64[Tensor, "token d_model"]]

    @property
    def by_kind(self) -> dict[str, float]:
        """Sum the contributions of each kind of writer: heads, MLPs, embedding and biases."""
        kinds = {"heads": self.heads, "MLPs": self.mlps, "embedding": self.embedding, "biases": self.constants}
        return {name: float(part.sum()) for name, part in kinds.items()}

    @property
    def totals(self) -> PerToken:
        """Sum the contributions of all writers at each token."""
        return np.asarray(self.embedding + self.heads.sum(axis=(0, 1)) + self.mlps.sum(axis=0) + self.constants)


class KeysFound(Exception):
    """The keys that a layer attends to are there, and nothing else is asked for."""


class Stream:
    """The residual stream of one text. Raises InvalidModel for a model that cannot be taken apart."""

    def __init__(self, subject: Subject) -> None:
        self.subject, part = subject, subject.answering
        self._held = StreamPass(part.words, part.module, subject.provenance.model)
        part.module.requires_grad_(False)
        with self._held.hooks(), torch.enable_grad(), self._held:
            self._logits = part.logits(subject.batch)[0]
        self.blocks: Sequence[StreamBlock] = self._held.blocks
        if len({block.n_heads for block in self.blocks}) != 1:
            why = "cannot be taken apart: it has no numbered layers, or not all of them have as many heads"
            raise InvalidModel(f"{subject.provenance.model} {why}", hint=FORMS)
        self.logits = self._read_logits()

    def split_logit(self, answer: int, against: int | None) -> Parts:
        """Split the logit of an answer, or by how much it exceeds another's, by who wrote it at which token.

        Raises InvalidModel where the parts miss it by more than a share of 10⁻⁵ of the largest logit or kind of parts.
        """
        logit = self._logits[answer] if against is None else self._logits[answer] - self._logits[against]
        found = self._split(logit, self._held.final, len(self.blocks))
        own = self.logits[[answer] if against is None else [answer, against]]
        missed = abs(float(found.totals.sum() - (own[0] - own[1:].sum())))
        largest = max(map(abs, (*own, *found.by_kind.values())))
        self._check(missed, TOLERANCE * largest, "the logit")
        return found

    def split_scores(self, head: HeadName, query: int) -> Parts:
        """Split the score of each key that a query of a head may attend to, by who wrote the key.

        Raises InvalidModel where their softmax misses a weight by more than 5·10⁻⁶.
        """
        block = self.blocks[head.layer]
        attendable = block.attention.attendable[query].cpu()
        # A key is made of the state at its own token only. So one gradient, of the sum of all scores, holds the
        # gradient of each score in the row of its key, and the parts at a token are the parts of its score.
        (scores,) = _score_keys(block, head, query, block.attention.key)
        found = self._split(scores[attendable].sum(), block.state, head.layer)
        found.constants[:] += self.bias_of(head, query)
        weights = soften(found.totals, attendable.numpy())
        missed = float(np.abs(weights - self.weights_of(head, query)).max())
        self._check(missed, WEIGHT_TOLERANCE, f"the weights of head {head}")
        return found

    def split_sources(self, head: HeadName, parts: Parts) -> Float64[np.ndarray, "token source"]:
        """Split what a head gave at each token by the tokens that it took it from."""
        block = self.blocks[head.layer]
        toward = parts.gradients[head.layer] @ block.projection.weight[:, head.head].detach().cpu().double()
        value = block.attention.value[block.group_of(head.head, block.attention.value)]
        moved = _to_numpy(toward @ value.cpu().double().T)
        return np.asarray(moved * _to_numpy(block.attention.weights[head.head]))

    def weights_of(self, head: HeadName, query: int) -> PerToken:
        """Return the model's own weights of a query."""
        return _to_numpy(self.blocks[head.layer].attention.weights[head.head, query])

    def bias_of(self, head: HeadName, query: int) -> PerToken | float:
        """Return what is added to a query's scores whatever the keys hold, such as by distance; 0 for nothing."""
        bias = self.blocks[head.layer].attention.bias
        return 0.0 if bias is None else _to_numpy(bias[head.head, query])

    def score_keys(
        self, head: HeadName, query: int, states: Iterable[Float[Tensor, "token d_model"]]
    ) -> Float64[np.ndarray, "state token"]:
        """Return a query's scores of the keys that its layer makes of other states, norms anew, the query held."""
        # Keys are computed by the layer itself, with its norms and its positions, and not by a copy of its arithmetic.
        # An exception ends the layer once the kernel is handed its keys: all that comes behind them would be thrown
        # away.
        block, left, found = self.blocks[head.layer], iter(states), list[np.ndarray]()

        def stop(asked: Asked) -> Tensor:
            raise KeysFound(asked.key)

        while batch := list(islice(left, max(1, AT_ONCE // block.state.shape[1]))):
            args, kwargs = replace_state(block.given, torch.stack(batch))
            try:  # nothing behind the keys is computed
                with torch.no_grad(), Kernels(stop):
                    block.module(*args, **kwargs)
            except KeysFound as keys:
                found.append(_to_numpy(_score_keys(block, head, query, keys.args[0])))
        return np.concatenate(found) + self.bias_of(head, query)

    def attend_without(
        self, head: HeadName, query: int, writers: Sequence[Writer]
    ) -> Float64[np.ndarray, "writer token"]:
        """Return the weights of a query once each writer is taken out of the keys of this one head, norms anew."""
        block = self.blocks[head.layer]
        states = (block.state.detach()[0] - self.read_writer(writer, head.layer) for writer in writers)
        scores = self.score_keys(head, query, states)
        return np.asarray(soften(scores, block.attention.attendable[query].cpu().numpy()))

    def attend_with_words(
        self, head: HeadName, query: int, key: int, word: Writer, others: Sequence[int]
    ) -> Float64[np.ndarray, "other token"]:
        """Return the weights of a query once the words of other tokens stand, each in turn, in the place of a key's."""
        block = self.blocks[head.layer]
        state, words = block.state.detach()[0], self.read_writer(word, head.layer)
        at_key = (torch.arange(len(state), device=state.device) == key)[:, None]
        scores = self.score_keys(head, query, (state + at_key * (words[each] - words[key]) for each in others))
        return np.asarray(soften(scores, block.attention.attendable[query].cpu().numpy()))

    def score_places(self, head: HeadName, query: int, contents: Sequence[int]) -> PerToken:
        """Return what places give to a query's scores: the mean over tokens, each put at every place in turn.

        With rotary positions that is the query against the mean key turned to each place.
        """
        state = self.blocks[head.layer].state.detach()[0]
        scores = self.score_keys(head, query, (state[each].expand_as(state) for each in contents))
        return np.asarray(scores.mean(axis=0))

    def answer_without(self, head: HeadName) -> Logits:
        """Return the model's logits when a head gives nothing, at any token."""
        block = self.blocks[head.layer]
        with silence_heads([OutputWeights(block.projection.module, block.n_heads)], [(0, head.head)]):
            return self._read_logits()

    @torch.no_grad()
    def read_writer(self, writer: Writer, n_layers: int) -> Float[Tensor, "token d_model"]:
        """Return what is missing in the state behind the first layers where a writer is."""
        is_word = writer.kind == "word"
        embedding = self.blocks[0].state.detach()[0]
        missing = embedding if is_word else torch.zeros_like(embedding)
        # `missing` is the state less the state without the writer. It grows where the writer writes. A norm in the
        # stream, as in BERT, is applied to both sides anew, which is why it is carried from layer to layer and not
        # added up at the end. A word counts the MLPs of the layers before `writer.layer` as its own.
        for layer, block in enumerate(self.blocks[:n_layers]):
            if writer[:2] == ("head", layer):
                missing = missing + block.write(writer.head)
            if block.norms:
                missing = block.norms[0].lose(missing)
            if writer[:2] == ("mlp", layer) or (is_word and layer < writer.layer):
                missing = missing + block.mlp
            if block.norms:
                missing = block.norms[1].lose(missing)
        return missing

    def _read_logits(self) -> Logits:
        return _to_numpy(self.subject.answering.compute_logits(self.subject.batch)[0])

    @torch.no_grad()
    def _split(self, number: Tensor, state: Tensor, n_layers: int) -> Parts:
        """Multiply what was written with the gradient, in float64: massive activations cancel each other."""
        # The stream is a sum, so the gradient with respect to where it ends is the gradient with respect to all that
        # was written into it, in whatever layer. Only norms in the stream itself change it: it is pulled back through
        # them from the last layer to the first, and each writer is multiplied with it where it stands between them.
        # Biases of what reads the stream are counted by hooks while the gradient is taken; what an earlier one left is
        # thrown away first.
        self._held.take_constants()
        (of_state,) = torch.autograd.grad(number, state, retain_graph=True)
        gradient, constants = of_state[0].cpu().double(), self._held.take_constants()
        heads = np.zeros((n_layers, self.blocks[0].n_heads, len(gradient)))
        mlps = np.zeros((n_layers, len(gradient)))
        gradients = [gradient]  # where layers end, then before what their heads write, from the last
        for layer, block in reversed(list(enumerate(self.blocks[:n_layers]))):
            if block.norms:
                gradient, of_bias = block.norms[1].pull_back(gradient)
                constants += of_bias
            mlps[layer] = (block.mlp.cpu().double() * gradient).sum(dim=-1).numpy()
            if block.norms:
                gradient, of_bias = block.norms[0].pull_back(gradient)
                constants += of_bias
            toward = torch.einsum("td,dhv->htv", gradient, block.projection.weight.cpu().double())
            heads[layer] = (block.attention.mixed.cpu().double() * toward).sum(dim=-1).numpy()
            if block.projection.bias is not None:
                constants += (gradient @ block.projection.bias.cpu().double()).numpy()
            gradients.append(gradient)
        embedding = (self.blocks[0].state.detach()[0].cpu().double() * gradient).sum(dim=-1).numpy()
        return Parts(embedding, heads, mlps, constants, gradients[:0:-1])

    def _check(self, missed: float, allowed: float, what: str) -> None:
        """Raise InvalidModel where parts do not sum to the model's own number."""
        if not missed <= allowed:  # written so that NaN is wrong too
            raise InvalidModel(
                f"{self.subject.provenance.model} cannot be taken apart: its parts miss {what} by {missed:.2g}, "
                f"allowed are {allowed:.2g}",
                hint=FORMS,
            )


def take_apart(subject: Subject) -> Stream:
    """Take an answer apart; where it is one of several and no rival is asked for, against the next most probable."""
    if subject.target.rival is None:
        return Stream(subject)
    target = replace(subject.target, against=subject.target.rival[0])
    return Stream(replace(subject, against=subject.rival, target=target))


def soften(scores: Float64[np.ndarray, "*row token"], attendable: Bool[np.ndarray, " token"]) -> Any:
    """Return the softmax of scores over the keys that may be attended to."""
    powers = np.where(attendable, np.exp(scores - scores[..., attendable].max(axis=-1, keepdims=True)), 0.0)
    return powers / powers.sum(axis=-1, keepdims=True)


def _score_keys(block: StreamBlock, head: HeadName, query: int, key: Tensor) -> Float64[Tensor, "text token"]:
    """Return a query's scores, the query held, without what is added by distance."""
    of_query = block.attention.query.detach()[0, head.head, query].cpu().double()
    of_group = key[:, block.group_of(head.head, key[0])].cpu().double()
    return torch.as_tensor(of_group @ of_query * block.attention.scale)


def _to_numpy(tensor: Tensor) -> Float64[np.ndarray, "..."]:
    return np.asarray(tensor.detach().cpu().double().numpy())
