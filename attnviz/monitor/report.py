"""A watched run afterwards: curves of its layers with what went wrong, and a film of its heads forming."""

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import numpy as np

from attnviz import store
from attnviz.display import format_count
from attnviz.monitor.run import MANY, SIDE, HeadNumbers, WatchedRun, summarize_layers
from attnviz.renderers.figure.files import png
from attnviz.renderers.figure.film import join_frames
from attnviz.renderers.page.bundle import write_page
from attnviz.report import (
    Chart,
    Charts,
    Column,
    EdgeNames,
    FigureStyle,
    Heatmap,
    HeatmapGrid,
    Note,
    Report,
    Scale,
    Table,
)
from attnviz.running import Events
from attnviz.running.pictures import Pictures

CURVES = {  # by MEASURES
    "largest score": "logit",
    "lowest entropy": "share of the most possible",
    "most on the first token": "share",
    "most on the previous token": "share",
}
ALARMS = (Column("step"), Column("layer"), Column("head"), Column("what"), Column("how"))
LIFT = Scale("lift", 1.0, 16.0, "attention weight / equal share")
BINS = tuple(map(str, range(SIDE)))
FILM_LOOK = FigureStyle(dpi=100)
SEEN = "one text: its last three quarters look (down) at all of it (across)"


def render_run(folder: Path, pictures: Pictures, out: Path) -> Events:
    """Draw the curves of a watched run, and its film as a page with a slider and as a GIF.

    Raises InvalidRecord, TooLarge for more heads than a picture holds, OutputError when the disk refuses.
    """
    run = WatchedRun.load(folder)
    with store.locked(out):
        drawn = yield from pictures.write(describe_run(run), out, None)
        chosen = list(run.maps)[:: -(-len(run.maps) // MANY)]
        frames = {step: data for step in chosen for _, data in png(describe_frame(step, run.maps[step]), FILM_LOOK)}
        encoded = [(step, b64encode(data).decode()) for step, data in frames.items()]
        film = {
            out / "film.html": write_page("film.html", encoded, ("film.js",), ("base.css",), {}, "attnviz.monitor"),
            out / "film.gif": join_frames([*frames.values()]),
        }
        for path, data in film.items():
            store.write(path, data)
        yield replace(drawn, files=(*drawn.files, *film))


def describe_run(run: WatchedRun) -> Report:
    """Draw each measure over the steps, a line for each layer: the head that is farthest out."""
    steps, first = list(run.looks), run.alarms[0] if run.alarms else None
    extremes = {step: enumerate(summarize_layers(look).tolist()) for step, look in run.looks.items()}
    points = [(step, f"layer {layer}", values) for step, layers in extremes.items() for layer, values in layers]
    charts = []
    for place, (title, unit) in enumerate(CURVES.items()):
        rows = tuple((step, values[place], layer) for step, layer, values in points)
        since = (float(first.step), "first alarm") if first else None
        charts.append(Chart("line", title, "step", unit, ("x", "y", "group"), rows, at=since))
    said = f"First alarm, {first}." if first else "No alarm: no head's scores exploded, and no entropy collapsed."
    alarms = Table("alarms", "alarms", "facts", ALARMS, tuple(run.alarms))
    return Report(
        "attention while the model trained",
        f"{format_count(len(steps), 'looks')}, steps {steps[0]} to {steps[-1]} · one text each",
        (Note(said, leads=True), *([alarms] if first else []), Charts("curves", "by layer", tuple(charts), 2)),
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
