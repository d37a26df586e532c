"""Nouns go with their number."""

from __future__ import annotations

import pytest

from attnviz.display import pluralize


@pytest.mark.parametrize(("many", "one"), [("tokens", "token"), ("queries", "query"), ("entries", "entry")])
def test_one_is_singular_and_nothing_else_is(many: str, one: str) -> None:
    assert [pluralize(number, many) for number in (0, 1, 2, 21)] == [many, one, many, many]
