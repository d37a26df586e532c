"""The charts of a page as data: each as the table and the encoding that figures have, which `axes.js` draws.

A calculation is the picture that figures have, beside its numbers.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from math import isfinite, isnan

from attnviz.report import Calculation, Charts, FigureStyle, Report

FONT_SIZE = 10.5  # points, of which the smallest print has 8.5: 11 pixels


def describe_charts(report: Report) -> Iterator[Mapping[str, object]]:
    """Yield pictures of charts. Those without a single chart are left out."""
    for picture in report.pictures:
        match picture:
            case Charts(charts=(_, *_)):
                charts = [vars(chart) | {"rows": _encode(chart.rows)} for chart in picture.charts]
                n_columns = picture.n_columns or len(charts)
                yield {"title": picture.title, "columns": n_columns, "charts": charts}
            case Calculation():
                yield {"title": picture.title, "columns": 1, "charts": [_describe_calculation(picture)]}


def _describe_calculation(chart: Calculation) -> Mapping[str, object]:
    """Return its picture, and its numbers as those of a chart, without those of strips."""
    from attnviz.renderers.figure.files import svg  # matplotlib comes with it

    look = FigureStyle(header=False, transparent=True, font_size=FONT_SIZE)
    ((_, drawn),) = svg(Report("", "", (chart,)), look)
    listed = chart.tabulate()
    return {
        "kind": "picture",
        "title": chart.title,
        "picture": f"data:image/svg+xml;base64,{b64encode(drawn).decode()}",
        "columns": [column.header for column in listed.columns],
        "rows": _encode([*listed.rows]),
        "names": (),
    }


def _encode(value: object) -> object:
    """Return numbers as they are, and what JSON has no number for by the name that JavaScript has for it."""
    if isinstance(value, list | tuple):
        return [*map(_encode, value)]
    if not isinstance(value, float) or isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
