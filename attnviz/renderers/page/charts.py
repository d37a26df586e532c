"""The charts of a page: their numbers as they are, and what only Python knows of them. Knows `report` only.

Ranges and ticks of axes are those of the pictures, and so are the median and the quartiles of a sample. Where a point
lies on the screen is for the script to say: a phone has another width than paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite, isnan

import numpy as np

from attnviz.report import Curve, Curves, Distribution, Distributions, Line, Report, Sample

WIDTH = 2.4  # inches at the pictures' size of text: an x axis as narrow as on a phone


def charts_of(report: Report) -> Iterator[Mapping[str, object]]:
    """Pictures of charts, in their order; those without a single chart are left out."""
    for picture in report.pictures:
        match picture:
            case Curves(curves=(_, *_)):
                yield _of_curves(picture)
            case Distributions(charts=(_, *_)):
                yield _of_distributions(picture)


def _of_curves(picture: Curves) -> Mapping[str, object]:
    names = list(dict.fromkeys(line.name for curve in picture.curves for line in curve.lines))
    return {
        "kind": "curves",
        "title": picture.title,
        "columns": len(picture.curves),
        "names": names,
        "charts": [_curve(curve, names) for curve in picture.curves],
    }


def _curve(curve: Curve, names: Sequence[str]) -> Mapping[str, object]:
    from attnviz.renderers.figure.axis import plan_x, plan_y, points_of  # matplotlib comes with it

    marks = curve.at is not None and isfinite(curve.at)
    return {
        "title": curve.title,
        "x_axis": curve.x_axis,
        "y_axis": curve.y_axis,
        "x": plan_x(curve, WIDTH)._asdict(),
        "y": plan_y(points_of(line)[1] for line in curve.lines)._asdict(),
        "at": curve.at if marks else None,
        "at_label": curve.at_label,
        "lines": [_line(line, names) for line in curve.lines],
    }


def _line(line: Line, names: Sequence[str]) -> Mapping[str, object]:
    return {"name": names.index(line.name), "x": _stored(line.x), "y": _stored(line.y), "marked": line.marked}


def _of_distributions(picture: Distributions) -> Mapping[str, object]:
    names = list(dict.fromkeys(sample.group for chart in picture.charts for sample in chart.samples))
    return {
        "kind": "distributions",
        "title": picture.title,
        "columns": max(1, picture.n_columns),
        "names": names,
        "charts": [_distribution(chart, names) for chart in picture.charts],
    }


def _distribution(chart: Distribution, names: Sequence[str]) -> Mapping[str, object]:
    from attnviz.renderers.figure.axis import plan_y, usable

    groups = list(dict.fromkeys(sample.group for sample in chart.samples))
    together = sorted(chart.samples, key=lambda sample: groups.index(sample.group))
    return {
        "title": chart.title,
        "x_axis": chart.x_axis,
        "y_axis": chart.y_axis,
        "y": plan_y(usable(sample.values) for sample in together)._asdict(),
        "samples": [_sample(sample, usable(sample.values), names) for sample in together],
    }


def _sample(sample: Sample, drawn: np.ndarray, names: Sequence[str]) -> Mapping[str, object]:
    quartiles = np.percentile(drawn, [25, 50, 75]).tolist() if len(drawn) else None
    return {
        "label": sample.label,
        "group": names.index(sample.group),
        "values": _stored(sample.values),
        "quartiles": quartiles,
    }


def _stored(values: Iterable[float]) -> list[float | str]:
    """As they are; what JSON has no number for by the name that JavaScript has for it."""
    return [float(value) if isfinite(value) else _name(value) for value in values]


def _name(value: float) -> str:
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
