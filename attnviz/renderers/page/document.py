"""What a page holds, as JSON and packed cells of each map. Knows `report` only, and no HTML.

Lists and pairs throughout, never an object whose keys are tokens.

A chart is the table and the encoding that figures have, which `axes.js` draws. A calculation is the picture that
figures have, above its numbers.

`captions` says how exact the numbers of a page are.
"""

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite
from typing import Any

import numpy as np

from attnviz.errors import InvalidOption
from attnviz.renderers import cell_text
from attnviz.renderers.page import map_parts, packing
from attnviz.renderers.page.factor_parts import describe_factors
from attnviz.report import Calculation, Charts, FigureStyle, Graph, Picture, Pointing, Report, Scale, Table
from attnviz.words import list_phrases, phrase


def _say_exactness(held: map_parts.Held, precision: packing.Precision | None, *, some_exact: bool, block: int) -> None:
    """Say one sentence or two for each thing that the page does not hold as the report does.

    `some_exact`: of the maps at another precision, some hold differences and are kept exactly.
    """
    if block > 1:
        held.say("about.pooled", block=block)
    if precision is packing.EXACT:
        held.say("about.exact")
    else:
        fine, floor = (f"1/{4**exponent:,}" for exponent in (precision.fine, precision.floor))
        name = "means" if block > 1 else "ranges" if precision.floor > precision.fine else "fine"
        held.say(f"about.{name}", fine=fine, floor=floor)
        if some_exact:
            held.say("about.differences")
    held.say("about.drawn")


FONT_SIZE = 10.5  # points, of which the smallest print has 8.5: 11 pixels


def _draw(calculation: Calculation) -> str:
    """Return its picture as an address of data."""
    from attnviz.renderers.figure.files import svg  # matplotlib comes with it

    look = FigureStyle(header=False, transparent=True, font_size=FONT_SIZE)
    ((_, drawn),) = svg(Report("", "", (calculation,)), look)
    return f"data:image/svg+xml;base64,{b64encode(drawn).decode()}"


N_COLOURS = 256
LOOKS_ROOM = 150_000  # bytes for what places of an image look at: with all else, 12 heads stay below 400 kB
MAX_DIGITS = 6  # of a number of a table
ALL_DIGITS = 17  # that a double has, of a number of a chart
ATLAS_DIGITS, ATLAS_PLACES = 3, 5  # of each number of an atlas
OF_MOMENTS = Scale("lift", 1.0, 16.0, "shade in a moment: × an equal share")


def content(report: Report, look: FigureStyle) -> tuple[Mapping[str, object], Sequence[tuple[bytes, bytes]]]:
    """Collect a page's content, and its packed numbers.

    Raises InvalidOption for a report with nothing to show, or an unknown colour map.
    """
    if report.atlas is not None:  # which shows all that pictures of its heads do, but for who feeds whom
        kept = (block for block in report.blocks if isinstance(block, Graph) or not isinstance(block, Picture))
        report = replace(report, blocks=tuple(kept))
    held = map_parts.Held(look.lang)
    maps = _maps(report, held)
    pointing = {} if report.point is None else _describe_pointing(report.point(), held)
    charts = [_describe_charts(each) for each in report.pictures if isinstance(each, Charts) and each.charts]
    drawn = {each.name: _draw(each) for each in report.pictures if isinstance(each, Calculation)}
    tables = [{**_table(table), "picture": drawn.get(table.name)} for table in report.listed]
    atlas = None
    if report.atlas is not None:
        rounded = round_numbers(report.atlas, ATLAS_DIGITS, ATLAS_PLACES)
        atlas = rounded | {"shades": map_parts.describe_scale(OF_MOMENTS)}
    graphs = (_describe_graph(picture, report) for picture in report.pictures if isinstance(picture, Graph))
    graph = next(graphs, None)
    used = {scale.family.colours for scale in map_parts.list_scales(report) if maps["maps"]}
    if atlas:
        used.add(OF_MOMENTS.family.colours)
    if not (held.parts or charts or tables or atlas or graph or any(note.leads for note in report.notes)):
        raise InvalidOption(
            "there is nothing to make a page of: no map, no chart and no table",
            hint="What this command has to say is on the terminal and in --json.",
        )
    has_weights = any(  # of attention, not differences, sides or how alike heads are
        not each.is_of_pairs and not (each.scale or report.scale).family.is_signed
        for each in map_parts.distinct(report).values()
    )
    reading = {"row": has_weights, "why": has_weights, "screen": report.screen, "graph": graph, "charts": charts}
    reading |= {"moments": atlas, "moment": atlas}
    document = {
        "title": report.title,
        "subtitle": report.subtitle,
        "facts": report.facts,
        "render": None if report.render is None else asdict(report.render),
        "leads": [note.text for note in report.notes if note.leads and not (note.is_detail or report.screen)],
        "notes": [note.text for note in report.notes],
        "hint": report.hint,
        "answer": None if report.answer is None else asdict(report.answer),
        **maps,
        **pointing,
        **(_colours(look, used) if used else {}),
        "graph": graph,
        "atlas": atlas,
        "charts": charts,
        "tables": tables,
        "reading": [phrase(f"about.{name}", look.lang) for name, is_there in reading.items() if is_there],
        "exactness": [
            *held.said,
            *([phrase("about.numbers", look.lang)] if charts else ()),
            *([phrase("about.atlas", look.lang, digits=ATLAS_DIGITS, places=ATLAS_PLACES)] if atlas else ()),
            *([phrase("ui.rounded", look.lang)] if tables and not held.parts else ()),
        ],
        "words": list_phrases(look.lang, "ui"),
    }
    return {**document, "parts": [[*map(len, part)] for part in held.parts]}, held.parts


def _maps(report: Report, held: map_parts.Held) -> Mapping[str, object]:
    """Describe what a page holds of maps, next to nothing where the report has none."""
    originals = list(map_parts.distinct(report).values())
    if not originals:
        return {"maps": [], "pictures": []}
    block = map_parts.block_for(originals)
    maps = [map_parts.pool_heatmap(each, block) for each in originals]
    ranged = [packing.fits_ranges(each.values) for each in maps]
    pooled = block * originals[0].block > 1
    precision = packing.precision_for(
        [each.values for each, fits in zip(maps, ranged, strict=True) if fits], pooled=pooled
    )
    chosen = [precision if fits else packing.EXACT for fits in ranged]
    held.parts += (packing.pack(each.values, kept) for each, kept in zip(maps, chosen, strict=True))
    _say_exactness(held, precision, some_exact=not all(ranged), block=block * originals[0].block)
    return {
        "precision": None if precision is None else asdict(precision),
        **map_parts.describe_maps(report, originals, maps, block),
        "exact": [kept is packing.EXACT for kept in chosen],
        "factored": describe_factors(originals, block, held),
    }


def _describe_pointing(pointing: Pointing, held: map_parts.Held) -> Mapping[str, object]:
    """Describe what a page holds of an image that is pointed at."""
    shares = map_parts.Shared()
    precision = packing.precision_for([*pointing.looks.values()], room=LOOKS_ROOM)
    described = {
        "block": pointing.block,
        "beside": pointing.beside,
        "heads": [*pointing.looks],
        "first": len(held.parts),
        "precision": None if precision is None else asdict(precision),
        "equal": [map_parts.share_bytes(each.astype("<f4"), shares) for each in pointing.equal.values()],
        "shares": [*shares.values()],
    }
    fine = "0" if precision is None else f"1/{4**precision.fine:,}"
    held.say("about.pointing", block=pointing.block, fine=fine)
    held.parts += (packing.pack(each, precision) for each in pointing.looks.values())
    return {"pointing": described}


def _describe_charts(picture: Charts) -> Mapping[str, object]:
    charts = [vars(chart) | {"rows": round_numbers(chart.rows, ALL_DIGITS)} for chart in picture.charts]
    return {"title": picture.title, "columns": picture.n_columns or len(charts), "charts": charts}


def _table(table: Table) -> Mapping[str, object]:
    links = cell_text.addresses(table)
    # Minor columns last: on a phone a table is wider than the screen, and what answers is to be seen at once.
    order = sorted(range(len(table.columns)), key=lambda place: table.columns[place].minor)
    rows = [tuple(row[place] for place in order) for row in table.rows]
    table = replace(table, columns=tuple(table.columns[place] for place in order), rows=rows)
    return {
        "title": table.title or table.name,
        "role": table.role,
        "columns": [asdict(column) for column in table.columns],
        "numeric": cell_text.numeric(table),
        "rows": [round_numbers(row, MAX_DIGITS) for row in table.rows],
        "shown": [[*map(cell_text.write_cell, row, table.columns)] for row in table.rows],
        **({"links": links} if any(links) else {}),
        **({"thumbs": table.thumbs} if table.thumbs else {}),
    }


def round_numbers(value: Any, digits: int, places: int | None = None) -> Any:
    """Keep as many digits of each float within as anybody reads: all of a double can hardly be packed.

    Where JSON has no number for it, None.
    """
    if isinstance(value, Mapping):
        return {name: round_numbers(inner, digits, places) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [round_numbers(inner, digits, places) for inner in value]
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    kept = float(f"{value:.{digits}g}")
    return kept if places is None else round(kept, places)


def _describe_graph(graph: Graph, report: Report) -> Mapping[str, object]:
    return {
        "nodes": [node._asdict() for node in graph.nodes],
        "edges": [edge._asdict() | {"ports": graph.find_ports(edge)} for edge in graph.edges],
        "rows": graph.rows,
        "axis": map_parts.describe_axis(graph.tokens, graph.positions, (1, 1), report.data.get("tokens"), of_text=True),
        "legend": graph.legend,
        "title": graph.title,
    }


def _colours(look: FigureStyle, used: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the colours of the scales that are used: of each those on paper, then those on a dark ground."""
    from attnviz.renderers.figure.style import AUTO, DARK, PAPER, SEQUENTIAL, colour_map  # matplotlib comes with it

    chosen = {} if look.cmap == AUTO else {"lift": look.cmap, "sequential": look.cmap}
    on_paper = {"lift": PAPER.lift, "sequential": SEQUENTIAL, "diverging": PAPER.diverging} | chosen
    on_dark = on_paper | {"lift": DARK.lift, "diverging": DARK.diverging} | chosen
    steps = np.arange(N_COLOURS) / (N_COLOURS - 1)

    def sample(name: str) -> bytes:
        shades: np.ndarray = colour_map(name)(steps, bytes=True)[:, :3]
        return shades.tobytes()

    both = {name: sample(on_paper[name]) + sample(on_dark[name]) for name in on_paper if name in used}
    return {"colours": {name: b64encode(shades).decode() for name, shades in both.items()}}
