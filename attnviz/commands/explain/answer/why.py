"""From a residual stream to an explanation: who is named, for what, and what is left without them. Knows no words."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from attnviz.models.decomposition.stream import Parts, PerToken, Stream, soften
from attnviz.records.attribution import KEYS, Explanation, HeadName, Writer
from attnviz.table.numbers import Numbers

N_HEADS = 5  # of an answer
N_SHARES = 6  # of a look, that are kept
MIN_CONTROLS = 3
MAX_CONTROLS = 64  # words or places that are put in the place of another, drawn at random
BEYOND = 0.9  # of the controls
MARGIN = 1.5  # by which a lead is above that of the largest of as many random scores; measured
EARLY = 4  # MLPs of the first 1/EARLY of layers belong to the word
N_STEPS = 2


class Trial(NamedTuple):
    """What a weight becomes without a writer, and what it becomes in each control of the writer's kind."""

    without: float
    controls: Float64[np.ndarray, " control"]
    beyond: float = 0.0  # the share of controls that cost less

    def passes(self, weight: float) -> bool:
        """Return whether half of the weight or more is the writer's, and more than what controls cost."""
        return self.without <= weight / 2 and len(self.controls) >= MIN_CONTROLS and self.beyond >= BEYOND


def explain_answer(stream: Stream) -> Explanation:
    """Explain by how much an answer's logit exceeds its rival's. Raises InvalidModel where the parts miss it."""
    subject = stream.subject
    parts = stream.split_logit(subject.answer, subject.against)
    heads, own = parts.heads.sum(axis=2), stream.split_logit(subject.answer, None).heads.sum(axis=2)
    order = np.argsort(-np.abs(heads), axis=None, kind="stable")[:N_HEADS]
    logit = _choose_logit(stream, stream.logits)
    rows: list[dict[str, Any]] = []
    for rank, (layer, number) in enumerate(zip(*np.unravel_index(order, heads.shape), strict=True)):
        head = HeadName(int(layer), int(number))
        written = float(heads[head])
        by_query = stream.split_sources(head, parts)
        sources = by_query.sum(axis=0)
        source = int((sources * np.sign(written)).argmax())
        query = int((by_query[:, source] * np.sign(written)).argmax())
        removal = _choose_logit(stream, stream.answer_without(head)) - logit
        of_head = {"written": written, "from_source": float(sources[source]), "own": float(own[head])}
        first, *others = follow_looks(stream, head, query, source)
        rows += ({"rank": rank, **look} for look in (of_head | {"removal": removal} | first, *others))
    return Explanation(
        tokens=subject.tokens,
        target=subject.target,
        provenance=subject.provenance,
        n_layers=len(stream.blocks),
        logit=logit,
        total=float(parts.totals.sum()),
        looks=Numbers.from_rows(rows, KEYS),
        by_kind=tuple(parts.by_kind.items()),
        n_queries=int(parts.gradients[-1].any(dim=1).sum()),
    )


def _choose_logit(stream: Stream, logits: Float64[np.ndarray, " answer"]) -> float:
    subject = stream.subject
    return float(logits[subject.answer] - (0 if subject.against is None else logits[subject.against]))


def follow_looks(stream: Stream, head: HeadName, query: int, key: int) -> Iterator[dict[str, Any]]:
    """Yield a look, then again and again the look of the head that wrote what the last one was for."""
    for step in range(N_STEPS):
        look = find_reason(stream, head, query, key)
        yield {"step": step, **look}
        if look["source"] is None:
            return
        head, query, key = HeadName(*map(int, look["named"].split("."))), key, look["source"]


def find_reason(stream: Stream, head: HeadName, query: int, key: int) -> dict[str, Any]:
    """Find who made a query of a head look at a key.

    Before layer 0 nobody has written, and there is no reason. Nor is there where the score of the key leads by little.
    Layers that were never trained give scores of unit variance where queries and keys are normed, of less elsewhere,
    and the largest of n of them leads by √(2 ln n). Whose word or place that is nobody has learned.
    """
    attendable = stream.blocks[head.layer].attention.attendable[query].cpu().numpy()
    others = np.flatnonzero(attendable & (np.arange(len(attendable)) != key))
    weights, pieces = stream.weights_of(head, query).tolist(), stream.subject.tokens.pieces
    weight = weights[key]
    look: dict[str, Any] = {"layer": head.layer, "head": str(head), "query": query, "key": key}
    look |= {"query_token": pieces[query], "key_token": pieces[key], "weight": weight}
    look |= {"lead": 0.0, "writers": [], "leads": []}
    look |= dict.fromkeys(("named", "kind", "written_in", "source", "weight_without"))
    look |= {"controls": [], "n_passing": 0, "n_writers": 0, "weights": weights}
    if len(others) == 0:
        return look
    parts = stream.split_scores(head, query)
    drawn = sorted(np.random.default_rng(stream.subject.seed).permutation(others)[:MAX_CONTROLS].tolist())
    places = stream.score_places(head, query, [each for each in drawn if each] or [0])  # the first token is a sink
    written = [*_list_written(parts, len(stream.blocks)), (Writer("place", head.layer), places)]
    shares = sorted(((each, _find_lead(part, key, others)) for each, part in written), key=lambda each: -each[1])
    look["lead"] = lead = _find_lead(parts.totals, key, others)
    look["writers"] = [str(each) for each, _ in shares[:N_SHARES]]
    look["leads"] = [each for _, each in shares[:N_SHARES]]
    if head.layer == 0 or lead < math.sqrt(2 * math.log(len(others) + 1)) + MARGIN:
        return look
    writers = [each for each, _ in written if each.kind != "place"]
    trials = _try_written(stream, (head, query, key), weight, writers, drawn)
    scores = np.tile(parts.totals, (len(others), 1))
    scores[:, key] += places[others] - places[key]
    trials[Writer("place", head.layer)] = _compare_instead(
        weight, soften(parts.totals - places, attendable)[key], soften(scores, attendable)[:, key]
    )
    passing = [writer for writer, lead in shares if lead > 0 and trials[writer].passes(weight)]
    first, source = passing[0] if passing else shares[0][0], None
    if passing and first.kind == "head":
        source = int(stream.split_sources(HeadName(*first[1:]), parts)[key].argmax())
    return look | {
        "named": str(first) if passing else None,
        "kind": first.kind,
        "written_in": first.layer,
        "source": source,
        "weight_without": trials[first].without,
        "controls": trials[first].controls.tolist(),
        "n_passing": len(passing),
        "n_writers": len(shares),
    }


def _list_written(parts: Parts, n_layers: int) -> Iterator[tuple[Writer, PerToken]]:
    """Yield who wrote into the keys, and what each gave to their scores."""
    n_early = min(len(parts.mlps), -(-n_layers // EARLY))
    yield Writer("word", n_early), parts.embedding + parts.mlps[:n_early].sum(axis=0)
    for layer in range(n_early, len(parts.mlps)):
        yield Writer("mlp", layer), parts.mlps[layer]
    for layer, head in np.ndindex(parts.heads.shape[:2]):
        yield Writer("head", layer, head), parts.heads[layer, head]


def _try_written(
    stream: Stream, at: tuple[HeadName, int, int], weight: float, writers: list[Writer], drawn: list[int]
) -> dict[Writer, Trial]:
    """Take each writer out of the keys, and hold what that costs against what others of its kind cost.

    Whatever is taken out of a key changes its weight somewhat. So an MLP is held against the other MLPs, those of the
    word among them, and a head against the other earlier heads. In the place of the word other words are put: where any
    other would do as well, the word is not the reason.
    """
    head, query, key = at
    tried = [*writers, *(Writer("mlp", layer) for layer in range(writers[0].layer))]
    without = dict(zip(tried, stream.attend_without(head, query, tried)[:, key], strict=True))
    trials = {}
    for kind in ("mlp", "head"):
        weights = np.array([left for each, left in without.items() if each.kind == kind])
        for each in (each for each in writers if each.kind == kind):
            left = float(without[each])
            controls = np.delete(weights, np.argmax(weights == left))
            trials[each] = Trial(left, controls, float(np.sum(controls > left)) / max(1, len(controls)))
    instead = stream.attend_with_words(head, query, key, writers[0], drawn)
    trials[writers[0]] = _compare_instead(weight, without[writers[0]], instead[:, key])
    return trials


def _compare_instead(weight: float, without: float, instead: Float64[np.ndarray, " control"]) -> Trial:
    """Hold a weight against what it is with others in the writer's place: half of them leave no more than that."""
    return Trial(max(float(without), float(np.median(instead))), instead, float(np.mean(instead < weight)))


def _find_lead(given: PerToken, key: int, others: np.ndarray) -> float:
    """Return how far a key is raised over the mean of the others: softmax reads differences."""
    return float(given[key] - given[others].mean())
