"""From a residual stream to an explanation: who is named, for what, and what is left without them. Knows no words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from attnviz.models.decomposition.stream import Parts, Stream
from attnviz.records.explanation import (
    AnswerForm,
    CellExplanation,
    Contribution,
    Explanation,
    HeadName,
    Look,
    Share,
    Writer,
)

N_HEADS = 5  # of an answer
N_SHARES = 6  # of a look, that are kept
N_RANDOM = 19  # heads: one that does more than all of them is rarer than 1 in 20
EARLY = 4  # MLPs of the first 1/EARLY of layers belong to the word
N_STEPS = 2


def explain_answer(stream: Stream) -> Explanation:
    """Explain by how much an answer's logit exceeds its rival's. Raises InvalidModel where the parts miss it."""
    subject, part = stream.subject, stream.subject.answering
    parts = stream.split_logit(subject.answer, subject.against)
    heads = parts.heads.sum(axis=2)
    order = np.argsort(-np.abs(heads), axis=None, kind="stable")[:N_HEADS]
    logit = _choose_logit(stream, stream.logits)
    found = []
    for layer, number in zip(*np.unravel_index(order, heads.shape), strict=True):
        head = HeadName(int(layer), int(number))
        written = float(heads[head])
        by_query = stream.split_sources(head, parts)
        sources = by_query.sum(axis=0)
        source = int((sources * np.sign(written)).argmax())
        query = int((by_query[:, source] * np.sign(written)).argmax())
        removal = _choose_logit(stream, stream.answer_without(head)) - logit
        looks = tuple(_follow(stream, head, query, source))
        found.append(Contribution(head, written, source, float(sources[source]), removal, looks))
    token: AnswerForm = "masked token" if part.fills_in else "token"
    return Explanation(
        tokens=subject.tokens,
        target=subject.target,
        provenance=subject.provenance,
        n_layers=len(stream.blocks),
        logit=logit,
        total=float(parts.totals.sum()),
        contributions=tuple(found),
        by_kind=tuple(parts.by_kind.items()),
        form=token if part.answers is None else part.answers.kind,
        n_queries=int(parts.gradients[-1].any(dim=1).sum()),
    )


def explain_cell(stream: Stream, head: HeadName, query: int) -> CellExplanation:
    """Explain why a query of a head looks where it looks most."""
    key = int(stream.weights_of(head, query).argmax())
    looks = tuple(_follow(stream, head, query, key))
    return CellExplanation(stream.subject.tokens, stream.subject.provenance, len(stream.blocks), looks)


def _choose_logit(stream: Stream, logits: Float64[np.ndarray, " answer"]) -> float:
    subject = stream.subject
    return float(logits[subject.answer] - (0 if subject.against is None else logits[subject.against]))


def _follow(stream: Stream, head: HeadName, query: int, key: int) -> Iterator[Look]:
    """Go from a look to the look of the head that wrote what it was for."""
    for _ in range(N_STEPS):
        look = find_reason(stream, head, query, key)
        yield look
        if look.named is None or look.source is None:
            return
        head, query, key = HeadName(*look.named.writer[1:]), look.key, look.source


def find_reason(stream: Stream, head: HeadName, query: int, key: int) -> Look:
    """Find who made a query of a head look at a key.

    A writer is named only if the weight falls further without it than without each of `N_RANDOM` other earlier heads.
    """
    parts, attention = stream.split_scores(head, query), stream.blocks[head.layer].attention
    others = np.flatnonzero(attention.attendable[query].cpu().numpy())
    others = others[others != key]
    weight = float(stream.weights_of(head, query)[key])
    if len(others) == 0:
        return Look(head, query, key, weight, 0.0)
    listed = list(_list_shares(parts, len(stream.blocks), key, others))
    if (bias := stream.bias_of(head, query)) is not None and bias.any():
        listed.append(Share(Writer("distance", head.layer), _find_lead(bias, key, others)))
    shares = sorted(listed, key=lambda share: -share.lead)[:N_SHARES]
    look = Look(head, query, key, weight, _find_lead(parts.totals, key, others), tuple(shares))

    def attend_without(writer: Writer) -> float:
        return float(stream.attend_without(head, query, writer)[key])

    random = {writer: attend_without(writer) for writer in _draw_heads(parts, stream.subject.seed)}
    for share in shares:
        without = attend_without(share.writer)
        others_without = tuple(found for writer, found in random.items() if writer != share.writer)
        if share.lead > 0 and without < min((weight, *others_without)):
            source = None
            if share.writer.kind == "head":
                source = int(stream.split_sources(HeadName(*share.writer[1:]), parts)[key].argmax())
            return replace(look, named=share, source=source, weight_without=without, random=others_without)
    return replace(look, random=tuple(random.values()))


def _list_shares(parts: Parts, n_layers: int, key: int, others: np.ndarray) -> Iterator[Share]:
    n_early = min(len(parts.mlps), -(-n_layers // EARLY))
    word = parts.embedding + parts.mlps[:n_early].sum(axis=0)
    yield Share(Writer("word", n_early), _find_lead(word, key, others))
    for layer in range(n_early, len(parts.mlps)):
        yield Share(Writer("mlp", layer), _find_lead(parts.mlps[layer], key, others))
    for layer, head in np.ndindex(parts.heads.shape[:2]):
        yield Share(Writer("head", layer, head), _find_lead(parts.heads[layer, head], key, others))


def _find_lead(given: Float64[np.ndarray, " token"], key: int, others: np.ndarray) -> float:
    """Return how far a key is raised over the mean of the others: softmax reads differences."""
    return float(given[key] - given[others].mean())


def _draw_heads(parts: Parts, seed: int) -> list[Writer]:
    """Draw some of the earlier heads, whose removal shows what that of any head does."""
    there = [Writer("head", *place) for place in np.ndindex(parts.heads.shape[:2])]
    return [there[place] for place in sorted(np.random.default_rng(seed).permutation(len(there))[:N_RANDOM])]
