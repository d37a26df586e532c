"""Whatever is given: an exit code that means something, a line that says why, and nothing written elsewhere.

Here a few of each kind, always the same; `python -m tests.fuzz --examples 10000` tries many.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.kinds import KINDS, Arena, Attempt
from tests.fuzz.preparation import prepare

if not hasattr(os, "fork") or not hasattr(os, "wait4"):
    pytest.skip("this system does not fork", allow_module_level=True)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    prepare()
    return Arena(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "model folders"])  # some of whose forks hang
def test_what_is_given_ends_well(kind: str, arena: Arena) -> None:
    attempts = KINDS[kind](arena)

    @settings(max_examples=12, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(attempts)
    def attempt(each: Attempt) -> None:
        assert arena.broken(each) == []

    attempt()
