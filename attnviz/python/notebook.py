"""Reports as a notebook shows them: a page in a frame, or a picture where a page is not shown or too large."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

from attnviz.errors import AttnvizError
from attnviz.records import AttentionMaps
from attnviz.renderers.figure.files import png
from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle, Note, Report
from attnviz.specs import FigureOptions
from attnviz.views.heatmap import make_report

MAX_BYTES = 2_000_000  # of all that a notebook keeps of one cell: the page, and the picture in base64
HEIGHT = 640  # pixels, where no script runs beside the frame; the reader can drag its corner
RESOLUTIONS = (100, 50)  # dots per inch of the picture: the first that has room
TEXT_BYTES = 2_000  # bytes that are left for what is said around page and picture, a title of it
FRAME = (
    '<iframe title="{title}" sandbox="allow-scripts allow-downloads" '
    "style=\"width:100%;height:{height}px;border:0;resize:vertical\" srcdoc='{page}'></iframe>"
)
# The page says how high it is, and may not see the notebook: so the notebook gives that height to the frame it is from.
FITTING = """<script>addEventListener("message", ({ data, source }) => {
  const height = Math.min(Number(data?.attnviz), 30000);
  const frame = [...document.querySelectorAll("iframe")].find((each) => each.contentWindow === source);
  if (frame && height > 0) frame.style.height = `${height}px`;
});</script>"""
TOO_LARGE = (
    "The page to explore would be {found:.1f} MB, and a cell keeps at most {most:.0f} MB: {instead}. "
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

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return all that a cell keeps, at most MAX_BYTES: the page, and the picture in base64 if it fits."""
        picture = {"image/png": self._picture} if self._picture else {}
        return {"text/html": self._repr_html_(), **picture}

    def _repr_html_(self) -> str:
        """Return the HTML; what cannot be drawn says why, as an error would be a traceback under the user's cell."""
        said = _write_paragraph(self.caption) if self.caption else ""
        if isinstance(self._page, AttnvizError):
            return said + _write_paragraph(str(self._page))
        if self._page_fits:
            return said + self._page
        image = f'<img alt="{escape(self.report.title)}" src="data:image/png;base64,{self._picture}">'
        instead = "this is the first picture" if self._picture else "not even its first picture has room here"
        sizes = {"found": len(self._page.encode()) / 1e6, "most": MAX_BYTES / 1e6}
        return said + _write_paragraph(TOO_LARGE.format(instead=instead, **sizes)) + (image if self._picture else "")

    @cached_property
    def _page(self) -> str | AttnvizError:
        try:
            ((_, page),) = html(self.report, self.look)
        except AttnvizError as error:
            return error
        quoted = page.decode().replace("&", "&amp;").replace("'", "&#39;")  # all that an attribute in ' ' needs
        return FRAME.format(title=escape(self.report.title), height=HEIGHT, page=quoted) + FITTING

    @property
    def _page_fits(self) -> bool:
        return isinstance(self._page, str) and len(self._page.encode()) + TEXT_BYTES <= MAX_BYTES

    @cached_property
    def _picture(self) -> str:
        """Draw the first picture in base64, as sharp as there is room for: what the page leaves, or half where the HTML
        holds it, too.
        """
        room = MAX_BYTES - TEXT_BYTES
        if isinstance(self._page, str):
            room = room - len(self._page.encode()) if self._page_fits else room // 2
        first = replace(self.report, blocks=tuple(self.report.pictures)[:1])
        try:
            drawn = (data for dpi in RESOLUTIONS for _, data in png(first, replace(self.look, dpi=dpi)))
            written = (b64encode(data).decode("ascii") for data in drawn)
            return next((text for text in written if len(text) <= room), "")
        except AttnvizError:
            return ""


def display(maps: AttentionMaps | Sequence[AttentionMaps]) -> Display:
    """Show one record, or the first of several, all heads of it. Raises InvalidRecord where there is none."""
    if isinstance(maps, AttentionMaps):
        return Display(make_report(maps, FigureOptions()))
    if not maps:
        return Display(Report("no record yet", "", (Note("They are there when the block ends.", leads=True),)))
    more = f"The first of {len(maps)} records; attnviz.show(maps[1]) shows the next." if len(maps) > 1 else ""
    return replace(display(maps[0]), caption=more)


def _write_paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"
