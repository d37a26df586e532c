"""Findings as workflow commands of GitHub, which become annotations. Knows `report` only.

Each is one line, whatever it says: a line end within is escaped, and no text of ours or a user's can begin a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from attnviz.report import Diagnostic

ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
IN_PROPERTIES = {**ESCAPES, ":": "%3A", ",": "%2C"}
# What a log would obey or not show, and line ends that are not for GitHub to know.
HIDDEN = re.compile(
    "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)


def lines(findings: Iterable[Diagnostic]) -> Iterator[str]:
    """`::error file=…,line=…,col=…,title=…::message`, each with its line end; a finding without a place names none.

    docs.github.com, "Workflow commands for GitHub Actions".
    """
    for finding in findings:
        places = {"file": finding.file, "line": finding.line, "col": finding.column} if finding.file else {}
        properties = {name: value for name, value in {**places, "title": finding.title}.items() if value}
        told = ",".join(f"{name}={_escaped(str(value), IN_PROPERTIES)}" for name, value in properties.items())
        yield f"::{finding.level}{' ' if told else ''}{told}::{_escaped(finding.message, ESCAPES)}\n"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    text = HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return "".join(escapes.get(character, character) for character in text)
