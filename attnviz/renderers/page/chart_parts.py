"""The charts of a page: each as the vectors that the pictures have, ready to stand in HTML, and its numbers as a table.

The page's policy lets no style of elements through, so that what matplotlib writes as style become attributes; colours
that depend on the screen are the page's. Many numbers are boxes here as in the pictures, and no dots.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from itertools import count
from math import isfinite, isnan

import numpy as np

from attnviz.report import ArcDiagram, Calculation, Charts, Curve, Distribution, Report, Scatter

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
AnyChart = Curve | Distribution | Scatter | ArcDiagram | Calculation
UNWRITABLE = re.compile("[\ud800-\udfff\0]")
LARGEST = 2  # pixels of a page for a point of the picture: letters like those of the page, and no larger if it is alone
MAX_NAMED = 40  # samples in the words of a chart
SUMMARY = ("numbers", "smallest", "lower quartile", "median", "upper quartile", "largest")


def charts_of(report: Report) -> tuple[list[Mapping[str, object]], list[str]]:
    """Pictures of charts with their numbers, and the SVG of each chart in its order, whose id is `chart-` and a number.

    Pictures without a single chart are left out.
    """
    pictures: list[Mapping[str, object]] = []
    drawn: list[str] = []
    numbers = count()
    for picture in report.pictures:
        if not isinstance(picture, Charts):
            continue
        charts = []
        in_order: Sequence[AnyChart] = picture.charts
        for place, chart in enumerate(in_order):
            name = f"chart-{next(numbers)}"
            table = _describe_numbers(chart)
            charts.append({"id": name, "title": chart.title, **table})
            from attnviz.renderers.figure.files import chart_svg  # matplotlib comes with it

            # Each chart is a picture of its own: a phone shows one under the other.
            drawn.append(as_html(chart_svg(picture.only(place), picture), name, chart.title, _words(chart)))
        if charts:
            pictures.append({"title": picture.title, "columns": picture.n_columns or len(charts), "charts": charts})
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


def _describe_numbers(chart: AnyChart) -> Mapping[str, object]:
    match chart:
        case Curve():
            return _describe_curve(chart)
        case Distribution():
            return _describe_distribution(chart)
        case Scatter():
            return _describe_points(chart)
        case ArcDiagram():
            return _describe_arcs(chart)
        case Calculation():
            return _describe_steps(chart)


def _words(chart: AnyChart) -> str:
    """What a chart shows, for those who do not see it; its numbers stand below it."""
    if isinstance(chart, Calculation):
        return " ".join(f"Step {step.number}, {step.title}: {', '.join(step.formula)}." for step in chart.steps)
    if isinstance(chart, Curve):
        parts = [
            f"{line.name}, {len(line.x)} point{'' if len(line.x) == 1 else 's'}{_range(line.y)}" for line in chart.lines
        ]
        if chart.at is not None and isfinite(chart.at):
            parts.append(f"{chart.at_label} at {chart.at:g}")
    elif isinstance(chart, Scatter):
        parts = [
            f"{len(chart.points)} points",
            *(f"{point.label}: {point.group}" for point in chart.points if point.leads),
        ]
    elif isinstance(chart, ArcDiagram):
        parts = [f"{arc.label} from {chart.tokens[arc.query]} to {chart.tokens[arc.key]}" for arc in chart.arcs]
    else:
        medians = ((each, _quartiles(each.values)) for each in chart.samples)
        parts = [
            f"{each.group} {each.label}: {f'median {found[2]:.3g}' if found else 'no numbers'}".strip()
            for each, found in medians
        ]
        parts = parts if len(parts) <= MAX_NAMED else [*parts[:MAX_NAMED], "and more"]
    return f"{chart.y_axis} by {chart.x_axis}. {'; '.join(parts)}."


def _range(values: Sequence[float]) -> str:
    seen = [value for value in values if isfinite(value)]
    return f", from {seen[0]:.3g} to {seen[-1]:.3g}" if seen else ""


def _quartiles(values: Sequence[float]) -> list[float] | None:
    seen = [value for value in values if isfinite(value)]
    return np.percentile(seen, [0, 25, 50, 75, 100]).tolist() if seen else None


def _describe_curve(chart: Curve) -> Mapping[str, object]:
    rows = [
        [line.name, _encode_number(x), _encode_number(y)]
        for line in chart.lines
        for x, y in zip(line.x, line.y, strict=True)
    ]
    return {"all": _table(["line", chart.x_axis, chart.y_axis], rows)}


def _describe_distribution(chart: Distribution) -> Mapping[str, object]:
    """A line for each sample to be read, a line for each number to be copied."""
    numbers = [
        [each.group, each.label, number, _encode_number(value)]
        for each in chart.samples
        for number, value in enumerate(each.values)
    ]
    nothing = ("",) * 5
    rows = [(each.group, each.label, len(each.values), *(_quartiles(each.values) or nothing)) for each in chart.samples]
    return {
        "table": _table(["of", chart.x_axis, *SUMMARY], rows),
        "all": _table(["of", chart.x_axis, "number", chart.y_axis], numbers),
    }


def _describe_points(chart: Scatter) -> Mapping[str, object]:
    rows = [[each.label, each.group, _encode_number(each.x), _encode_number(each.y)] for each in chart.points]
    return {"all": _table(["point", "of", chart.x_axis, chart.y_axis], rows)}


def _describe_arcs(chart: ArcDiagram) -> Mapping[str, object]:
    rows = [
        [arc.label, arc.group, chart.tokens[arc.query], chart.tokens[arc.key], _encode_number(arc.weight)]
        for arc in chart.arcs
    ]
    return {"all": _table(["head", "of", "from", "to", "weight"], rows)}


def _describe_steps(chart: Calculation) -> Mapping[str, object]:
    steps = [step for step in chart.steps if step.look != "strip"]
    rows = [
        [name, *(_encode_number(float(step.values[place, 0])) for step in steps)]
        for place, name in enumerate(chart.rows)
    ]
    return {"all": _table(["key", *(", ".join(step.formula) for step in steps)], rows)}


def _table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> Mapping[str, object]:
    numeric = [bool(rows) and all(isinstance(row[place], int | float) for row in rows) for place in range(len(headers))]
    return {"columns": [{"header": header, "unit": ""} for header in headers], "numeric": numeric, "rows": rows}


def _encode_number(value: float) -> float | str:
    """As it is; what JSON has no number for by the name that JavaScript has for it."""
    return float(value) if isfinite(value) else "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
