"""Cases as JUnit XML, which servers show as tests. Knows `report` only. No clock: same cases, same bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from attnviz.report import CaseResult, Diagnostic

# What XML 1.0 does not have, and what it has and a reader would not see. The newline stays: messages have lines.
HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def document(suite: str, cases: Sequence[CaseResult], seconds: Mapping[str, float] | None = None) -> bytes:
    """One testsuite with one testcase per case; errors are failures, warnings and notices are its output.

    `seconds` are how long cases took, by name; without them nothing is said of time.
    """
    times = seconds or {}
    counts = {"tests": len(cases), "failures": sum(case.failed for case in cases), "errors": 0, "skipped": 0}
    told = {"name": _visible(suite), **{name: str(count) for name, count in counts.items()}}
    root = ElementTree.Element("testsuites", told)
    if seconds is not None:
        told["time"] = f"{sum(times.get(case.name, 0.0) for case in cases):.3f}"
    inner = ElementTree.SubElement(root, "testsuite", told)
    for case in cases:
        _add(inner, case, suite, times.get(case.name))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add(suite: ElementTree.Element, case: CaseResult, of: str, seconds: float | None) -> None:
    told = {"classname": _visible(of), "name": _visible(case.name)}
    if seconds is not None:
        told["time"] = f"{seconds:.3f}"
    added = ElementTree.SubElement(suite, "testcase", told)
    if failures := [finding for finding in case.findings if finding.level == "error"]:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        title = _visible(failures[0].title)
        failure = ElementTree.SubElement(
            added, "failure", {"message": _visible(failures[0].message.partition("\n")[0] + more), "type": title}
        )
        failure.text = "\n".join(map(_line, failures))
    if rest := [finding for finding in case.findings if finding.level != "error"]:
        ElementTree.SubElement(added, "system-out").text = "\n".join(map(_line, rest))


def _line(finding: Diagnostic) -> str:
    """ "figures.yaml:3:5: another number: entropy …", without what is not known."""
    place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part)
    return _visible(": ".join(part for part in (place, finding.title, finding.message) if part))


def _visible(text: str) -> str:
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
