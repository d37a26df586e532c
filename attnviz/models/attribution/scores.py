"""What a method says of a subject, and how it becomes a record. Knows no method."""

from __future__ import annotations

from dataclasses import dataclass

from attnviz.attribution import Attribution, Scores
from attnviz.errors import AttnvizError, InvalidModel
from attnviz.models.attribution import METHODS
from attnviz.models.attribution.subject import Subject
from attnviz.registry import find, load

ANY_MODEL = "Choose --method leave-one-out, which asks nothing of a model."
BACKWARD = 2  # forward passes that a backward pass takes as long as


@dataclass(frozen=True, eq=False)
class MethodScores:
    """A score per token. Where they add up, `total` is the logit and `others` are the shares of no token."""

    scores: Scores
    n_passes: int
    total: float | None = None
    others: tuple[tuple[str, float], ...] = ()
    parts: tuple[tuple[str, Scores], ...] = ()
    signed: bool = True  # whether a score below 0 speaks against the answer
    not_held: tuple[str, ...] = ()  # why it may not add up


def attribute(subject: Subject, method: str) -> Attribution:
    """The scores of a method, by its name. Raises InvalidOption for an unknown name, InvalidModel where a method that
    adds up does not, with what in the model is to blame.
    """
    found: MethodScores = load(find(METHODS, method, "method"))(subject)
    try:
        said = {name: value for name, value in vars(found).items() if name != "not_held"}
        return Attribution(method, subject.tokens, target=subject.target, provenance=subject.provenance, **said)
    except AttnvizError as error:
        blamed = f"; not linear even when held: {', '.join(found.not_held[:4])}" if found.not_held else ""
        raise InvalidModel(f"{error}{blamed}", hint=ANY_MODEL) from error
