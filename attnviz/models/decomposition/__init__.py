"""The residual stream of a model as the sum of what was written into it, by whom. Knows torch, no commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attnviz.models.protocols import AttentionModel

if TYPE_CHECKING:  # torch comes with it
    from attnviz.models.decomposition.stream import Stream
    from attnviz.records.attribution import Question


@runtime_checkable
class Decomposable(AttentionModel, Protocol):
    """A model whose answer can be taken apart into who wrote it, and its scores likewise."""

    def take_apart(self, text: str, text_name: str, question: Question | None) -> Stream:
        """Read one text, and explain the answer against its rival: where none is asked for, the next most probable.

        None: no answer is asked for, and the stream is there for the scores.

        Raises as `encode` does, InvalidModel for a form whose parts do not sum to its own numbers.
        """
