"""A screen, and lines of text that it can show. Knows characters and widths, and nothing of reports.

No control sequence gets through but our own colours, and without colour none; what the screen lacks is written out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from itertools import chain

from rich.cells import cell_len, chop_cells
from rich.console import Console, RenderableType
from rich.style import Style
from rich.text import Text

from attnviz.display import JOIN
from attnviz.renderers import shades
from attnviz.renderers.cell_text import write_out_hidden
from attnviz.words import Language, say

STAND_INS = {
    "→": "->",
    "…": "...",
    "·": "|",
    "×": "x",
    "─": "-",
    "∞": "inf",
    "Σ": "sum",
    "√": "sqrt ",
    "⋅": ".",
    "∅": "(empty)",
    "⏎": r"\n",
    "⇥": r"\t",
    "␣": r"\x20",
    JOIN: " ",
}
BOLD, DIM = Style(bold=True), Style(dim=True)


@dataclass(frozen=True)
class Screen:
    """What the text is for: how many columns, which characters, and whether colour control sequences are welcome."""

    width: int = 80
    colour: bool = False
    encoding: str = "utf-8"
    true_colour: bool = False  # 24 bits instead of 256 colours
    language: Language = "en"  # of what the terminal says of its own


class ScreenLayout:
    """What fits one screen. Every method that shows something gives its lines."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.signs = str.maketrans({sign: plain for sign, plain in STAND_INS.items() if not self.has(sign)})
        self.ramp = shades.BLOCKS if self.has(shades.BLOCKS) else shades.ASCII
        self.forbidden = self.safe("×")

    def has(self, text: str) -> bool:
        """Check whether the terminal's encoding has every character of a text."""
        try:
            text.encode(self.screen.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def safe(self, text: str) -> str:
        """Keep what the screen can show; write out the rest."""
        text = write_out_hidden(text).translate(self.signs)
        return text.encode(self.screen.encoding, "backslashreplace").decode(self.screen.encoding)

    def out(self, text: Text) -> str:
        """Render a line as it is sent to the screen."""
        if not self.screen.colour or not (text.style or text.spans):
            return text.plain.rstrip() + "\n"
        with self.console.capture() as capture:
            self.console.print(text, soft_wrap=True)
        return capture.get()

    @cached_property
    def console(self) -> Console:
        """Create a console with every setting given here, so that no environment variable has a say."""
        return Console(
            file=StringIO(),
            width=self.screen.width,
            height=25,
            force_terminal=True,
            color_system="truecolor",
            no_color=False,
            legacy_windows=False,
            force_jupyter=False,
        )

    def prose(self, text: str, style: Style | str = "") -> Iterator[Text]:
        """Break a text into lines that fit the screen."""
        lines = fill_lines(self.safe(text).replace(" %", f"{JOIN}%").split(" "), self.screen.width, " ")
        return (Text(line.replace(JOIN, " "), style=style) for line in lines)

    def say(self, text: str, style: Style | str = "") -> Iterator[Text]:
        """Break a sentence of the terminal's own into lines, in the screen's language."""
        return self.prose(say(text, self.screen.language), style)

    def lay_out(self, block: RenderableType, width: int) -> Iterator[Text]:
        """Yield what rich draws, as lines of at most `width` columns."""
        for line in self.console.render_lines(block, self.console.options.update(width=width), pad=False):
            text = Text.assemble(*((piece.text.translate(self.signs), piece.style or "") for piece in line))
            text.rstrip()
            yield text


def fill_lines(items: Iterable[str], width: int, gap: str) -> Iterator[str]:
    """Yield lines of as many items as fit.

    One that is wider than a line has one to itself, and is cut only if it has wide characters, between which a line may
    break: of Chinese a whole sentence is one item.
    """
    line: list[str] = []
    taken = 0
    for item in chain.from_iterable(
        chop_cells(each, width) if cell_len(each) > max(width, len(each)) else [each] for each in items
    ):
        wanted = cell_len(item)
        if line and taken + len(gap) + wanted > width:
            yield gap.join(line)
            line, taken = [], 0
        taken += wanted + (len(gap) if line else 0)
        line.append(item)
    yield gap.join(line)


def pad_right(text: str, width: int) -> str:
    """Pad `text` with blanks up to `width` cells."""
    return text + " " * (width - cell_len(text))
