"""Methods of attribution: what each token did for an answer, and the chance that every method has to beat.

Some read one pass of a model: gradients at its word vectors, and the attention that it sees on the way. Leaving one out
asks the model for its answer without each token.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from attnviz.errors import InvalidModel, InvalidText
from attnviz.models.attribution.held import HeldPass
from attnviz.models.attribution.operators import AttendingCall, WordInputs, attending
from attnviz.models.attribution.subject import Subject
from attnviz.records.attribution import MethodScores

BACKWARD = 2  # forward passes that a backward pass takes as long as
NO_ATTENTION = "attnviz.record says what of its attention can be seen."


def relevance(subject: Subject) -> MethodScores:
    """Compute gradient × input with norms, weights and gates held: the share of each token in the logit.

    Ali et al. 2022 (arXiv:2202.07304); AttnLRP, Achtibat et al. 2024 (arXiv:2402.05602). With what biases and positions
    gave, the scores add up to the logit.
    """
    part = subject.answering
    held = HeldPass(part.words, part.module)
    with held.hooks():
        logit = subject.run(held)
        own = _gradient_times_input(logit, held)
    return MethodScores(
        scores=own,
        n_passes=1 + BACKWARD,
        total=float(logit.detach()[0]),
        others=(("biases and positions", held.constants),),
        not_held=tuple(held.not_held),
    )


def gradient(subject: Subject) -> MethodScores:
    """Compute gradient × input, nothing held (Simonyan et al. 2014, arXiv:1312.6034; Shrikumar et al. 2016,
    arXiv:1605.01713).

    Its size is the gradient with respect to a token's presence that Jain & Wallace (2019, arXiv:1902.10186) hold
    attention against. Layer norm cancels nearly all of its sum.
    """
    watching = WordInputs(subject.answering.words)
    return MethodScores(_gradient_times_input(subject.run(watching), watching), 1 + BACKWARD)


def attention_gradient(subject: Subject) -> MethodScores:
    """Multiply attention with its gradient, the positive part, through all layers (Chefer et al. 2021,
    arXiv:2103.15679, equations 5 and 6).

    R ← R + mean over heads of (A ∘ ∂L/∂A)⁺ · R, layer after layer. Read off at the tokens that the answer was taken
    from, which are those whose last attention has a gradient: [CLS], the last token, or all where means are taken.
    """
    attentions, logit = _trace_pass(subject)
    mixed = [each.mixed for each in attentions]
    of_mixed: Sequence[Tensor | None] = torch.autograd.grad(logit[0], mixed, allow_unused=True)
    identity = torch.eye(len(subject.ids), dtype=torch.float64)
    total, read_off = identity, torch.ones(len(subject.ids), dtype=torch.bool)
    for attention, of_output in zip(attentions, of_mixed, strict=True):
        if of_output is not None:
            of_weights = attention.weights * attention.weight_gradient(of_output)
            total = total + of_weights.clamp(min=0).mean(dim=(0, 1)).cpu().double() @ total
            read_off = attention.by_head(of_output).ne(0).any(dim=-1).any(dim=1)[0].cpu()
    if not read_off.any():  # the answer does not hang on attention at all
        read_off = torch.ones_like(read_off)
    scores = (total - identity)[read_off].mean(dim=0)
    return MethodScores(np.asarray(scores.numpy()), 1 + BACKWARD, signed=False)


def value_norm(subject: Subject) -> MethodScores:
    """Weigh attention by the length of what it moves, ‖A_ij v_j W_O‖ (Kobayashi et al. 2020, arXiv:2004.10102).

    A token that gets much weight and has a short value, such as a sink, moves little. Shares, summed over queries,
    heads and layers. Raises InvalidModel where no output projection is seen.
    """
    attentions, _ = _trace_pass(subject)
    total = np.zeros(len(subject.ids))
    for attention in attentions:
        if attention.read_by is None:
            problem = f"no linear layer reads the attention of {subject.provenance.model} head by head"
            raise InvalidModel(problem, hint="Choose --method attention.")
        total += (attention.call.weights[0].sum(axis=1) * attention.value_norms()).sum(axis=0, dtype=np.float64)
    return MethodScores(total / max(total.sum(), np.finfo(np.float64).tiny), 1, signed=False)


def attention(subject: Subject) -> MethodScores:
    """Average the weight on each token over queries, heads and layers, which users take for an answer.

    Shares that sum to 1 where no layer has a sink.
    """
    attentions, _ = _trace_pass(subject)
    received = [each.call.weights.mean(axis=(0, 1, 2), dtype=np.float64) for each in attentions]
    return MethodScores(np.mean(received, axis=0), 1, signed=False)


def _gradient_times_input(logit: Tensor, watched: WordInputs) -> np.ndarray:
    (found,) = torch.autograd.grad(logit[0], watched.vectors)
    return np.asarray((found * watched.vectors.detach()).cpu().double().sum(dim=-1)[0].cpu().numpy())


def _trace_pass(subject: Subject) -> tuple[list[AttendingCall], Tensor]:
    """Trace a pass with its attention. Raises InvalidModel where it has none, or one that is not over the tokens."""
    found: list[AttendingCall] = []
    n_tokens, words = len(subject.ids), WordInputs(subject.answering.words)
    with attending(attended=found.append):
        logit = subject.run(words)
    if not found:
        raise InvalidModel(f"no attention was seen in {subject.provenance.model}", hint=NO_ATTENTION)
    for each in found:
        if each.call.kept.shape[0::2] != (1, n_tokens) or each.call.kept.shape[3] != n_tokens or not each.is_in_order:
            raise InvalidModel(
                f"{subject.provenance.model} attends over {each.call.kept.shape[2:]} places, not {n_tokens} tokens",
                hint="Choose --method relevance or leave-one-out.",
            )
    return found, logit


def leave_one_out(subject: Subject) -> MethodScores:
    """Measure how much of the answer's probability, or of its number, goes with each token (Li et al. 2016,
    arXiv:1612.08220).

    One pass for each token of the text, and one with all of them. Markers have 0. Raises InvalidText for one token:
    nothing is left without it.
    """
    n_tokens = len(subject.ids)
    places = np.flatnonzero(~np.array(subject.tokens.special, dtype=bool))
    if len(places) < 2:
        problem = "leave-one-out needs two tokens: nothing is left of one"
        raise InvalidText(problem, hint="Choose --method relevance, or a longer text.")
    scores = np.zeros(n_tokens)
    whole, *without = subject.values(
        [np.ones(n_tokens, dtype=bool), *(np.arange(n_tokens) != place for place in places)]
    )
    scores[places] = whole - np.array(without)
    return MethodScores(scores, 1 + len(places))


def chance(subject: Subject) -> MethodScores:
    """Return random scores from 0 to 1, evenly distributed, the same for the same text and seed."""
    generator = np.random.default_rng([subject.seed, *subject.ids])
    return MethodScores(generator.random(len(subject.ids)), 0, signed=False)
