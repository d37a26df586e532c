"""What each token did for an answer: methods by name, and models seen from inside while they answer. Knows torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attnviz.models.protocols import AttentionModel
from attnviz.registry import Plugin

if TYPE_CHECKING:  # torch comes with it
    from attnviz.models.attribution.subject import Subject
    from attnviz.records.attribution import Question

# Each takes a Subject and gives a MethodScores.
METHODS = (
    Plugin("relevance", "attnviz.models.attribution.methods:relevance", "gradient × input, norms and weights held"),
    Plugin("gradient", "attnviz.models.attribution.methods:gradient", "gradient × input, nothing held"),
    Plugin("attention-gradient", "attnviz.models.attribution.methods:attention_gradient", "Chefer et al."),
    Plugin("value-norm", "attnviz.models.attribution.methods:value_norm", "weight × length of what it moves"),
    Plugin("attention", "attnviz.models.attribution.methods:attention", "attention received"),
    Plugin("leave-one-out", "attnviz.models.attribution.methods:leave_one_out", "a pass without each token"),
    Plugin("random", "attnviz.models.attribution.methods:chance", "chance: what every method has to beat"),
)


@runtime_checkable
class Attributable(AttentionModel, Protocol):
    """A model whose answers can be explained, token by token."""

    def subject(self, text: str, text_name: str, question: Question) -> Subject:
        """Choose an answer of a text for `attribute` to explain. Raises as `encode` does, and for an unknown one."""
