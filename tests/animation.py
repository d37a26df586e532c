"""The animated picture of the README, from a real page in a browser. `python -m tests.animation` writes it.

The mouse goes from word to word, and the arcs and the sentence below say what the heads of each look at. Then it takes
a head out of the model and puts it back, and the bar says what becomes of the answer.
"""

import shlex
import tempfile
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from attnviz.cli import app
from tests.browser import Opened, browser
from tests.process import ROOT

ANIMATION = ROOT / "docs/images/attention.gif"
COMMAND = 'attnviz "the film was not good but the acting saved the film"'
WORDS, HEADS = (4, 3, 7, 8), ("0.1", "0.1")  # good, not, acting, saved; a head that is taken out and put back
SIZE = {"width": 1110, "height": 610}  # pixels; the words stand in one line
MADE_SMALLER, N_COLOURS = 0.75, 96
REST, STEP, N_STEPS = 1500, 60, 5  # milliseconds on a word and on the way to the next, in so many steps
ARROW = ((0, 0), (0, 20), (5, 15), (9, 23), (12, 21), (9, 14), (15, 14))


def draw_frame(page: Any, x: float, y: float) -> Image.Image:
    """Move the mouse to a point and return what the page shows, with an arrow at that point."""
    page.mouse.move(x, y)
    with Image.open(BytesIO(page.screenshot())) as shot:
        frame = shot.convert("RGB")
    ImageDraw.Draw(frame).polygon([(x + right, y + down) for right, down in ARROW], "black", "white")
    return frame.resize([int(MADE_SMALLER * side) for side in frame.size], Image.Resampling.LANCZOS)


def middle_of(locator: Any) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def draw_frames(chromium: Any, file: Path) -> tuple[list[Image.Image], list[int]]:
    """Draw every frame of a tour over a page, and say how many milliseconds each stays."""
    opened = Opened(chromium, file, viewport=SIZE)
    words = [opened.page.locator(".sentence .word").nth(word) for word in WORDS]
    switches = [opened.page.get_by_role("switch", name=f" {head} ") for head in HEADS]
    stops = [(middle_of(each), each in switches) for each in (*words, *switches)]
    frames, times = [], []
    for (start, _), (end, is_switch) in pairwise([stops[-1], *stops]):
        for step in range(1, N_STEPS + 1):
            x, y = (a + (b - a) * step / N_STEPS for a, b in zip(start, end, strict=True))
            frames.append(draw_frame(opened.page, x, y))
            times.append(STEP)
        if is_switch:
            opened.page.mouse.click(*end)
            frames.append(draw_frame(opened.page, *end))
            times.append(STEP)
        times[-1] = REST
    opened.close()
    return frames, times


def draw_animation(chromium: Any) -> bytes:
    """Run the command and draw a tour over its page, as a GIF that goes on for ever."""
    with tempfile.TemporaryDirectory() as folder:
        text = shlex.split(COMMAND)[1]
        if app.run(["heatmap", text, "--format", "html", "--table", "none", "--quiet", "--out", folder]):
            raise RuntimeError(f"{COMMAND} failed")
        frames, times = draw_frames(chromium, Path(folder) / "attention.html")
    colours = frames[0].quantize(N_COLOURS, Image.Quantize.MAXCOVERAGE)
    pictures = [frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
    written = BytesIO()
    pictures[0].save(written, "GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0)
    return written.getvalue()


if __name__ == "__main__":
    with browser() as started:
        ANIMATION.write_bytes(draw_animation(started))
