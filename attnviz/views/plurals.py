"""Nouns that go with a number. Knows no more than English."""

from __future__ import annotations


def pluralize(number: int, many: str) -> str:
    """`many` as it is for so many: "keys", of one "key"; "queries", of one "query"."""
    if number != 1:
        return many
    return many.removesuffix("ies") + "y" if many.endswith("ies") else many.removesuffix("s")
