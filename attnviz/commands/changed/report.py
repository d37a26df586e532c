"""What tuning changed, as a report: the answer, the heads, and two maps of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attnviz.display import escape_for_display, format_count, list_first
from attnviz.report import Block, Column, Heatmap, HeatmapGrid, Note, Report, Scale, Table
from attnviz.table.numbers import Numbers
from attnviz.views import captions

N_LISTED, MAX_NAMED, MAX_NAME = 8, 8, 60
VERDICTS = MATTERS, OWN, READS, NOISE, SAME = "tuned, matters", "tuned", "reads otherwise", "as noise", "unmoved"
HEADERS = (("head", ""), ("moved", "bits"), ("its own", "bits"), ("brings", "%"), ("lost", "%"), ("verdict", ""))
COLUMNS = tuple(Column(header, unit, digits=1 if unit == "%" else 4) for header, unit in HEADERS)
AXES = ("layer", "head")
MOVED, MATTERS_MUCH = "how far the attention of each head moved", "how much heads matter for the answers"
BITS = "Jensen-Shannon divergence of its attention from the base's, in bits"
SHARES = "share of the change of the answers"
PICTURES = {  # the title, what the numbers are, and the title of the map of each column
    "heads": (MOVED, BITS, {"moved": "all of it", "own": "by its own weights, on the base's input"}),
    "effects": (MATTERS_MUCH, SHARES, {"brings": "brings, in the base", "lost": "lost without it"}),
}
BEYOND = (
    "Beyond noise: further than any head in {} models with as much noise in each tensor of weights, each beside what "
    "is usual for it; by chance in 1 of {} runs, by own weights (how it attends or what it writes) in 2 at most."
)
MATTER = (
    "Brings: the share of the change of the answers (Kullback-Leibler) that this head of the tuned model brings to the "
    "base; lost: that goes with the base's head in the tuned one. One of them has to be 1 % and beyond chance."
)
Row = Mapping[str, Any]


def judge(row: Row) -> str:
    """Say in a few words what tuning did to a head."""
    if row["matters"]:
        return MATTERS
    if row["own_beyond"]:
        return OWN
    if row["moved_beyond"]:
        return READS
    return NOISE if row["tuned"] or row["moved"] > 0 else SAME


def report_changes(heads: Numbers, about: Mapping[str, Any], title: str | None) -> Report:
    """Report which heads tuning changed. `about` says of which models and texts; the data hold every number."""
    rows = [row | {"verdict": judge(row)} for row in heads.rows()]
    rows.sort(key=lambda row: (VERDICTS.index(row["verdict"]), -(row["brings"] or 0), -row["moved"]))
    base, tuned = (escape_for_display(about[name], MAX_NAME) for name in ("base", "tuned"))
    shares = [["–" if row[side] is None else 100 * row[side] for side in ("brings", "lost")] for row in rows]
    cells = [
        (name_head(row), row["moved"], row["own"], *of, row["verdict"]) for row, of in zip(rows, shares, strict=True)
    ]
    first = tuple(range(N_LISTED)) if len(rows) > N_LISTED else ()
    more = f"All {len(rows)} heads: --table full." if first else ""
    blocks: list[Block] = [Note(each, leads=True) for each in _say_answer(about, rows)]
    blocks.append(Table("heads", "what became of each head", "answer", COLUMNS, cells, first=first, more=more))
    if about["noise"]:
        blocks += [*_draw_maps(heads), Note(BEYOND.format(about["noise"], about["noise"] + 1)), Note(MATTER)]
    revisions = ((f"revision of {name}", of) for name, of in about["sha256"].items())
    n_tuned = sum(row["tuned"] for row in rows)
    return Report(
        title=captions.choose_title(title, f"{tuned}, tuned from {base}: {n_tuned} of {len(rows)} heads changed"),
        subtitle=captions.join(about["texts"], format_count(about["n_texts"], "texts")),
        blocks=tuple(blocks),
        facts=(("base", base), ("tuned", tuned), *revisions),
        data={**about, "heads": rows},
        max_lines=30,
    )


def _say_answer(about: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    if not about["noise"]:
        yield "Nothing changed: the weights that both have are the same, number for number."
        return
    tuned, best = [row for row in rows if row["tuned"]], rows[0]
    own, reading = [row for row in tuned if row["own_beyond"]], sum(row["verdict"] == READS for row in rows)
    listed = f" ({list_first(tuned, MAX_NAMED, name_head)})" if 0 < len(tuned) < len(rows) else ""
    further = f", {len(own)} of them further than noise of the same size does" if tuned else ""
    yield f"Weights of {len(tuned)} of {len(rows)} heads changed{listed}{further}."
    if reading:
        yield f"Others that attend otherwise, beyond noise, for what they read: {reading}."
    if best["matters"]:
        yield (
            f"{name_head(best)} matters most for the answers: put into the base it brings {best['brings']:.0%} of "
            f"their change, and {best['lost']:.0%} are lost without it."
        )
    elif tuned:
        over = format_count(about["n_texts"], "texts")
        yield f"No single one of them is shown to matter for the answers over {over}."


def _draw_maps(heads: Numbers) -> Iterator[HeatmapGrid]:
    """Draw a cell for each head: how far it moved and how much of that is its own; what it brings and loses."""
    n_layers, n_heads = (int(heads.array(name).max()) + 1 for name in ("layer", "head"))
    edges = tuple(map(str, range(n_layers))), tuple(map(str, range(n_heads)))
    for name, (title, unit, titles) in PICTURES.items():
        values = heads.matrix(tuple(titles)).T.reshape(-1, n_layers, n_heads).astype(np.float32)
        most = max(1e-9, float(np.nanmax(np.abs(values), initial=0.0)))
        step = 10.0 ** np.floor(np.log10(most))
        high, is_signed = float(np.ceil(most / step) * step), bool((values < 0).any())
        scale = Scale("diverging", -high, high, unit) if is_signed else Scale("shared", 0.0, high, unit)
        each = zip(titles.items(), np.nan_to_num(values), np.isfinite(values), strict=True)
        maps = tuple(Heatmap(*name_and_title, of, is_known, *edges, *AXES) for name_and_title, of, is_known in each)
        yield HeatmapGrid(name, title, maps, 2, scale, reflows=True)


def name_head(row: Row) -> str:
    """Name a head by its layer and number: "2.1"."""
    return f"{row['layer']}.{row['head']}"
