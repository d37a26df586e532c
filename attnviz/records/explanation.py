"""Which heads wrote a decoder's answer, and why they looked where they did. Knows numpy, and nothing of models."""

from __future__ import annotations

from typing import NamedTuple


class HeadName(NamedTuple):
    """A head by its layer and its number in it, both from 0."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}"
