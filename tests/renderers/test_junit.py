"""Cases as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from attnviz.renderers.documents.junit import document
from attnviz.report import CaseResult
from tests.made import HOSTILE

CASES = (
    CaseResult("first", ("figures.yaml:3:5: entropy became 1.5", "overview.png differs"), ("as before",)),
    CaseResult("second"),
    CaseResult("third", notes=("only a notice",)),
)


def test_by_eye() -> None:
    assert document("attnviz diff", CASES).decode() == (
        "<?xml version='1.0' encoding='utf-8'?>\n"
        '<testsuites name="attnviz diff" tests="3" failures="1" errors="0" skipped="0">\n'
        '  <testsuite name="attnviz diff" tests="3" failures="1" errors="0" skipped="0">\n'
        '    <testcase classname="attnviz diff" name="first">\n'
        '      <failure message="figures.yaml:3:5: entropy became 1.5 (and 1 more)">'
        "figures.yaml:3:5: entropy became 1.5\n"
        "overview.png differs</failure>\n"
        "      <system-out>as before</system-out>\n"
        "    </testcase>\n"
        '    <testcase classname="attnviz diff" name="second" />\n'
        '    <testcase classname="attnviz diff" name="third">\n'
        "      <system-out>only a notice</system-out>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n"
    )


def test_any_text_is_xml_without_controls() -> None:
    for text in (*HOSTILE, "]]>", '"&<>', "\ufffe\uffff", "a\r\nb", "\x00"):
        check(text)


def check(text: str) -> None:
    data = document(text, [CaseResult(text, (text, text), (text,))])
    root = ElementTree.fromstring(data)
    texts = [value for element in root.iter() for value in (*element.attrib.values(), element.text or "")]
    assert not any(ord(character) < 32 for value in texts for character in value if character != "\n")
    assert not any(0x7F <= ord(character) < 0xA0 for value in texts for character in value)
    (case,) = root.iter("testcase")
    if text.isprintable():
        assert case.get("name") == text
