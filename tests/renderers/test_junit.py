"""Cases as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from attnviz.renderers.junit import document
from attnviz.report import CaseResult, Diagnostic
from tests.made import HOSTILE

WORSE = Diagnostic("2 numbers differ", "entropy became 1.5", "error", "figures.yaml", 3, 5)
CASES = (
    CaseResult(
        "first", (WORSE, Diagnostic("a picture differs", "overview.png"), Diagnostic("t", "as before", "warning"))
    ),
    CaseResult("second"),
    CaseResult("third", (Diagnostic("t", "only a notice", "notice"),)),
)


def test_by_eye() -> None:
    assert document("attnviz check", CASES).decode() == (
        "<?xml version='1.0' encoding='utf-8'?>\n"
        '<testsuites name="attnviz check" tests="3" failures="1" errors="0" skipped="0">\n'
        '  <testsuite name="attnviz check" tests="3" failures="1" errors="0" skipped="0">\n'
        '    <testcase classname="attnviz check" name="first">\n'
        '      <failure message="entropy became 1.5 (and 1 more)" type="2 numbers differ">'
        "figures.yaml:3:5: 2 numbers differ: entropy became 1.5\n"
        "a picture differs: overview.png</failure>\n"
        "      <system-out>t: as before</system-out>\n"
        "    </testcase>\n"
        '    <testcase classname="attnviz check" name="second" />\n'
        '    <testcase classname="attnviz check" name="third">\n'
        "      <system-out>t: only a notice</system-out>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n"
    )


def test_time_only_where_it_is_given() -> None:
    assert b"time" not in document("s", CASES)
    root = ElementTree.fromstring(document("s", CASES, {"first": 1.25, "second": 0.5}))
    assert [case.get("time") for case in root.iter("testcase")] == ["1.250", "0.500", None]
    assert root[0].get("time") == "1.750"


def test_any_text_is_xml_without_controls() -> None:
    for text in (*HOSTILE, "]]>", '"&<>', "\ufffe\uffff", "a\r\nb", "\x00"):
        check(text)


def check(text: str) -> None:
    data = document(text, [CaseResult(text, (Diagnostic(text, text), Diagnostic(text, text, "notice")))])
    root = ElementTree.fromstring(data)
    texts = [value for element in root.iter() for value in (*element.attrib.values(), element.text or "")]
    assert not any(ord(character) < 32 for value in texts for character in value if character != "\n")
    assert not any(0x7F <= ord(character) < 0xA0 for value in texts for character in value)
    (case,) = root.iter("testcase")
    if text.isprintable():
        assert case.get("name") == text
