"""matplotlib made predictable: how it is imported, our fonts, sizes and colours. Knows nothing of reports.

seaborn is imported only where it is needed.
"""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, nullcontext
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from attnviz.bounded import exists
from attnviz.errors import InvalidOption
from attnviz.renderers import shades


def _import_matplotlib() -> None:
    """Import matplotlib whatever configuration lies in the working folder, the home or the environment, silently.

    What such a file says does not matter (see `drawing`), but matplotlib complains about one that is broken, or fails.
    It looks into the working folder before anything else, so that we leave it for a moment if one lies there.
    """
    logging.getLogger("matplotlib").addHandler(logging.NullHandler())  # else its log reaches stderr by default
    spec = find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    data = Path(spec.origin).parent / "mpl-data"
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    environment["MATPLOTLIBRC"] = str(data / "matplotlibrc")
    elsewhere = chdir(data) if exists(Path("matplotlibrc")) else nullcontext()
    with warnings.catch_warnings(action="ignore"), mock.patch.dict(os.environ, environment, clear=True), elsewhere:
        import matplotlib.font_manager  # noqa: F401


_import_matplotlib()

import matplotlib as mpl  # noqa: E402
from matplotlib.colors import Colormap, LinearSegmentedColormap  # noqa: E402
from matplotlib.font_manager import fontManager  # noqa: E402

FONTS = Path(__file__).parents[2] / "data" / "fonts"
BOLD = "Attnviz Sans SemiBold"  # of titles: before all others
# By the name of their family; of all but the bold one the first that has a glyph draws it. What we measure and paint is
# opened by these files: a look-up by name goes by what the user set meanwhile, such as a weight, and by the fonts that
# the system has, and what it found once would stay for all pictures of the process.
FONT_FILES = {
    BOLD: FONTS / "AttnvizSansSemiBold.ttf",
    "Attnviz Sans": FONTS / "AttnvizSans.ttf",
    "DejaVu Sans": Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf",
    "Attnviz Sans CJK": FONTS / "AttnvizSansCJK.ttf",
    "Attnviz Emoji": FONTS / "AttnvizEmoji.ttf",
}
FAMILIES = tuple(FONT_FILES)[1:]

TITLE, SUBTITLE, AXIS, SMALL = 11.0, 8.0, 8.0, 6.5  # points
MIN_FONT_SIZE = 6.0  # points that are legible in print
INK, GREY, GRID, HAIRLINE = "#1a1a1a", "#595959", "#e4e4e4", 0.5
FRAME = "#cfcfcf"  # around maps and the colour bar: where they end, and no more
# Okabe and Ito's colours, which colour-blind readers tell apart; without their yellow, which is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MAX_NUMBER = 1e100  # number of a chart: beyond, the arithmetic of an axis overflows
AUTO, LIFT, SEQUENTIAL = "auto", "lift", "viridis"  # which map the scale wants; that of multiples; that of weights
DIVERGING = "RdBu_r"  # from blue over white to red, which colour-blind readers tell apart


class Sizes(NamedTuple):
    """Points, each at least `MIN_FONT_SIZE`."""

    title: float = TITLE
    subtitle: float = SUBTITLE
    axis: float = AXIS
    small: float = SMALL
    smallest: float = MIN_FONT_SIZE  # of the number in a cell, and of tokens that stand close together
    label: float = 8.5  # tokens beside one map, where there is room
    panel: float = 7.0  # and beside one of several
    headings: tuple[float, ...] = (8.0, 7.0, 6.0)  # of panels: the largest that fits

    def scale(self, factor: float) -> "Sizes":
        """Scale all sizes by a factor."""
        title, subtitle, axis, small, smallest, label, panel, *headings = (
            max(MIN_FONT_SIZE, factor * size) for size in (*self[:-1], *self.headings)
        )
        return Sizes(title, subtitle, axis, small, smallest, label, panel, tuple(headings))


class Theme(NamedTuple):
    """Colours of a page, and the map of multiples that begins with its ground."""

    ground: str = "white"
    ink: str = INK
    grey: str = GREY
    grid: str = GRID
    frame: str = FRAME
    lift: str = LIFT
    diverging: str = DIVERGING
    blue: str = COLOURS[0]

    def find_ink(self, colour: str) -> str:
        """Find what stands for one of our inks on this ground."""
        inks = {INK: self.ink, GREY: self.grey, FRAME: self.frame, COLOURS[0]: self.blue, COLOURS[-1]: self.ink}
        return inks.get(colour, colour)


SIZES, PAPER = Sizes(), Theme()
# The darkest of the colours of multiples is the ground.
DARK = Theme("#18171e", "#f0f0f0", "#b4b4b4", "#3b3943", "#555555", "lift_r", "berlin", "#2e8bd0")
THEMES = {"paper": (PAPER, AXIS), "slide": (PAPER, 14.0), "dark": (DARK, 14.0)}  # and the size of axes' names


def look_of(theme: str, font_size: float | None) -> tuple[Theme, Sizes]:
    """Return the colours and sizes of a theme; `font_size` is that of the names of axes."""
    colours, usual = THEMES[theme]
    return colours, SIZES.scale((font_size or usual) / AXIS)


STYLE: dict[Any, Any] = {
    "font.family": list(FAMILIES),
    "font.size": AXIS,
    "text.parse_math": False,  # a token is data
    "text.hinting": "no_hinting",  # so that a text is as wide as we measured it, at any resolution
    "text.color": INK,
    "axes.edgecolor": FRAME,
    "axes.linewidth": HAIRLINE,
    "axes.unicode_minus": False,
    "axes.formatter.useoffset": False,
    "hatch.linewidth": 0.4,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "path",
    "svg.hashsalt": "attnviz",
    "pdf.fonttype": 42,  # real fonts: publishers refuse Type 3
    "ps.fonttype": 42,  # which matplotlib 3.11 asks where it decides how many characters one font in a PDF may have
}

SEABORN_MAPS = ("crest", "flare", "icefire", "mako", "rocket", "vlag")


@contextmanager
def drawing(theme: Theme = PAPER, svg_text: bool = False) -> Iterator[None]:
    """Set matplotlib's own defaults and our style, nothing of the user's; restore all when it ends.

    A glyph that no font has is not warned about here: `attnviz.renderers.figure.undrawable` counts them all at once.
    """
    known = {font.fname for font in fontManager.ttflist}
    for file in FONT_FILES.values():
        if str(file) not in known:  # matplotlib forgets them where it makes its list of fonts anew
            fontManager.addfont(file)
    with warnings.catch_warnings(action="ignore", category=mpl.MatplotlibDeprecationWarning), mpl.rc_context():
        warnings.filterwarnings("ignore", message="Glyph ", category=UserWarning)
        ours = {**mpl.rcParamsDefault, **STYLE}
        # Only what is not so already: each setting that is set is validated, which takes longer than looking.
        unlike = (name for name in ours if name != "backend" and mpl.rcParams[name] != ours[name])
        mpl.rcParams.update({name: ours[name] for name in unlike})
        if theme != PAPER:
            mpl.rcParams.update(dict.fromkeys(("figure.facecolor", "axes.facecolor"), theme.ground))
            mpl.rcParams.update({name: theme.find_ink(ink) for name, ink in STYLE.items() if ink in (INK, FRAME)})
        if svg_text:
            mpl.rcParams["svg.fonttype"] = "none"
        yield


@cache
def _lift_map() -> Colormap:
    return LinearSegmentedColormap.from_list(LIFT, [tuple(part / 255 for part in step) for step in shades.LIFT])


def colour_map(name: str) -> Colormap:
    """Find a colour map: ours, one of matplotlib, or of seaborn, which is imported only for its own.

    Raises InvalidOption.
    """
    if name.removesuffix("_r") == LIFT:
        return _lift_map() if name == LIFT else _lift_map().reversed()
    if name.removesuffix("_r") in SEABORN_MAPS and name not in mpl.colormaps:
        with warnings.catch_warnings(action="ignore"), mpl.rc_context():
            import seaborn.cm  # noqa: F401 - it makes them known to matplotlib, brings pandas and takes a second
    if name in mpl.colormaps:
        return mpl.colormaps[name]
    known = [LIFT, f"{LIFT}_r", *mpl.colormaps, *SEABORN_MAPS, *(f"{each}_r" for each in SEABORN_MAPS)]
    near = get_close_matches(name, known, n=1) or get_close_matches(name.lower(), known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "Such as viridis, cividis, magma, Blues or mako; _r reverses one."
    raise InvalidOption(f"no colour map {name!r}", hint=hint)
