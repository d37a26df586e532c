"""What one query attends to among the patches of an image, as they lie in it. Knows records and `report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attnviz.records import AttentionMaps
from attnviz.report import Heatmap, HeatmapGrid, Note
from attnviz.selection import find_token
from attnviz.specs import FigureOptions
from attnviz.views.head_pictures import Place, arrange_overview, name_place
from attnviz.views.tokens import quote_token


def draw_patches(
    maps: AttentionMaps, places: Sequence[Place], spec: FigureOptions
) -> tuple[()] | tuple[HeatmapGrid, Note]:
    """Draw the heads for one query over the image, if it is there, and note what goes elsewhere.

    Nothing of a record without patches, or of lines and texts. The query is `spec.query`, else the first token before
    the patches, else the one in the middle. Raises InvalidSelection for a query that is not there.
    """
    if maps.grid is None or spec.kind != "map":
        return ()
    query, grid = 0, maps.grid
    if spec.query is not None:
        query = find_token(spec.query, maps.queries.pieces)
    elif maps.self_attention and len(maps.keys) <= grid.n_patches:
        query = grid.n_rows // 2 * grid.n_columns + grid.n_columns // 2
    pictures = tuple(_draw_patch_map(maps, place, query) for place in places)
    grids = arrange_overview(maps, pictures, places, spec)
    name = quote_token(maps.queries, query)
    over = "over the image" if grid.pixels is not None else "over the patches of the image"
    title = f"what {name} attends to, {over}"
    if grids:
        picture = replace(grids[0], name="patches", title=f"{title}: {grids[0].title}".rstrip(": "))
    else:
        picture = HeatmapGrid("patches", title, pictures, 1)
    return picture, Note(" ".join(_describe_patches(maps, places, query)))


def _describe_patches(maps: AttentionMaps, places: Sequence[Place], query: int) -> Iterator[str]:
    assert maps.grid is not None
    yield "Patches are called by row and column."
    if maps.grid.pixels is not None:
        yield "Their colours are mixed with the image under them."
    if n_leading := len(maps.keys) - maps.grid.n_patches:
        rows = [maps.rows(*place, slice(query, query + 1))[0] for place in places]
        shares = [float(row[:n_leading].sum()) for row in rows]
        before = "the token" if n_leading == 1 else f"the {n_leading} tokens"
        share = f"{min(shares):.0%} to {max(shares):.0%}"
        yield f"{share} of what {quote_token(maps.queries, query)} attends to goes to {before} before them."


def _draw_patch_map(maps: AttentionMaps, place: Place, query: int) -> Heatmap:
    grid, (layer, head) = maps.grid, place
    assert grid is not None
    shape = (grid.n_rows, grid.n_columns)
    allowed = maps.attendable[layer, query]
    name, title = name_place(maps, place)
    return Heatmap(
        name=name,
        title=title,
        values=maps.rows(layer, head, slice(query, query + 1))[0, -grid.n_patches :].reshape(shape),
        allowed=allowed[-grid.n_patches :].reshape(shape),
        rows=tuple(map(str, range(grid.n_rows))),
        columns=tuple(map(str, range(grid.n_columns))),
        row_axis="row of patches",
        column_axis="column of patches",
        equal=np.full(grid.n_rows, 1 / max(int(allowed.sum()), 1), dtype=np.float32),
        backdrop=grid.pixels,
    )
