"""The fixture `attention_regression`, as somebody else's tests use it: pytest within pytest, on real records."""

from __future__ import annotations

import pytest

import attnviz
import attnviz.python.regression  # what pytest within pytest imports first, it forgets: not so numpy and torch
from attnviz.python.pytest_plugin import REGEN_OPTION

pytest_plugins = ["pytester"]

TESTS = """
import numpy as np, pytest, attnviz

@pytest.fixture
def maps():
    weights = np.full((1, 2, 3, 3), 1 / 3)
    weights[0, 1, 2] += np.array([1, -0.5, -0.5]) * {change}
    return attnviz.from_attentions(weights, {tokens})

@pytest.mark.parametrize("case", ["a b", "a-b"])
def test_of(case, maps, attention_regression):
    attention_regression.check(maps)

class TestTwo:
    def test_of(self, maps, attention_regression):
        attention_regression.check([maps], name="first")
        attention_regression.check(maps, tolerance=0.5, name="second")
"""
WORDS = ["the", "cat", "sat"]


@pytest.fixture(autouse=True)
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the plugins that happen to be installed, this one under the name of its module."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.chdir(pytester.path)


def run(pytester: pytest.Pytester, *options: str, change: float = 0.0, tokens: list[str] = WORDS) -> pytest.RunResult:
    pytester.makepyfile(test_model=TESTS.replace("{change}", str(change)).replace("{tokens}", str(tokens)))
    return pytester.runpytest_inprocess("-p", "attnviz.python.pytest_plugin", "-p", "no:cacheprovider", *options)


def records(pytester: pytest.Pytester) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((pytester.path / "test_model").iterdir())}


def test_the_first_run_writes_and_fails(pytester: pytest.Pytester) -> None:
    first = run(pytester)
    first.assert_outcomes(failed=3)  # the second check of the third test is not reached
    first.stdout.fnmatch_lines(["*was not there. It is written now: look at it and commit it."])
    first.stdout.fnmatch_lines(["written: test_model/TestTwo.test_of.first.safetensors"])
    run(pytester, REGEN_OPTION).assert_outcomes(passed=3)
    kept = records(pytester)
    assert len(kept) == 4  # two cases whose names are one as files are told apart
    assert attnviz.load(pytester.path / "test_model" / "test_of-a-b.safetensors").queries.pieces == tuple(WORDS)
    again = run(pytester)
    again.assert_outcomes(passed=3)
    again.stdout.no_fnmatch_line("written:*")
    assert records(pytester) == kept


def test_what_moved_is_said_by_head(pytester: pytest.Pytester) -> None:
    run(pytester, REGEN_OPTION).assert_outcomes(passed=3)
    kept = records(pytester)
    run(pytester, change=9e-5).assert_outcomes(passed=3)
    moved = run(pytester, change=0.25)
    moved.assert_outcomes(failed=3)
    moved.stdout.fnmatch_lines(
        [
            "attention moved by more than 0.0001 in 1 of 2 heads, most in the first:",
            "  layer 0, head 1, query 2 sat, key 0 the: 0.333333 became 0.583333 (+0.25)",
            "What was found: attnviz diff test_model/test_of-a-b-*.safetensors *.safetensors",
            f"If it is meant: pytest {REGEN_OPTION}",
        ]
    )
    assert records(pytester) == kept
    accepted = run(pytester, REGEN_OPTION, change=0.25)
    accepted.assert_outcomes(passed=3)
    accepted.stdout.fnmatch_lines(["written: test_model/test_of-a-b.safetensors"])
    after = records(pytester)
    assert [name for name in kept if after[name] == kept[name]] == ["TestTwo.test_of.second.safetensors"]


def test_another_text_is_said(pytester: pytest.Pytester) -> None:
    run(pytester, REGEN_OPTION)
    other = run(pytester, tokens=["the", "dog", "sat"])
    other.stdout.fnmatch_lines(["the record cannot be compared: tokens: token 1 is 'cat' before and 'dog' after."])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("check('maps')", "*InvalidRecord: a str is not a record*"),
        (
            "check(MAPS, tolerance=float('nan'))",
            "*InvalidOption: tolerance=nan is not a tolerance. Give a finite number of at least 0.",
        ),
        ("check(MAPS, name=5)", "*InvalidOption: name=5 is not a file name. A-Z*"),
        ("check(MAPS, name='../x')", "*InvalidOption: name='../x' is not a file name. A-Z*"),
        ("check(MAPS); attention_regression.check(MAPS)", "*InvalidOption: two checks of one test would keep one*"),
    ],
)
def test_wrong_uses_are_said(call: str, said: str, pytester: pytest.Pytester) -> None:
    maps = "import attnviz\nMAPS = attnviz.from_attentions([[[[1.0]]]])\n"
    pytester.makepyfile(f"{maps}def test(attention_regression): attention_regression.{call}")
    for _ in range(2):
        found = pytester.runpytest_inprocess("-p", "attnviz.python.pytest_plugin")
    found.stdout.fnmatch_lines([said])
