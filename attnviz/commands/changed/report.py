"""What tuning changed, as a report: the answer, the heads, and two maps of them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from attnviz.display import escape_for_display, format_count, list_first
from attnviz.report import Block, Cell, Column, Heatmap, HeatmapGrid, Note, Report, Scale, Table
from attnviz.table.numbers import Numbers
from attnviz.views import captions

PICTURE = "heads"
N_LISTED, MAX_NAMED, MAX_NAME = 8, 8, 60
VERDICTS = MATTERS, OWN, READS, NOISE, SAME = "tuned, matters", "tuned", "reads otherwise", "as noise", "unmoved"
MAPS = {"moved": "all of it", "own": "by its own weights, on the base's input"}
HEADERS = (("head", ""), ("moved", "bits"), ("its own", "bits"), ("brings", "%"), ("lost", "%"), ("verdict", ""))
COLUMNS = tuple(Column(header, unit, digits=1 if unit == "%" else 4) for header, unit in HEADERS)
AXES = ("layer", "head")
BITS = "Jensen-Shannon divergence of its attention from the base's, in bits"
Row = Mapping[str, Any]


class Changed(NamedTuple):
    """Two models, and of each head a row."""

    names: tuple[str, str]
    revisions: tuple[str, str]
    texts: str
    n_texts: int
    n_draws: int  # 0: nothing changed
    heads: Numbers
    apart: float  # how far the answers of the two are from each other


def judge(row: Row) -> str:
    """Say in a few words what tuning did to a head."""
    if row["matters"]:
        return MATTERS
    if row["own_beyond"]:
        return OWN
    if row["moved_beyond"]:
        return READS
    return NOISE if row["tuned"] or row["moved"] > 0 else SAME


def report_changes(found: Changed, title: str | None) -> Report:
    """Report which heads tuning changed. The data hold every number."""
    rows = [row | {"verdict": judge(row)} for row in found.heads.rows()]
    rows.sort(key=lambda row: (VERDICTS.index(row["verdict"]), -(row["brings"] or 0), -row["moved"]))
    base, tuned = (escape_for_display(name, MAX_NAME) for name in found.names)
    cells = [
        (name_head(row), row["moved"], row["own"], *map(_write_share, (row["brings"], row["lost"])), row["verdict"])
        for row in rows
    ]
    first = tuple(range(N_LISTED)) if len(rows) > N_LISTED else ()
    more = f"All {len(rows)} heads: --table full." if first else ""
    table = Table("heads", "what became of each head", "answer", COLUMNS, cells, first=first, more=more)
    most = max(row["moved"] for row in rows)
    blocks: list[Block] = [*(Note(each, leads=True) for each in _say_answer(found, rows)), table]
    if found.n_draws:
        blocks += [_draw_maps(found.heads), *map(Note, _say_more(found))]
    n_tuned = sum(row["tuned"] for row in rows)
    return Report(
        title=captions.choose_title(title, f"{tuned}, tuned from {base}: {n_tuned} of {len(rows)} heads changed"),
        subtitle=captions.join(found.texts, format_count(found.n_texts, "texts")),
        blocks=tuple(blocks),
        scale=Scale("shared", 0.0, max(most, 1e-9), BITS),
        facts=(("base", base), ("tuned", tuned), *(("revision", each) for each in found.revisions)),
        data={**found._asdict(), "heads": rows},
        max_lines=30,
    )


def _say_answer(found: Changed, rows: Sequence[Row]) -> Iterator[str]:
    if not found.n_draws:
        yield "Nothing changed: the weights of the two are the same, number for number."
        return
    counts, tuned = Counter(row["verdict"] for row in rows), [row for row in rows if row["tuned"]]
    own = [row for row in tuned if row["own_beyond"]]
    named = list_first(own if len(tuned) == len(rows) else tuned, MAX_NAMED, name_head)
    further = f", {len(own)} of them further than noise of the same size does" if tuned else ""
    yield f"Weights of {len(tuned)} of {len(rows)} heads changed{further}{f': {named}' if named else ''}."
    if counts[READS]:
        yield f"{counts[READS]} others attend otherwise, beyond noise, for what they read."
    best = rows[0]  # in order
    if best["matters"]:
        yield (
            f"{name_head(best)} matters most for the answers: put into the base it brings {best['brings']:.0%} of "
            f"their change, and {best['lost']:.0%} are lost without it."
        )
    elif tuned:
        yield f"No single one of them is shown to matter for the answers over {format_count(found.n_texts, 'texts')}."


def _say_more(found: Changed) -> Iterator[str]:
    yield (
        f"Beyond noise: further than any head in {found.n_draws} models with as much noise in each tensor of weights, "
        f"each beside what is usual for it; by chance in 1 of {found.n_draws + 1} runs."
    )
    yield (
        "Brings: the share of the change of the answers (Kullback-Leibler) that this head of the tuned model brings to "
        "the base; lost: that goes with the base's head in the tuned one. One of them has to be 1 % and beyond chance."
    )


def _draw_maps(heads: Numbers) -> HeatmapGrid:
    """Draw a cell for each head: how far it moved, and how much of that is its own."""
    n_layers, n_heads = (int(heads.array(name).max()) + 1 for name in ("layer", "head"))
    rows, columns = tuple(map(str, range(n_layers))), tuple(map(str, range(n_heads)))
    values = {name: heads.array(name).reshape(n_layers, n_heads).astype(np.float32) for name in MAPS}
    everywhere = np.ones((n_layers, n_heads), dtype=bool)
    maps = tuple(Heatmap(name, MAPS[name], of, everywhere, rows, columns, *AXES) for name, of in values.items())
    return HeatmapGrid(PICTURE, "how far the attention of each head moved", maps, 2, reflows=True)


def name_head(row: Row) -> str:
    """Name a head by its layer and number: "2.1"."""
    return f"{row['layer']}.{row['head']}"


def _write_share(share: float | None) -> Cell:
    return "–" if share is None else 100 * share
