"""The charts of a page: each as the vectors that the pictures have, ready to stand in HTML, and its numbers as a table.

The page's policy lets no style of elements through, so that what matplotlib writes as style become attributes; colours
that depend on the screen are the page's. Many numbers are boxes here as in the pictures, and no dots.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import isfinite, isnan, nan
from typing import Any

import numpy as np

from attnviz.report import Calculation, Chart, Charts, Report

LINK = "{http://www.w3.org/1999/xlink}href"
REFERENCE = re.compile(r"#([\w.-]+)")
DECIMALS = re.compile(r"(\.\d\d)\d+")
COMMENT = re.compile(b"<!--.*?-->", re.DOTALL)  # texts as they are, which may be no XML
# What the pictures' colours are on a page, which may be dark; lines as those of maps.
COLOURS = {
    "#1a1a1a": "var(--ink)",
    "#595959": "var(--quiet)",
    "#ffffff": "var(--paper)",
    "#e4e4e4": "var(--rule)",
    "#cfcfcf": "var(--rule)",
    "#101010": "var(--ink)",  # seaborn's
    "#0072b2": "var(--head-0)",
    "#d55e00": "var(--head-1)",
    "#009e73": "var(--head-2)",
    "#cc79a7": "var(--head-3)",
    "#e69f00": "var(--head-4)",
    "#56b4e9": "var(--head-5)",
}
HEADERS = {"group": "of", "label": "point", "until": "read at"}  # of columns, as a reader knows them
UNWRITABLE = re.compile("[\ud800-\udfff\0]")
LARGEST = 2  # pixels of a page for a point of the picture: letters like those of the page, and no larger if it is alone
SUMMARY = ("numbers", "smallest", "lower quartile", "median", "upper quartile", "largest")


def charts_of(report: Report) -> tuple[list[Mapping[str, object]], list[str]]:
    """Pictures of charts with their numbers, and the SVG of each chart in its order, whose id is `chart-` and a number.

    Pictures without a single chart are left out.
    """
    pictures: list[Mapping[str, object]] = []
    drawn: list[str] = []
    numbers = count()
    for picture in report.pictures:
        if not isinstance(picture, Charts | Calculation):
            continue
        charts = []
        for chart in picture.charts if isinstance(picture, Charts) else (picture,):
            name = f"chart-{next(numbers)}"
            charts.append({"id": name, "title": chart.title, **_describe_numbers(chart)})
            from attnviz.renderers.figure.files import chart_svg  # matplotlib comes with it

            # Each chart is a picture of its own: a phone shows one under the other.
            alone: Charts | Calculation = picture
            if isinstance(picture, Charts) and isinstance(chart, Chart):
                groups = tuple(
                    dict.fromkeys(of for each in picture.charts for of in (*each.groups, *each.column("group")))
                )
                alone = replace(picture, charts=(replace(chart, groups=groups),))
            drawn.append(as_html(chart_svg(alone), name, chart.title, _words(chart)))
        if charts:
            n_columns = picture.n_columns if isinstance(picture, Charts) else 1
            pictures.append({"title": picture.title, "columns": n_columns or len(charts), "charts": charts})
    return pictures, drawn


def as_html(svg: bytes, name: str, title: str, description: str) -> str:
    """A picture of matplotlib's to stand in a page: no style, ids of its own, words for those who do not see it."""
    root = ET.fromstring(COMMENT.sub(b"", svg))  # noqa: S314 - matplotlib wrote it just now
    referred = {
        found[1] for each in root.iter() for value in each.attrib.values() for found in REFERENCE.finditer(value)
    }
    for each in root.iter():
        each.tag = each.tag.rpartition("}")[2]
        properties = (entry.split(":") for entry in each.attrib.pop("style", "").split(";") if entry.strip())
        each.attrib.update(
            {key.strip(): COLOURS.get(value.strip(), value.strip()) for key, value in properties if value.strip()}
        )
        if LINK in each.attrib:
            each.set("href", each.attrib.pop(LINK))
        for key in {"href", "clip-path"} & each.attrib.keys():
            each.set(key, REFERENCE.sub(rf"#{name}-\1", each.attrib[key]))
        if each.attrib.get("id") in referred:
            each.set("id", f"{name}-{each.attrib['id']}")
        else:
            each.attrib.pop("id", None)
        if "d" in each.attrib:
            each.set("d", " ".join(DECIMALS.sub(r"\1", each.attrib["d"]).split()))
        each.tail = None
        each.text = None
    for unneeded in (*root.findall("metadata"), root.find("defs")):  # the first definitions are a style
        assert unneeded is not None
        root.remove(unneeded)
    words = [ET.Element(kind, id=f"{name}-{kind}") for kind in ("title", "desc")]
    for element, text in zip(words, (title, description), strict=True):
        element.text = UNWRITABLE.sub("\ufffd", text)
    root[:0] = words
    labels = {"aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-desc"}
    look = {"fill": "var(--ink)", "stroke-linejoin": "round", "stroke-linecap": "butt"}
    root.attrib = {
        "id": name,
        "class": "chart",
        "role": "img",
        "viewBox": root.attrib["viewBox"],
        "width": str(round(float(root.attrib["viewBox"].split()[2]) * LARGEST)),
        **labels,
        **look,
    }
    return ET.tostring(root, encoding="unicode")


def _describe_numbers(chart: Chart | Calculation) -> Mapping[str, object]:
    if isinstance(chart, Calculation):
        steps = [step for step in chart.steps if step.look != "strip"]
        of_keys = [
            [name, *(_encode_number(float(step.values[place, 0])) for step in steps)]
            for place, name in enumerate(chart.rows)
        ]
        return {"all": _table(["key", *(", ".join(step.formula) for step in steps)], of_keys)}
    headers = {**HEADERS, "x": chart.x_axis, "y": chart.y_axis}
    shown = [name for name in chart.columns if name not in ("leads", "letter")]
    columns: list[Sequence[Any]] = [chart.column(name) for name in shown]
    if chart.names:
        named = {"x", "key"} & {*shown}
        columns = [
            [chart.names[at] for at in chart.column(name)] if name in named else column
            for name, column in zip(shown, columns, strict=True)
        ]
    rows = [
        [each if isinstance(each, str) else _encode_number(each) for each in row] for row in zip(*columns, strict=True)
    ]
    described = {"all": _table([headers.get(name, name) for name in shown], rows)}
    return {**described, **_describe_boxes(chart)} if chart.kind == "box" else described


def _describe_boxes(chart: Chart) -> Mapping[str, object]:
    """A line for each sample to be read, a line for each number to be copied."""
    samples: dict[tuple[str, int], list[float]] = {}
    for x, y, group in chart.rows:
        samples.setdefault((group, x), []).append(y)
    rows = []
    for (group, x), ys in samples.items():
        seen = [y for y in ys if isfinite(y)]
        quartiles = np.percentile(seen, [0, 25, 50, 75, 100]).tolist() if seen else [""] * 5
        rows.append((group, chart.names[x], len(ys), *quartiles))
    return {"table": _table(["of", chart.x_axis, *SUMMARY], rows)}


def _words(chart: Chart | Calculation) -> str:
    """What a chart shows, for those who do not see it; its numbers stand below it."""
    if isinstance(chart, Calculation):
        return " ".join(f"Step {step.number}, {step.title}: {', '.join(step.formula)}." for step in chart.steps)
    groups = ", ".join(dict.fromkeys(filter(None, chart.column("group"))))
    return f"{chart.y_axis} by {chart.x_axis}. {len(chart.rows)} numbers{groups and ' of '}{groups}."


def _table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> Mapping[str, object]:
    numeric = [bool(rows) and all(isinstance(row[place], int | float) for row in rows) for place in range(len(headers))]
    return {"columns": [{"header": header, "unit": ""} for header in headers], "numeric": numeric, "rows": rows}


def _encode_number(value: float | None) -> float | str:
    """As it is; what JSON has no number for by the name that JavaScript has for it."""
    value = nan if value is None else value
    return float(value) if isfinite(value) else "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
