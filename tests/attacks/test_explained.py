"""Walk-throughs of very short texts and of padding: every number is one."""

from __future__ import annotations

import json

import pytest

from tests.attacks.endings import RunHere, worked


@pytest.mark.parametrize("model", ["multi", "dot"])
@pytest.mark.parametrize("causal", [(), ("--causal",)])
def test_a_text_of_one_token(model: str, causal: tuple[str, ...], run_here: RunHere) -> None:
    asked = ("explain", "--text", "good", "--model", model, "--by-hand", *causal)
    found = json.loads(worked(run_here(*asked, "--json")).out)
    assert all(head["weights"] == [1.0] for head in found["heads"])
    assert "sum over 1 key " in worked(run_here(*asked)).stdout


@pytest.mark.parametrize(
    "asked", [("--max-tokens", "5", "--show-padding"), ("--max-tokens", "1"), ("--keep", "head-tail")]
)
def test_nothing_is_not_a_number(asked: tuple[str, ...], run_here: RunHere) -> None:
    for writing in ((), ("--print", "markdown"), ("--print", "latex"), ("--json",)):
        text = worked(run_here("explain", "--text", "a fine film", "--query", "-1", "--model", "dot", *asked, *writing))
        assert "nan" not in text.stdout.lower()
