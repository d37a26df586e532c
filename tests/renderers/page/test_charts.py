"""The charts of a page as data: every number as it is; and pages without maps."""

import json
import re
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from attnviz.errors import InvalidOption
from attnviz.renderers.page.html import html
from attnviz.report import Block, Charts, Column, FigureStyle, Note, Report, Table
from tests.renderers.figure.reports import LOSS, box_chart, curves, distributions, heads, line_chart, sample
from tests.renderers.page.test_html import ATTACKS, content, page

FACTS = Table("facts", "facts", "facts", (Column("what"), Column("value")), (("a", 1.23456789), ("b", 2.0)))


def of(*blocks: Block) -> Report:
    return Report("title", "subtitle", blocks)


def attacked_charts() -> Report:
    """Every string of charts and tables hostile, as if no view had made it safe."""
    lines = dict.fromkeys(ATTACKS, ((0.0, 1.0), (0.0, 1.0)))
    samples = tuple(sample(1.0, 2.0, label=attack, group=attack) for attack in ATTACKS)
    table = Table("t", ATTACKS[0], "facts", tuple(map(Column, ATTACKS)), (ATTACKS, ATTACKS[::-1]), ATTACKS[:2])
    of_lines = tuple(line_chart(lines, each, each, at=(0.5, each)) for each in ATTACKS[:3])
    of_boxes = tuple(box_chart(*samples, title=each, y_axis=each) for each in ATTACKS[:3])
    charts = Charts("c", ATTACKS[0], of_lines), Charts("d", ATTACKS[0], of_boxes, 2)
    return Report("".join(ATTACKS), "".join(ATTACKS), (*charts, table))


def test_every_number_is_stored_as_it_is() -> None:
    values = (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1e16 + 2)
    at = (0.1 + 0.2, 1.0, 2.0, 3.0, 4.0, 5.0)
    shown = of(curves(line_chart({"l": (at, values)})), distributions(box_chart(sample(*values))))
    (lines,), (boxes,) = (each["charts"] for each in content(shown)["charts"])
    for rows in (lines["rows"], boxes["rows"]):
        assert np.array([row[1] for row in rows]).tobytes() == np.array(values).tobytes()
    assert lines["rows"][0] == [0.1 + 0.2, 0.1, "l"]


@pytest.mark.parametrize("blocks", [(curves(LOSS),), (distributions(heads(3)),), (FACTS,), (curves(LOSS), FACTS)])
def test_a_page_without_maps_says_nothing_of_maps(blocks: tuple[Block, ...]) -> None:
    parsed = page(of(*blocks))
    found = json.loads(parsed.inner["content"])
    said = " ".join([*found["reading"], *found["exactness"]])
    assert not re.search(r"map|float32|256 steps|attention|cell", said)
    assert found["exactness"]
    assert found["parts"] == []
    assert "colours" not in found


@pytest.mark.parametrize(
    "blocks", [(), (Note("n"),), (Charts("c", "c", ()), Charts("d", "d", (), 2)), (replace(FACTS, role="top"),)]
)
def test_a_report_with_nothing_to_show_has_no_page(blocks: tuple[Block, ...]) -> None:
    with pytest.raises(InvalidOption, match="nothing to make a page of: no map, no chart and no table") as refused:
        list(html(of(*blocks), FigureStyle()))
    assert "\n" not in f"{refused.value}"


def test_no_two_modules_have_the_same_name_for_something() -> None:
    """On a page they are one script."""
    names: list[str] = []
    for module in files("attnviz.renderers.page").iterdir():
        if module.name.endswith(".js"):
            source = module.read_text(encoding="utf-8")
            names += re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", source, re.MULTILINE)
            for several in re.findall(r"^(?:export )?const \[([\w, ]+)\]", source, re.MULTILINE):
                names += several.split(", ")
    assert len(names) > 100
    assert sorted(names) == sorted(set(names))


def test_no_string_of_a_chart_becomes_an_element() -> None:
    plain, hostile = page(of(curves(LOSS), FACTS)), page(attacked_charts())
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    (lines, samples) = json.loads(hostile.inner["content"])["charts"]
    for picture in (lines, samples):
        assert tuple(dict.fromkeys(row[2] for row in picture["charts"][0]["rows"])) == ATTACKS


# Where rows lead

RELATIVE = {
    "a/attention.html": "a/attention.html",
    "../b c/é.html": "../b%20c/%C3%A9.html",
    "a?b#c": "a%3Fb%23c",
    "a\"b'<c>&": "a%22b%27%3Cc%3E%26",
    "./javascript:x": "./javascript%3Ax",
    "a/b:c": "a/b%3Ac",
    "\ud800": "%3F",
    "": "",
}
ELSEWHERE = (
    *("javascript:alert(1)", "JaVaScRiPt:alert(1)", " \n\tjavascript:alert(1)", "\x00javascript:alert(1)"),
    *("data:text/html,<script>alert(1)</script>", "vbscript:x", "https://example.org/", "//example.org/x"),
    *("\\\\example.org\\x", "/etc/passwd", "file:///etc/passwd"),
)


def linked(*links: str) -> Table:
    rows = tuple((f"job {number}", number) for number in range(len(links)))
    return Table("jobs", "jobs", "facts", (Column("job"), Column("files")), rows, links)


def links_of(*links: str) -> Any:
    return content(of(linked(*links)))["tables"][0].get("links")


@pytest.mark.parametrize(("link", "address"), RELATIVE.items())
def test_relative_addresses_are_encoded(link: str, address: str) -> None:
    assert links_of("x", link) == ["x", address]


@pytest.mark.parametrize("link", ELSEWHERE)
def test_what_leads_elsewhere_is_no_link(link: str) -> None:
    assert links_of("x", link) == ["x", ""]
    assert links_of(link) is None


def test_a_table_without_a_title_is_called_by_its_name() -> None:
    assert content(of(replace(FACTS, title="")))["tables"][0]["title"] == "facts"
