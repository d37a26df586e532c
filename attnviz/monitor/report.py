"""A watched run afterwards: curves of its layers with what went wrong, and a film of its heads."""

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import numpy as np

from attnviz import store
from attnviz.display import format_count
from attnviz.monitor.alarms import HeadNumbers
from attnviz.monitor.run import SIDE, WatchedRun, summarize_layers
from attnviz.renderers.figure.files import join_frames, png
from attnviz.renderers.page.html import write_page
from attnviz.report import Chart, Charts, Column, EdgeNames, Heatmap, HeatmapGrid, Note, Report, Scale, Table
from attnviz.running import Events
from attnviz.running.pictures import Pictures
from attnviz.views import captions
from attnviz.views.translate import translate
from attnviz.words import LANGUAGE_TAGS, phrase, say

CURVES = {  # by MEASURES
    "largest score": "logit",
    "lowest entropy": "share of the most possible",
    "most on the first token": "share",
    "most on the previous token": "share",
}
ALARMS = (Column("step"), Column("layer"), Column("head"), Column("what"), Column("how"))
NO_ALARM = "No alarm: no head's scores exploded, no entropy collapsed, and none ceased to be finite."
LIFT = Scale("lift", 1.0, 16.0, "attention weight, × an equal share (1/n)")
BINS = tuple(map(str, range(SIDE)))
FILM_DPI, FILM_WIDTH, HEADS_PER_INCH = 200, 4.0, 10  # so that a phone shows what is written on a frame
FILM = "heads at each step, over the text it read"
SEEN = "one text: its last three quarters look (down) at all of it (across)"


def render_run(folder: Path, pictures: Pictures, out: Path, title: str | None) -> Events:
    """Draw the curves of a watched run, and its film as a page with a slider and as a GIF.

    Raises InvalidRecord, TooLarge for more heads than a picture holds, OutputError when the disk refuses.
    """
    run = WatchedRun.load(folder)
    with store.locked(out):
        drawn = yield from pictures.write(describe_run(run, title), out, None)
        width = max(FILM_WIDTH, *(maps.shape[1] / HEADS_PER_INCH for maps in run.maps.values()))
        look = replace(pictures.look, dpi=FILM_DPI, width=width, font_size=None, transparent=False)
        shown = [translate(describe_frame(step, maps), look.lang) for step, maps in run.maps.items()]
        frames = [data for frame in shown for _, data in png(frame, look)]
        encoded = [(frame.title, b64encode(data).decode()) for frame, data in zip(shown, frames, strict=True)]
        strings = {"title": say(FILM, look.lang), "language": LANGUAGE_TAGS[look.lang]}
        strings["noscript"] = phrase("ui.noscript", look.lang)
        page = write_page("film.html", encoded, ("film.js",), ("base.css",), strings, "attnviz.monitor")
        store.write(out / "film.html", page)
        store.write(out / "film.gif", join_frames(frames))
    yield replace(drawn, rows=run.numbers().cells(), files=(*drawn.files, out / "film.html", out / "film.gif"))


def describe_run(run: WatchedRun, title: str | None) -> Report:
    """Draw each measure over the steps, a line for each layer: the head that is farthest out."""
    steps, charts = list(run.looks), list[Chart]()
    of_layers = [
        (step, *each) for step, look in run.looks.items() for each in enumerate(summarize_layers(look).tolist())
    ]
    since = (float(run.alarms[0].step), "first alarm") if run.alarms else None
    for place, (measure, unit) in enumerate(CURVES.items()):
        rows = tuple((step, extremes[place], f"layer {layer}") for step, layer, extremes in of_layers)
        charts.append(Chart("line", measure, "step", unit, ("x", "y", "group"), rows, at=since))
    alarms = [Table("alarms", "alarms", "facts", ALARMS, tuple(run.alarms))] if run.alarms else []
    said = f"First alarm, {run.alarms[0]}." if run.alarms else NO_ALARM
    return Report(
        captions.choose_title(title, "attention while the model trained"),
        f"{format_count(len(steps), 'looks')}, steps {steps[0]} to {steps[-1]} · one text each",
        (Note(said, leads=True), *alarms, Charts("curves", "by layer", tuple(charts), 2)),
        data={"rows": run.numbers().rows(), "alarms": [alarm._asdict() for alarm in run.alarms]},
    )


def describe_frame(step: int, maps: HeadNumbers) -> Report:
    """Draw the small maps of all heads at a step, bins of queries by bins of keys."""
    n_layers, n_heads, _ = maps.shape
    cells = np.nan_to_num(maps).astype(np.float32).reshape(-1, SIDE, SIDE)
    allowed, equal = np.ones((SIDE, SIDE), dtype=bool), np.ones(SIDE, dtype=np.float32)
    small = tuple(Heatmap(str(place), "", each, allowed, BINS, BINS, equal=equal) for place, each in enumerate(cells))
    edges = EdgeNames("layer", "head", tuple(map(str, range(n_layers))), tuple(map(str, range(n_heads))))
    return Report(f"step {step}", SEEN, (HeatmapGrid("film", "", small, n_heads, edges=edges, small=True),), LIFT)
