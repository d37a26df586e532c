"""Which answer is explained: a label of a classifier, or the token that comes next. Knows no kind of model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnviz.attribution import Question, Target
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models.attribution.subject import Answering, Subject
from attnviz.records import Provenance, Tokens
from attnviz.registry import suggestion


def classified(
    answering: Answering,
    ids: tuple[int, ...],
    tokens: Tokens,
    labels: Sequence[str],
    question: Question,
    provenance: Provenance,
) -> Subject:
    """A label, by its name or number; of two labels, against the other one.

    Raises InvalidOption for one that the model does not have, InvalidModel for a model with one output.
    """
    if len(labels) < 2:
        raise InvalidModel(f"{provenance.model} has one output, and no labels to tell apart", hint="It has no answer.")
    answering = replace(answering, n_labels=len(labels))
    logits = whole_logits(answering, ids)
    answer = int(logits.argmax()) if question.target is None else _label(question.target, labels, "target")
    against = 1 - answer if len(labels) == 2 else None
    if question.against is not None:
        against = _label(question.against, labels, "against")
    if against == answer:
        raise InvalidOption(f"--against {question.against} is the target itself", hint="Choose another, or none.")
    probability = float((logits / answering.temperature).softmax(dim=-1)[answer])
    target = Target(labels[answer], "" if against is None else labels[against], probability)
    return Subject(answering, ids, tokens, target, answer, against, provenance, question.seed)


def whole_logits(answering: Answering, ids: tuple[int, ...]) -> Tensor:
    """Of one text, what is beside the model added."""
    batch = torch.tensor([ids], device=answering.device)
    with torch.inference_mode():
        found = answering.logits(batch)
        if answering.beside is not None:
            found = found + answering.beside(batch)
    return found[0].double().cpu()


def _label(name: str, labels: Sequence[str], option: str) -> int:
    if name in labels:
        return list(labels).index(name)
    if name.isdecimal() and int(name) < len(labels):
        return int(name)
    raise InvalidOption(f"--{option} {name[:60]!r} is no label of this model", hint=suggestion(name, labels))
