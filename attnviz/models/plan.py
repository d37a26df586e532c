"""What a record keeps of a model's pass over one text. Knows models and records; nothing of commands and pictures.

All weights of a text are heads × queries × keys numbers: of 8 heads over 8,192 tokens 2 GiB. Three things can be kept
in their place. Where the weights have room and can be shown one by one, they are kept as they are. Where they have no
room, but only some heads are wanted, the weights of those are. Otherwise q, k and the log-sum-exp of each row are kept,
from which any block of weights is worked out again: heads × tokens × d_head numbers, of a model that gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attnviz.errors import InvalidOption, InvalidRecord, InvalidSelection, TooLarge
from attnviz.models.protocols import EVERY, AttentionModel, LayersAndHeads

if TYPE_CHECKING:  # numpy comes with them
    from attnviz.records import AttentionMaps

FACTORS_FOR_ROOM = (
    "the weights have no room in --max-memory: q, k and log-sum-exp are kept, and weights worked out from them"
)
FACTORS_FOR_SIZE = (
    "more weights than a picture shows one by one: q, k and log-sum-exp are kept; --no-factored keeps all weights"
)
CHOSEN_HEADS = (
    "the weights of all heads have no room in --max-memory: only those of the chosen layers and heads are kept"
)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a record is wanted for."""

    choice: LayersAndHeads = EVERY  # the heads that are shown or measured
    only_choice: bool = False  # whether to keep nothing else, even where there is room
    needs_weights: str | None = None  # the option that needs every weight, such as "--rollout"
    factored: bool | None = None  # whether to keep q and k; None: where weights are too many
    max_shown: int | None = None  # weights that can be shown one by one; None: any number
    check_room: Callable[[AttentionMaps], None] = lambda maps: None  # raises TooLarge where q and k have no room


@dataclass(frozen=True)
class RecordingPlan:
    """How one text is recorded."""

    attend: Callable[[str, str, LayersAndHeads], AttentionMaps]
    choice: LayersAndHeads = EVERY
    notice: str = ""
    may_widen: bool = True  # to all layers, where a chosen one does not attend

    def record(self, text: str, name: str) -> AttentionMaps:
        """Record one text; with `may_widen` every layer where a chosen one does not attend: the record says which do.

        Raises InvalidSelection for a layer or head that is not there, and as the model does.
        """
        try:
            return self.attend(text, name, self.choice)
        except InvalidSelection:
            if self.choice.layers is None or not self.may_widen:
                raise
            return self.attend(text, name, replace(self.choice, layers=None))

    def notices(self, maps: AttentionMaps) -> tuple[str, ...]:
        """Return what to say about the record. A model that gives no q and k has kept all weights: nothing."""
        kept_all = self.notice == FACTORS_FOR_SIZE and not maps.is_factored
        return () if kept_all or not self.notice else (self.notice,)


def plan_recording(model: AttentionModel, text: str, needs: Needs) -> RecordingPlan:
    """Decide what to keep of one text, before anything large is allocated.

    Raises:
        InvalidText: for a text without tokens.
        TooLarge: where nothing of it has room.
        InvalidOption: for q and k of a model that has none, or together with an option that needs all weights.
    """
    if needs.factored:
        if needs.needs_weights is not None:
            problem = f"{needs.needs_weights} needs all weights, which --factored does not keep"
            raise InvalidOption(problem, hint="Leave out one.")
        return RecordingPlan(_keep_factors(model, needs), needs.choice, may_widen=not needs.only_choice)
    may_factor = needs.needs_weights is None and needs.factored is None
    try:
        n_queries, n_keys = model.map_size(text)
    except TooLarge as error:
        with suppress(TooLarge):
            if needs.choice != EVERY:
                model.encode(text, needs.choice)  # whether there is room for these
                return RecordingPlan(model.attention, needs.choice, CHOSEN_HEADS, may_widen=not needs.only_choice)
        if not may_factor:
            raise
        return RecordingPlan(_keep_factors(model, needs, error), needs.choice, FACTORS_FOR_ROOM)
    n_weights = model.n_layers * model.n_heads * n_queries * n_keys
    if may_factor and needs.max_shown is not None and n_weights > needs.max_shown:
        return RecordingPlan(_keep_factors(model, needs, or_weights=True), needs.choice, FACTORS_FOR_SIZE)
    if needs.only_choice:
        return RecordingPlan(model.attention, needs.choice, may_widen=False)
    return RecordingPlan(model.attention)


def _keep_factors(
    model: AttentionModel, needs: Needs, no_room: TooLarge | None = None, *, or_weights: bool = False
) -> Callable[[str, str, LayersAndHeads], AttentionMaps]:
    """Record q and k, or all weights of a model that cannot give q and k of this text where these will do.

    Where weights had `no_room`, and the model has no q and k, the error also says that.
    """

    def attend(text: str, name: str, choice: LayersAndHeads) -> AttentionMaps:
        try:
            maps = model.attend_factored(text, name, choice)
            needs.check_room(maps)
            return maps
        except (InvalidOption, InvalidRecord, TooLarge) as error:
            if or_weights:
                return model.attention(text, name)
            if no_room is None or isinstance(error, InvalidRecord):
                raise
            if isinstance(error, TooLarge):  # q and k take less memory than weights do
                fewer_tokens = no_room.hint.partition("--max-memory")[0]
                raise TooLarge(error.problem, hint=f"{fewer_tokens}{error.hint}") from error
            raise TooLarge("; ".join(dict.fromkeys((no_room.problem, error.problem))), hint=no_room.hint) from error

    return attend
