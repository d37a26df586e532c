"""What tuning changed, as a report: the answer, the heads, and two maps of them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
BEYOND = (
    "Beyond noise: further than any head in {} models with as much noise in each tensor of weights, each beside what "
    "is usual for it; by chance in 1 of {} runs."
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
    cells = [(name_head(row), row["moved"], row["own"], *_write_shares(row), row["verdict"]) for row in rows]
    first = tuple(range(N_LISTED)) if len(rows) > N_LISTED else ()
    more = f"All {len(rows)} heads: --table full." if first else ""
    table = Table("heads", "what became of each head", "answer", COLUMNS, cells, first=first, more=more)
    blocks: list[Block] = [*(Note(each, leads=True) for each in _say_answer(about, rows)), table]
    if about["noise"]:
        blocks += [_draw_maps(heads), Note(BEYOND.format(about["noise"], about["noise"] + 1)), Note(MATTER)]
    n_tuned = sum(row["tuned"] for row in rows)
    most = max(1e-9, *(row["moved"] for row in rows))
    step = 10.0 ** np.floor(np.log10(most))
    return Report(
        title=captions.choose_title(title, f"{tuned}, tuned from {base}: {n_tuned} of {len(rows)} heads changed"),
        subtitle=captions.join(about["texts"], format_count(about["n_texts"], "texts")),
        blocks=tuple(blocks),
        scale=Scale("shared", 0.0, float(np.ceil(most / step) * step), BITS),
        facts=(
            ("base", base),
            ("tuned", tuned),
            *((f"revision of {name}", of) for name, of in about["sha256"].items()),
        ),
        data={**about, "heads": rows},
        max_lines=30,
    )


def _say_answer(about: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    counts, tuned, best = Counter(row["verdict"] for row in rows), [row for row in rows if row["tuned"]], rows[0]
    if not about["noise"]:
        yield "Nothing changed: the weights that both have are the same, number for number."
        return
    own = [row for row in tuned if row["own_beyond"]]
    all_or_named = "" if len(tuned) in (0, len(rows)) else f" ({list_first(tuned, MAX_NAMED, name_head)})"
    further = f", {len(own)} of them further than noise of the same size does" if tuned else ""
    strongest = f": {list_first(own, MAX_NAMED, name_head)}" if own and not all_or_named else ""
    yield f"Weights of {len(tuned)} of {len(rows)} heads changed{all_or_named}{further}{strongest}."
    if counts[READS]:
        yield f"{counts[READS]} others attend otherwise, beyond noise, for what they read."
    if best["matters"]:
        yield (
            f"{name_head(best)} matters most for the answers: put into the base it brings {best['brings']:.0%} of "
            f"their change, and {best['lost']:.0%} are lost without it."
        )
    elif tuned:
        over = format_count(about["n_texts"], "texts")
        yield f"No single one of them is shown to matter for the answers over {over}."


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


def _write_shares(row: Row) -> list[Cell]:
    return ["–" if row[side] is None else 100 * row[side] for side in ("brings", "lost")]
