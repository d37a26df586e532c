"""Reports as a notebook shows them: a page in a frame, or a picture where a page is not shown or too large."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from attnviz.errors import AttnvizError
from attnviz.measures.measured import measured
from attnviz.measures.words import by_words
from attnviz.records import AttentionMaps
from attnviz.renderers.figure.files import png
from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle, Report
from attnviz.selection import numbers
from attnviz.specs.figure import FigureOptions
from attnviz.views.heatmap import heatmap_report

MAX_BYTES = 2_000_000  # of what a notebook keeps of one cell's page
HEIGHT = 640  # pixels; the reader can drag the frame's corner
DPI = 100
FRAME = (
    '<iframe title="{title}" sandbox="allow-scripts allow-downloads" '
    "style=\"width:100%;height:{height}px;border:0;resize:vertical\" srcdoc='{page}'></iframe>"
)
TOO_LARGE = (
    "The page to explore would be {found:.1f} MB, and a cell keeps at most {most:.0f} MB: this is the first picture. "
    'Fewer layers make a smaller page: layer="0". A record that is saved opens whole with attnviz render FILE --open.'
)


@dataclass(frozen=True, eq=False, repr=False)
class Display:
    """A report at the end of a cell: as a page in a frame that reaches nothing outside itself, and as a PNG."""

    report: Report
    look: FigureStyle = FigureStyle()  # noqa: RUF009 - it is frozen
    caption: str = ""

    def __repr__(self) -> str:
        return f"Display({self.report.title!r})"

    def _repr_html_(self) -> str:
        """What cannot be drawn says why, because an error here would be a traceback under the user's cell."""
        said = _paragraph(self.caption) if self.caption else ""
        try:
            ((_, page),) = html(self.report, self.look)
        except AttnvizError as error:
            return said + _paragraph(str(error))
        quoted = page.decode().replace("&", "&amp;").replace("'", "&#39;")  # all that an attribute in ' ' needs
        frame = FRAME.format(title=escape(self.report.title), height=HEIGHT, page=quoted)
        size = len(frame.encode())
        if size <= MAX_BYTES:
            return said + frame
        said += _paragraph(TOO_LARGE.format(found=size / 1e6, most=MAX_BYTES / 1e6))
        picture = self._repr_png_()
        image = f'<img alt="{escape(self.report.title)}" src="data:image/png;base64,{{}}">'
        return said + image.format(b64encode(picture).decode()) if picture else said

    def _repr_png_(self) -> bytes | None:
        """The first picture, which is the overview where there are several heads; None where it would be too large."""
        first = replace(self.report, blocks=tuple(self.report.pictures)[:1])
        try:
            return next((data for _, data in png(first, replace(self.look, dpi=DPI))), None)
        except AttnvizError:
            return None


def display(maps: AttentionMaps | Sequence[AttentionMaps]) -> Display:
    """One record, or the first of several, all heads of it. Raises InvalidRecord where there is none."""
    if isinstance(maps, AttentionMaps):
        return Display(maps_report(maps, FigureOptions()))
    if not maps:
        return Display(Report("no record yet: they are there when the block ends", "", ()))
    more = f"The first of {len(maps)} records; attnviz.show(maps[1]) shows the next." if len(maps) > 1 else ""
    return replace(display(maps[0]), caption=more)


def maps_report(maps: AttentionMaps, spec: FigureOptions) -> Report:
    """The report of one record. Raises InvalidSelection and InvalidOption as `heatmap_report` does."""
    layers = numbers(spec.layer, maps.layer_numbers, "layer")
    heads = numbers(spec.head, maps.n_heads, "head")
    maps = by_words(maps) if spec.merge == "words" else maps
    return heatmap_report(maps, measured(maps), spec, layers, heads)


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"
