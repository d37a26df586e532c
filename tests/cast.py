"""A cast of the terminal as an animated SVG. `python -m tests.cast` runs its commands and writes it."""

import re
import shlex
import sys
import tempfile
from html import escape
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from tests.process import ROOT, bare_environment, said_by

CAST = ROOT / "docs/images/cast.svg"
COMMANDS = (
    'attnviz heatmap "the film was not good but the acting saved the film"',
    'attnviz attribute "not a good film, but the acting saves it"',
)
SECONDS, N_COLUMNS, N_ROWS = 20, 80, 24
PITCH, LEADING, MARGIN, BAR = 12.2, 24.4, 16, 40  # pixels: across and down of a letter as rich draws it, around, on top
GROUND = "#18171e"
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"


def run_in_terminal(command: str) -> str:
    """Return what a command prints to a terminal of so many columns, and behind it what it says to stderr."""
    with tempfile.TemporaryDirectory() as folder:
        terminal = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": f"{N_COLUMNS}"}
        environment = bare_environment(Path(folder)) | terminal
        run = said_by([sys.executable, "-m", *shlex.split(command)], cwd=Path(folder), env=environment)
    if run.returncode != 0:
        raise RuntimeError(f"{command} ended with code {run.returncode}")
    return run.stdout + run.stderr


def draw_scene(command: str, printed: str, number: int, start: float, end: float) -> str:
    """Draw a scene, from one percentage of the cast to another.

    Under grounds that go away a command is typed and then its rows appear; at last the screen scrolls. Where nothing
    moves, the first scene stays.
    """
    console = Console(width=N_COLUMNS, color_system="truecolor", force_terminal=True, record=True, file=StringIO())
    console.print(Text.from_ansi(f"$ {command}\n{printed.rstrip()}"))
    drawn = console.export_svg(
        theme=SVG_EXPORT_THEME, unique_id=f"r{number}", code_format="<style>{styles}</style>{backgrounds}{matrix}"
    )
    shapes = re.sub(' clip-path="[^"]*"|<text [^>]*>\n</text>', "", drawn)
    typed, shown, still, scrolled = (f"{start + share * (end - start):g}%" for share in (0.22, 0.28, 0.6, 0.68))
    away = f"transform:translateX({len(command) * PITCH:g}px)"
    lift = max(0, printed.count("\n") + 1 - N_ROWS) * LEADING
    hidden, visible = "{opacity:0}", "{opacity:1}"
    styles = (
        f"@keyframes s{number}{{{f'0%{hidden}' if start else ''}{start:g}%{visible}{end:g}%,100%{hidden}}}"
        f"@keyframes o{number}{{0%{visible}{shown},100%{hidden}}}"
        f"@keyframes t{number}{{0%,{start:g}%{{transform:none;animation-timing-function:steps({len(command)})}}"
        f"{typed},100%{{{away}}}}}"
        f"@keyframes u{number}{{0%,{still}{{transform:none}}{scrolled},100%{{transform:translateY(-{lift:g}px)}}}}"
        f".s{number}{{animation:s{number} {SECONDS}s step-end infinite{';opacity:0' if start else ''}}}"
        f".o{number}{{animation:o{number} {SECONDS}s step-end infinite;opacity:0}}"
        f".t{number}{{animation:t{number} {SECONDS}s infinite;{away}}}"
        f".u{number}{{animation:u{number} {SECONDS}s infinite}}"
    )
    return (
        f'<g class="s{number}"><style>{styles}</style><g class="u{number}">{shapes}<g fill="{GROUND}">'
        f'<rect class="t{number}" x="{2 * PITCH}" width="100%" height="{LEADING}"/>'
        f'<rect class="o{number}" y="{LEADING}" width="100%" height="200%"/></g></g></g>'
    )


def draw_cast(printed: dict[str, str]) -> str:
    """Draw commands and what each of them printed, one after the other and again from the start."""
    share = 100 / len(printed)
    scenes = [
        draw_scene(command, text, number, share * number, share * (number + 1))
        for number, (command, text) in enumerate(printed.items())
    ]
    width, height = N_COLUMNS * PITCH, N_ROWS * LEADING
    dots = "".join(f'<circle cx="{MARGIN + 7 + 26 * place}" cy="20" r="7"/>' for place in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 2 * MARGIN:g} {height + BAR + MARGIN:g}" '
        f'font-family="{FONTS}" font-size="20" role="img">\n<title>A terminal: {escape("; ".join(printed))}</title>\n'
        "<style>text{white-space:pre}@media (prefers-reduced-motion:reduce){*{animation:none!important}}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/><g fill="#39608f">{dots}</g>\n'
        f'<svg x="{MARGIN}" y="{BAR}" width="{width:g}" height="{height:g}">\n{"".join(scenes)}\n</svg>\n</svg>\n'
    )


if __name__ == "__main__":
    CAST.write_text(draw_cast({command: run_in_terminal(command) for command in COMMANDS}), encoding="utf-8")
