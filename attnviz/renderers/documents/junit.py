"""Cases as JUnit XML, which servers show as tests. Knows `report` only. No clock: same cases, same bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from attnviz.renderers.documents.hidden import write_out_hidden
from attnviz.report import CaseResult

# What XML 1.0 does not have, and what it has and a reader would not see. The newline stays: messages have lines.
HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def document(suite: str, cases: Sequence[CaseResult]) -> bytes:
    """One testsuite with one testcase per case."""
    counts = {"tests": len(cases), "failures": sum(bool(case.failures) for case in cases), "errors": 0, "skipped": 0}
    told = {"name": _visible(suite), **{name: str(count) for name, count in counts.items()}}
    root = ElementTree.Element("testsuites", told)
    inner = ElementTree.SubElement(root, "testsuite", told)
    for case in cases:
        added = ElementTree.SubElement(inner, "testcase", {"classname": _visible(suite), "name": _visible(case.name)})
        if case.failures:
            more = f" (and {len(case.failures) - 1} more)" if len(case.failures) > 1 else ""
            failure = ElementTree.SubElement(added, "failure", {"message": _visible(case.failures[0]) + more})
            failure.text = "\n".join(map(_visible, case.failures))
        if case.notes:
            ElementTree.SubElement(added, "system-out").text = "\n".join(map(_visible, case.notes))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _visible(text: str) -> str:
    return write_out_hidden(text, HIDDEN)
