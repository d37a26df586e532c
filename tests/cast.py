"""A cast of the terminal as an animated SVG. `python -m tests.cast` runs its commands and writes it."""

from __future__ import annotations

import os
import pty
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from fcntl import ioctl
from html import escape
from io import StringIO
from pathlib import Path

from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from tests.process import ROOT

CAST = ROOT / "docs/images/cast.svg"
COMMANDS = (
    'attnviz heatmap "the film was not good but the acting saved the film"',
    'attnviz attribute "not a good film, but the acting saves it"',
)
SECONDS, N_COLUMNS, N_ROWS = 20, 80, 24
PITCH, LEADING, SIZE, MARGIN, BAR = 8.4, 18, 14, 16, 30  # pixels: across, down, of a letter, around, on top
GROUND, TEXT, PROMPT = "#18171e", "#dfe6ee", "#4ab1d5"
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"

Row = list[Segment]


@dataclass(frozen=True)
class Scene:
    """A command and what it printed, shown from one percentage of the cast to another."""

    command: str
    rows: list[Row]
    start: float
    end: float


def run_in_terminal(command: str) -> str:
    """Return what a command prints to a terminal of so many columns, and behind it what it says to stderr."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", N_ROWS, N_COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", *shlex.split(command)]
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile("w+") as notes,
        subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=notes, env=environment, cwd=folder) as process,
    ):
        os.close(theirs)
        printed = b"".join(_read(ours))
        if process.wait() != 0:
            raise RuntimeError(f"{command} ended with code {process.returncode}")
        notes.seek(0)
        return printed.decode().replace("\r\n", "\n") + notes.read()


def _read(terminal: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(terminal, 2**16):
            yield chunk
    except OSError:  # as Linux ends what a terminal says
        pass
    finally:
        os.close(terminal)


def parse_rows(printed: str) -> list[Row]:
    """Return the rows of a screen, each of segments with a style."""
    console = Console(width=N_COLUMNS, color_system="truecolor", force_terminal=True, file=StringIO())
    lines = console.render_lines(Text.from_ansi(printed.rstrip("\n")), pad=False)
    return [list(Segment.simplify(segment for segment in line if not segment.control)) for line in lines]


def draw_row(row: Row, top: int) -> str:
    """Draw one row: grounds first, then words, each stretched to its columns whichever font there is."""
    grounds, words, column = [], [], 0
    for text, style, _ in row:
        style = style or Style.null()
        if style.bgcolor is not None:
            box = f'x="{column * PITCH:g}" y="{top}" width="{len(text) * PITCH:g}" height="{LEADING}"'
            grounds.append(f'<rect {box} fill="{_hex(style, "bgcolor")}"/>')
        words += [_draw_word(word, column + at, top, style) for at, word in split_words(text)]
        column += len(text)
    return "".join(grounds + words)


def split_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield what stands between two spaces or more, and its column."""
    at = 0
    for part in text.split("  "):
        if part.strip():
            yield at + len(part) - len(part.lstrip()), part.strip()
        at += len(part) + 2


def _draw_word(word: str, column: int, top: int, style: Style) -> str:
    looks = f' fill="{_hex(style, "color")}"' if style.color else ""
    looks += ' font-weight="bold"' if style.bold else ""
    looks += ' opacity=".6"' if style.dim else ""
    place = f'x="{column * PITCH:g}" y="{top + SIZE - 1}" textLength="{len(word) * PITCH:g}"'
    return f"<text {place}{looks}>{escape(word)}</text>"


def _hex(style: Style, side: str) -> str:
    color = getattr(style, side)
    return str(color.downgrade(ColorSystem.TRUECOLOR).get_truecolor(DIMMED_MONOKAI, side == "color").hex)


def draw_scene(scene: Scene, number: int) -> tuple[str, str]:
    """Draw a scene: its style sheet and its shapes. The command is typed, the rows appear, and the screen scrolls."""
    prompt, length = "$ ", len(scene.command)
    rest = (scene.end - scene.start) / 100
    typed, shown = scene.start + 22 * rest, scene.start + 28 * rest
    still, scrolled = scene.start + 60 * rest, scene.start + 68 * rest
    lift = max(0, len(scene.rows) + 1 - N_ROWS) * LEADING
    hidden, visible = "{opacity:0}", "{opacity:1}"
    before = f"0%{hidden}" if scene.start else ""
    away = f"{length * PITCH:g}px"
    styles = (
        f"@keyframes s{number}{{{before}{scene.start:g}%{visible}{scene.end:g}%,100%{hidden}}}"
        f"@keyframes o{number}{{0%{hidden}{shown:g}%,100%{visible}}}"
        f"@keyframes t{number}{{0%,{scene.start:g}%{{transform:none;animation-timing-function:steps({length})}}"
        f"{typed:g}%,100%{{transform:translateX({away})}}}}"
        f"@keyframes u{number}{{0%,{still:g}%{{transform:none}}{scrolled:g}%,100%{{transform:translateY(-{lift}px)}}}}"
        f".s{number}{{animation:s{number} {SECONDS}s step-end infinite}}"
        f".o{number}{{animation:o{number} {SECONDS}s step-end infinite}}"
        f".t{number}{{animation:t{number} {SECONDS}s infinite;transform:translateX({away})}}"
        f".u{number}{{animation:u{number} {SECONDS}s infinite}}"
    )
    start = len(prompt) * PITCH
    rows = "".join(draw_row(row, (place + 1) * LEADING) for place, row in enumerate(scene.rows))
    still_hidden = ' opacity="0"' if scene.start else ""  # where nothing moves, the first scene stays
    return styles, (
        f'<g class="s{number}"{still_hidden}><g class="u{number}">'
        f'<text y="{SIZE - 1}" fill="{PROMPT}">$</text>{_draw_word(scene.command, len(prompt), 0, Style())}'
        f'<g class="t{number}"><rect x="{start:g}" width="{away[:-2]}" height="{LEADING}" fill="{GROUND}"/>'
        f'<rect x="{start:g}" y="2" width="{PITCH:g}" height="{LEADING - 3}" fill="{TEXT}"/></g>'
        f'<g class="o{number}">{rows}</g></g></g>'
    )


def draw_cast(printed: dict[str, str]) -> str:
    """Draw commands and what each of them printed, one after the other and again from the start."""
    bounds = [100 * place / len(printed) for place in range(len(printed) + 1)]
    scenes = [
        Scene(command, parse_rows(text), start, end)
        for (command, text), start, end in zip(printed.items(), bounds, bounds[1:], strict=False)
    ]
    drawn = [draw_scene(scene, number) for number, scene in enumerate(scenes)]
    width, height = round(N_COLUMNS * PITCH), N_ROWS * LEADING
    whole = f"{width + 2 * MARGIN} {height + BAR + MARGIN}"
    dots = "".join(f'<circle cx="{MARGIN + 5 + 18 * place}" cy="15" r="5"/>' for place in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole}" font-family="{FONTS}" font-size="{SIZE}" '
        f'fill="{TEXT}" role="img">\n<title>A terminal: {escape("; ".join(printed))}</title>\n'
        f"<style>text{{white-space:pre}}{''.join(styles for styles, _ in drawn)}"
        "@media (prefers-reduced-motion:reduce){*{animation:none!important}}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/><g fill="#39608f">{dots}</g>\n'
        f'<svg x="{MARGIN}" y="{BAR}" width="{width}" height="{height}">\n'
        + "\n".join(shapes for _, shapes in drawn)
        + "\n</svg>\n</svg>\n"
    )


def write_cast(path: Path = CAST) -> None:
    """Run the commands and write the cast."""
    path.write_text(draw_cast({command: run_in_terminal(command) for command in COMMANDS}), encoding="utf-8")


if __name__ == "__main__":
    write_cast()
