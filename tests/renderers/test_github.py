"""Findings as workflow commands, as GitHub reads them."""

from __future__ import annotations

import re

import pytest

from attnviz.renderers.github import lines
from attnviz.report import Diagnostic
from tests.made import HOSTILE

COMMAND = re.compile(r"::(?P<level>\w+)(?: (?P<properties>[^:]*(?:%3A[^:]*)*))?::(?P<message>[^\r\n]*)\n")


def test_by_eye() -> None:
    found = [
        Diagnostic("first: 2 numbers", "entropy became 1.5, 100% sure\nsecond line", "error", "a/b.yaml", 12, 5),
        Diagnostic("", "no place", "warning"),
        Diagnostic("t", "m", "notice", "c,d.yaml"),
        Diagnostic("t", "a line is no place without its file", line=3),
    ]
    assert "".join(lines(found)) == (
        "::error file=a/b.yaml,line=12,col=5,title=first%3A 2 numbers::"
        "entropy became 1.5, 100%25 sure%0Asecond line\n"
        "::warning::no place\n"
        "::notice file=c%2Cd.yaml,title=t::m\n"
        "::error title=t::a line is no place without its file\n"
    )


@pytest.mark.parametrize("text", [*HOSTILE, "\n::error::mine", "\r::stop-commands::x", "a\u2028::set-env::b", "%0A::"])
def test_no_text_begins_a_line(text: str) -> None:
    (line,) = lines([Diagnostic(text, text, "error", text or "f", 1, 1)])
    assert len(line.splitlines()) == 1
    found = COMMAND.fullmatch(line)
    assert found is not None
    assert found["level"] == "error"
    properties = dict(item.split("=", 1) for item in found["properties"].split(","))
    assert set(properties) <= {"file", "line", "col", "title"}
    line.encode()


@pytest.mark.parametrize("text", ["a%b", "%25", "%0A", "\r\n", "x: y, z", "a::b"])
def test_what_is_escaped_is_read_back(text: str) -> None:
    """Unescaped as GitHub's runner does it, the percent sign last."""
    (line,) = lines([Diagnostic(text, text)])
    found = COMMAND.fullmatch(line)
    assert found is not None
    title = found["properties"].removeprefix("title=")
    for written, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        title = title.replace(written, sign)
    assert title == text
