"""Where in an image heads look: pictures over it, and which of its nine parts get how much. Knows records and `report`.

One query at a time looks: the marker that stands for the whole image, a chosen place, or a word as it is written.

A page of an image gets what it needs to follow who points at a place of it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import count

import numpy as np
from jaxtyping import Float, Float32

from attnviz.display import list_first
from attnviz.measures.notable import MovedRows, choose_notable
from attnviz.measures.rows import compute_statistics
from attnviz.measures.shown import MAX_FILES, N_NOTABLE, Findings, RecordPart
from attnviz.records import AttentionMaps
from attnviz.records.attribution import CoverTest
from attnviz.records.grid import Grid
from attnviz.records.head_names import MIN_SHARE, write_share
from attnviz.records.part import Place
from attnviz.report import Block, Column, Heatmap, HeatmapGrid, Note, Pointing, Report, Table
from attnviz.specs import FigureOptions
from attnviz.views.head_pictures import arrange_overview, choose_columns, name_head, name_place
from attnviz.views.tokens import label_queries, label_token

PARTS = ("upper left", "top", "upper right", "left", "centre", "right", "lower left", "bottom", "lower right")
N_ROWS, N_PARTS, N_WORDS = 8, 4, 12  # heads in the table, parts in the first line, words that have a picture
SINK = 0.02, 5  # of all attention, for one patch, and times an equal share
MORE = "All heads: --table heads or full. --query 3,5 asks what the patch in row 3, column 5 looks at."


def draw_patches(part: RecordPart, measured: Findings, spec: FigureOptions) -> tuple[Block, ...]:
    """Draw what heads look at for one query over the image, if it is there, and say it: which part, and how much.

    Nothing of a record without patches, or of lines and texts. The query is `spec.query`, else the one that chose the
    first word that was written, the first token if it is no patch, or the patch in the middle. Of many heads those that
    are most unlike an equal share and one another are drawn large, and all of them small.
    """
    maps, places, grid = part.maps, part.places, part.maps.grid
    if grid is None or spec.kind != "map":
        return ()
    query, at = _find_query(part, grid), np.array(grid.find_places(len(maps.keys)))
    rows = np.stack([maps.rows(*place, slice(query, query + 1))[0] for place in places])
    pictures = tuple(_draw_patch_map(maps, grid, place, row, query) for place, row in zip(places, rows, strict=True))
    name = label_queries(maps)[query]
    title = f"where “{name}” looks"
    chosen = _choose_heads(rows[:, at])
    drawn = [HeatmapGrid("patches", title, pictures, 1)]
    for whole in arrange_overview(part, measured, pictures, spec):
        plain = tuple(replace(each, note="") for each in whole.maps)
        whole = replace(whole, maps=plain, title=f"{title}: {whole.title}".rstrip(": "), footnote="", shares={})
        drawn = [replace(whole, name="patches")]
        if len(places) > MAX_FILES and not spec.pick:
            panels = tuple(replace(plain[n], title=name_head(maps, places[n])) for n in sorted(chosen))
            said, unlike = f"{title}: {len(panels)} of {len(places)} heads", "each head unlike the others"
            large = HeatmapGrid("patches", said, panels, choose_columns(len(panels)), reflows=True, footnote=unlike)
            drawn = [large, replace(whole, small=whole.edges is not None)]
    return *_draw_words(maps, grid, places), *drawn, *_describe(maps, grid, places, rows, query, chosen)


def find_look(part: RecordPart) -> tuple[Float32[np.ndarray, "row column"], list[int]]:
    """Return what heads give each patch on average, and the queries that do: all that wrote, unless one is chosen.

    A patch that asks gives itself -1: it is not to be covered.
    """
    maps, grid = part.maps, part.maps.grid
    assert grid is not None
    query = _find_query(part, grid)
    queries = [*range(query, len(maps.queries))] if part.tokens.asked is None and maps.chosen else [query]
    rows = [maps.rows(*place, slice(each, each + 1))[0] for place in part.places for each in queries]
    at = [*grid.find_places(len(maps.keys))]
    look = np.mean(rows, axis=0)[at]
    if maps.self_attention:
        look[np.isin(at, queries)] = -1
    return look.reshape(grid.n_rows, grid.n_columns), queries


def add_cover_test(report: Report, test: CoverTest, maps: AttentionMaps, places: Sequence[Place]) -> Report:
    """Say beside pictures, and in the data, what is lost where the patches are covered that are looked at most."""
    effect = {
        "words": f"costs the log probability of “{test.answer}” {test.shown:.2f}",
        "label": f"costs the logit of “{test.answer}” {test.shown:.2f}",
        "output": f"moves the output by {test.shown:.2f} of its length",
    }[test.kind]
    who = f"head {name_head(maps, places[0])}" if len(places) == 1 else f"mean of {len(places)} heads"
    covering = f"Covering the {test.n_patches} patches looked at most ({who}) {effect}"
    draws = f"{np.mean(test.elsewhere):.2f} ({len(test.elsewhere)} draws, at most {max(test.elsewhere):.2f})"
    more = (
        "More than in any draw: the look is a reason."
        if test.is_reason
        else "As much in some draw: no reason is shown."
    )
    said = f"{covering}, covering as many elsewhere {draws}. {more}"
    blocks = tuple(
        replace(each, footnote=" · ".join(filter(None, (each.footnote, said))))
        if isinstance(each, HeatmapGrid) and each.name == "patches"
        else each
        for each in report.blocks
    )
    data = {**report.data, "covered": {**asdict(test), "is_reason": test.is_reason}}
    return replace(report, blocks=(*blocks, Note(said, leads=True)), data=data)


def _find_query(part: RecordPart, grid: Grid) -> int:
    """Return the query that looks: the one asked for, the one that chose the first word written, or the middle one."""
    maps = part.maps
    if part.tokens.asked is not None:
        return part.tokens.asked
    if maps.chosen:
        return len(maps.queries) - len(maps.chosen)
    if maps.self_attention and len(maps.keys) == grid.n_patches:
        return grid.find_places(grid.n_patches)[grid.n_rows // 2 * grid.n_columns + grid.n_columns // 2]
    return 0


def _choose_heads(rows: Float32[np.ndarray, "head patch"]) -> list[int]:
    """Choose heads that say most about one query's look, those that are most worth it first."""
    share = rows.sum(axis=1, dtype=np.float64)[:, None]
    shares = (rows / np.maximum(share, 1e-9)).astype(np.float32)[:, None]
    equal = np.full((1, 1, rows.shape[1]), 1 / rows.shape[1], dtype=np.float32)
    found = choose_notable(MovedRows(np.zeros(1, int), shares, share, equal, np.zeros(len(rows), int)), N_NOTABLE)
    return list(found) or list(range(min(len(rows), N_NOTABLE)))


def _draw_patch_map(maps: AttentionMaps, grid: Grid, place: Place, row: np.ndarray, query: int) -> Heatmap:
    shape, at = (grid.n_rows, grid.n_columns), np.array(grid.find_places(len(maps.keys)))
    allowed = maps.attendable[place[0], query]
    name, title = name_place(maps, place)
    return Heatmap(
        name=name,
        title=title,
        values=row[at].reshape(shape),
        allowed=allowed[at].reshape(shape),
        rows=tuple(map(str, range(grid.n_rows))),
        columns=tuple(map(str, range(grid.n_columns))),
        row_axis="row of patches",
        column_axis="column of patches",
        equal=np.full(grid.n_rows, 1 / max(int(allowed.sum()), 1), dtype=np.float32),
        backdrop=grid.pixels,
    )


def _draw_words(maps: AttentionMaps, grid: Grid, places: Sequence[Place]) -> Iterator[HeatmapGrid]:
    """Yield what each word that was written looked at, as the mean over heads."""
    if not maps.chosen:
        return
    first, names = len(maps.queries) - len(maps.chosen), label_queries(maps)
    drawn = []
    for query in range(first, min(len(maps.queries), first + N_WORDS)):
        mean = np.mean([maps.rows(*place, slice(query, query + 1))[0] for place in places], axis=0)
        picture = _draw_patch_map(maps, grid, places[0], mean, query)
        drawn.append(replace(picture, name=f"word-{query}", title=names[query]))
    title = f"where each word that was written looks, as the mean of {len(places)} heads"
    yield HeatmapGrid("words", title, tuple(drawn), choose_columns(len(drawn)), reflows=True)


def _describe(
    maps: AttentionMaps, grid: Grid, places: Sequence[Place], rows: np.ndarray, query: int, chosen: Sequence[int]
) -> Iterator[Block]:
    """Yield in which part of the image each head looks, and what goes to what is no patch."""
    at = np.array(grid.find_places(len(maps.keys)))
    thirds = (np.arange(n) * 3 // n for n in (grid.n_rows, grid.n_columns))
    parts = np.add.outer(*(each * step for each, step in zip(thirds, (3, 1), strict=True))).ravel()
    shares = np.stack([rows[:, at[parts == part]].sum(axis=1) for part in range(len(PARTS))], axis=1)
    best, most, beside = shares.argmax(axis=1), shares.max(axis=1), 1 - rows[:, at].sum(axis=1)
    kinds: dict[str, list[str]] = defaultdict(list)
    for n in np.argsort(-most):
        if most[n] >= MIN_SHARE:
            kinds[PARTS[best[n]]].append(f"{name_head(maps, places[n])} {write_share(most[n])}")
    said = [f"{part} {list_first(heads, 2)}" for part, heads in [*kinds.items()][:N_PARTS]]
    others = np.delete(rows.mean(axis=0), at)
    if others.size:
        strongest = label_token(maps.keys, int(np.delete(np.arange(len(maps.keys)), at)[others.argmax()]))
        share = f"{write_share(others.max())} of it all " if others.size > 1 else ""
        said.append(f"beside these patches {write_share(float(beside.mean()))} on average, {share}to “{strongest}”")
    yield Note(f"“{label_queries(maps)[query]}” looks at: {' · '.join(said)}.", leads=True)
    received = np.mean([compute_statistics(maps, layer).received[head] for layer, head in places], axis=0)[at]
    names, least = [label_token(maps.keys, int(place)) for place in at], max(SINK[0], SINK[1] / len(maps.keys))
    if sinks := [f"{names[n]} {write_share(received[n])}" for n in np.argsort(-received)[:3] if received[n] >= least]:
        told = f"Of {len(maps.keys)} keys these patches get most, on average over heads and queries"
        yield Note(f"{told}: {', '.join(sinks)}.", leads=True)
    table = [
        (
            name_head(maps, places[n]),
            PARTS[best[n]],
            write_share(most[n]),
            names[rows[n, at].argmax()],
            f"{rows[n, at].max():.2f}".removeprefix("0"),
            write_share(max(0.0, float(beside[n]))),
        )
        for n in chosen[:N_ROWS]
    ]
    columns = ("head", "looks at", "share", "most at", "weight", "beside")
    yield Table("answer", "", "answer", tuple(map(Column, columns)), tuple(table), more=MORE)


MAX_CELLS = 2**21  # of all heads: 72 of 168 parts, about half a megabyte of a page
MIN_BESIDE, N_BESIDE = 0.005, 3  # share from which on a token beside the patches is named, and how many are


def follow_places(maps: AttentionMaps, places: Sequence[Place]) -> Pointing:
    """Work out what heads give each part of an image, seen from each part: of a record that attends to itself.

    Parts are single patches where all heads have room for that, else blocks of them.
    """
    grid, n_queries = maps.grid, len(maps.queries)
    assert grid is not None
    at = np.array(grid.find_places(n_queries))
    others = np.setdiff1d(np.arange(n_queries), at)
    sizes = ((block, -(-grid.n_rows // block) * -(-grid.n_columns // block)) for block in count(1))
    block = next(block for block, n_parts in sizes if len(places) * n_parts**2 <= MAX_CELLS)
    n_patches = _sum_parts(np.ones((grid.n_patches, 1)), grid, block)  # of each part
    looks, equal, beside = {}, {}, np.zeros((len(n_patches), len(others)))
    for place in places:
        name, _ = name_place(maps, place)
        rows = maps.rows(*place, slice(0, n_queries))[at]
        given = _sum_parts(rows[:, at], grid, block) / n_patches
        looks[name] = _sum_parts(given.T, grid, block).T.astype(np.float32)
        n_allowed = _sum_parts(
            maps.read_allowed(place[0], slice(0, n_queries))[at].sum(axis=1, dtype=float)[:, None], grid, block
        )
        equal[name] = (block**2 / np.maximum(n_allowed / n_patches, 1)).ravel().astype(np.float32)
        beside += _sum_parts(rows[:, others], grid, block) / n_patches / len(places)
    names = [label_token(maps.keys, int(other)) for other in others]
    return Pointing(block, looks, equal, tuple(_name_beside(shares, names) for shares in beside))


def _sum_parts(of_patches: Float[np.ndarray, "patch n"], grid: Grid, block: int) -> Float[np.ndarray, "part n"]:
    """Sum what there is of each patch over parts of `block` × `block` patches."""
    cells = of_patches.reshape(grid.n_rows, grid.n_columns, -1)
    for axis, length in enumerate((grid.n_rows, grid.n_columns)):
        cells = np.add.reduceat(cells, np.arange(0, length, block), axis=axis)
    return cells.reshape(cells.shape[0] * cells.shape[1], -1)


def _name_beside(shares: Float[np.ndarray, " token"], names: Sequence[str]) -> str:
    strongest = [n for n in np.argsort(-shares)[:N_BESIDE] if shares[n] >= MIN_BESIDE]
    return ", ".join(f"{names[n]} {write_share(float(shares[n]))}" for n in strongest)
