"""Which names belong to the queries and keys of a group of calls, and which of them are padding. Knows no records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool

from attnviz.display import escape_for_display
from attnviz.errors import InvalidRecord
from attnviz.models.recording.groups import Group
from attnviz.records.grid import Grid

Pieces = tuple[str, ...]
Text = Literal["tokens", "keys"]
MASK = "It is [batch, token], 1 for a token, 0 for padding."
PADDING = "If some of them are padding, give attention_mask."


@dataclass(frozen=True, eq=False)
class Names:
    """What the caller called things."""

    tokens: tuple[Pieces, ...] | None
    keys: tuple[Pieces, ...] | None
    real: Bool[np.ndarray, "row token"] | None  # of the keys in a model that has both, else of the tokens
    grid: Grid | None = None  # where keys are its patches

    def find_names(self, text: Text) -> tuple[Pieces, ...] | None:
        """Return the names of one side's tokens, where they were given."""
        return self.tokens if text == "tokens" else self.keys

    def matches_length(self, text: Text, n: int) -> bool:
        """Tell whether the longest text has as many names."""
        rows = self.find_names(text)
        if rows is None:
            return False
        by_mask = self.real is not None and self.real.shape[1] == n and (text == "keys") == (self.keys is not None)
        return by_mask or max(map(len, rows), default=0) == n


def read_names(what: str, names: Sequence[str] | Sequence[Sequence[str]] | None) -> tuple[Pieces, ...] | None:
    """Read one row of names for each text. Raises InvalidRecord for what is no list of pieces."""
    if names is None:
        return None
    is_list = isinstance(names, Iterable) and not isinstance(names, str)  # and not the model, as it is easily typed
    rows = list(names) if is_list and not all(isinstance(name, str) for name in names) else [names]
    if not is_list or not all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows):
        problem = f"{what} are not a list of strings, or of such lists"
        raise InvalidRecord(problem, hint='Give its pieces, as in ["the", "cat"].')
    return tuple(tuple(map(str, row)) for row in rows)


def check_no_mask(attention_mask: Any) -> None:
    """Raise InvalidRecord where patches would be left out as padding: they would lie elsewhere in the image."""
    if attention_mask is not None:
        raise InvalidRecord("attention_mask does not go with a Grid", hint="Leave padding out: patches have none.")


def name_patches(grid: Grid, groups: Sequence[Group]) -> tuple[Pieces, ...]:
    """Name the patches, for each row of the batch: of the fewest keys that any group has and that fit.

    Raises InvalidRecord where none fit, and for one image of a batch of several.
    """
    fitting = [group for group in groups if grid.fits(group.shape[3])]
    group = min(fitting or groups, key=lambda each: each.shape[3])
    n_rows = group.shape[0]
    if grid.pixels is not None and n_rows > 1:
        raise InvalidRecord(f"one image, but a batch of {n_rows}", hint="Give the model one image at a time.")
    return (grid.names(group.shape[3]),) * n_rows


def real_tokens(attention_mask: Any) -> Bool[np.ndarray, "row token"] | None:
    """Read which tokens are no padding from a mask as Hugging Face has it: an array, tensor or lists, 1 for a token."""
    if attention_mask is None:
        return None
    on_host = attention_mask.detach().cpu() if hasattr(attention_mask, "detach") else attention_mask
    try:
        mask = np.atleast_1d(np.asarray(on_host))
    except ValueError as error:  # rows of several lengths
        raise InvalidRecord("attention_mask has rows of several lengths", hint=MASK) from error
    mask = mask[None] if mask.ndim == 1 else mask
    if mask.ndim != 2:
        raise InvalidRecord(f"attention_mask has {mask.ndim} axes", hint=MASK)
    if not np.isin(mask, (0, 1)).all():  # such as one that is added to scores, where 0 is a token
        other = mask[~np.isin(mask, (0, 1))][0]
        raise InvalidRecord(f"attention_mask holds {escape_for_display(str(other), 20)}", hint=MASK)
    return np.asarray(mask == 1)
