"""A logit and the scores of attention as sums over who wrote what they read, norms held: exact, and checked each time.

A norm is linear once its scale is held, and so are projections and rotations of positions. So the gradient of a logit,
or of a score q · k with q held, with respect to the residual stream says what each vector in the stream adds to it
(Elhage et al. 2021, https://transformer-circuits.pub/2021/framework).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attnviz.errors import InvalidModel
from attnviz.models.attribution.subject import Subject, frozen
from attnviz.models.capture.captured import Kernel
from attnviz.models.decomposition.blocks import FORMS, TOLERANCE, DecoderBlock, StreamPass
from attnviz.records.explanation import HeadName, Writer

WEIGHT_TOLERANCE = 5e-6

PerToken = Float64[np.ndarray, " token"]
Logits = Float64[np.ndarray, " answer"]


@dataclass(frozen=True, eq=False)
class Parts:
    """What each writer gave at each token to a number, or to a number of each token; `totals` sums over writers."""

    embedding: PerToken
    heads: Float64[np.ndarray, "layer head token"]
    mlps: Float64[np.ndarray, "layer token"]
    constants: PerToken  # of biases, and what is added to a score by distance
    gradient: Float64[Tensor, "token d_model"]

    @property
    def totals(self) -> PerToken:
        """The sum over writers at each token."""
        found: PerToken = self.embedding + self.heads.sum(axis=(0, 1)) + self.mlps.sum(axis=0) + self.constants
        return found


class Stream:
    """The residual stream of one text. Raises InvalidModel for a model that cannot be taken apart."""

    def __init__(self, subject: Subject) -> None:
        self.subject, part = subject, subject.answering
        self._held = StreamPass(part.words, part.module, subject.provenance.model)
        with self._held.hooks(), frozen(part.module), torch.enable_grad(), self._held:
            self._logits = part.logits(subject.batch)[0]
        self.blocks: Sequence[DecoderBlock] = self._held.blocks
        if len({block.n_heads for block in self.blocks}) != 1:
            why = "its layers do not all have as many heads" if self.blocks else "it has no numbered layers"
            raise InvalidModel(f"{subject.provenance.model} cannot be taken apart: {why}", hint=FORMS)
        self.logits = self._read_logits()

    def split_logit(self, answer: int, against: int | None) -> Parts:
        """Split the logit of an answer, or by how much it exceeds another's, by who wrote it at which token.

        Raises InvalidModel where the parts miss it by more than a share of 10⁻⁵ of the larger logit.
        """
        logit = self._logits[answer] if against is None else self._logits[answer] - self._logits[against]
        found = self._split(logit, self._held.final, len(self.blocks))
        own = self.logits[[answer] if against is None else [answer, against]]
        missed = abs(float(found.totals.sum() - (own[0] - own[1:].sum())))
        self._check(missed, TOLERANCE * float(np.abs(own).max()), "the logit")
        return found

    def split_scores(self, head: HeadName, query: int) -> Parts:
        """Split the score of each key that a query of a head may attend to, by who wrote the key.

        Raises InvalidModel where their softmax misses a weight by more than 5·10⁻⁶.
        """
        block = self.blocks[head.layer]
        attendable = block.attention.attendable[query]
        scores = _score_keys(block, head, query, block.attention.key)
        found = self._split(scores[attendable].sum(), block.state, head.layer)
        if block.attention.bias is not None:
            found.constants[:] += _to_numpy(block.attention.bias[head.head, query])
        weights = soften(found.totals, attendable.cpu().numpy())
        missed = float(np.abs(weights - self.weights_of(head, query)).max())
        self._check(missed, WEIGHT_TOLERANCE, f"the weights of head {head}")
        return found

    def split_sources(self, head: HeadName, query: int, parts: Parts) -> PerToken:
        """Split what a head gave at a token by the tokens that it took it from."""
        block = self.blocks[head.layer]
        toward = parts.gradient[query] @ block.projection.weight[:, head.head].detach().cpu().double()
        value = block.attention.value[block.group_of(head.head, block.attention.value)]
        moved: PerToken = _to_numpy(value.cpu().double() @ toward)
        moved *= self.weights_of(head, query)
        return moved

    def weights_of(self, head: HeadName, query: int) -> PerToken:
        """Return the model's own weights of a query."""
        found: PerToken = _to_numpy(self.blocks[head.layer].attention.weights[head.head, query])
        return found

    def attend_without(self, head: HeadName, query: int, writer: Writer) -> PerToken:
        """Return the weights of a query once a writer is taken out of the keys of this one head, their norms anew."""
        block = self.blocks[head.layer]
        args, kwargs = block.call_with(block.state.detach() - self._read_writer(writer))
        with torch.no_grad(), KeysOnly() as seen, suppress(KeysFound):
            block.module(*args, **kwargs)
        scores = _score_keys(block, head, query, seen.key)
        if block.attention.bias is not None:
            scores = scores + block.attention.bias[head.head, query].double()
        return soften(_to_numpy(scores), block.attention.attendable[query].cpu().numpy())

    def answer_without(self, head: HeadName) -> Logits:
        """Return the model's logits when a head gives nothing, at any token."""
        block = self.blocks[head.layer]
        d_value = block.attention.mixed.shape[-1]

        def remove(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            changed = given[0].clone()
            changed[..., head.head * d_value : (head.head + 1) * d_value] = 0
            return (changed, *given[1:])

        with block.projection.module.register_forward_pre_hook(remove):
            return self._read_logits()

    @torch.no_grad()
    def _read_writer(self, writer: Writer) -> Float[Tensor, "token d_model"]:
        match writer.kind:
            case "head":
                return self.blocks[writer.layer].write(writer.head)
            case "mlp":
                return self.blocks[writer.layer].mlp
            case "word":
                return sum((block.mlp for block in self.blocks[: writer.layer]), self.blocks[0].state.detach()[0])

    def _read_logits(self) -> Logits:
        found: Logits = _to_numpy(self.subject.answering.whole_logits(self.subject.batch)[0])
        return found

    def _split(self, number: Tensor, state: Tensor, n_layers: int) -> Parts:
        self._held.take_constants()
        (gradient,) = torch.autograd.grad(number, state, retain_graph=True)
        return self._share(gradient[0].cpu().double(), self._held.take_constants(), n_layers)

    @torch.no_grad()
    def _share(self, gradient: Float64[Tensor, "token d_model"], constants: PerToken, n_layers: int) -> Parts:
        """Multiply what was written with the gradient, in float64: massive activations cancel each other."""
        heads = np.zeros((n_layers, self.blocks[0].n_heads, len(gradient)))
        mlps = np.zeros((n_layers, len(gradient)))
        for layer, block in enumerate(self.blocks[:n_layers]):
            toward = torch.einsum("td,dhv->htv", gradient, block.projection.weight.cpu().double())
            heads[layer] = (block.attention.mixed.cpu().double() * toward).sum(dim=-1).numpy()
            mlps[layer] = (block.mlp.cpu().double() * gradient).sum(dim=-1).numpy()
            if block.projection.bias is not None:
                constants += (gradient @ block.projection.bias.cpu().double()).numpy()
        embedding = (self.blocks[0].state.detach()[0].cpu().double() * gradient).sum(dim=-1).numpy()
        return Parts(embedding, heads, mlps, constants, gradient)

    def _check(self, missed: float, allowed: float, what: str) -> None:
        """Raise InvalidModel where parts do not sum to the model's own number."""
        if not missed <= allowed:  # written so that NaN is wrong too
            raise InvalidModel(
                f"{self.subject.provenance.model} cannot be taken apart: its parts miss {what} by {missed:.2g}, "
                f"allowed are {allowed:.2g}",
                hint=FORMS,
            )


class KeysFound(Exception):
    """The rest of a layer is not computed."""


class KeysOnly(TorchFunctionMode):
    """Keep the keys that the next attention reads, and compute nothing behind them."""

    key: Tensor

    def __torch_function__(
        self, function: Kernel, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is functional.scaled_dot_product_attention:
            self.key = args[1] if len(args) > 1 else kwargs["key"]
            raise KeysFound
        return function(*args, **kwargs)


def soften(scores: Float64[np.ndarray, " token"], attendable: Bool[np.ndarray, " token"]) -> PerToken:
    """Return the softmax of scores over the keys that may be attended to."""
    powers: PerToken = np.where(attendable, np.exp(scores - scores[attendable].max()), 0.0)
    shares: PerToken = powers / powers.sum()
    return shares


def _score_keys(block: DecoderBlock, head: HeadName, query: int, key: Tensor) -> Float64[Tensor, " token"]:
    """Return a query's scores, the query held, without what is added by distance."""
    of_query = block.attention.query.detach()[0, head.head, query].double()
    scores: Tensor = key[0, block.group_of(head.head, key[0])].double() @ of_query * block.attention.scale
    return scores


def _to_numpy(tensor: Tensor) -> Any:
    return tensor.detach().cpu().double().numpy()
