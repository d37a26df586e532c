"""The maps of a page without their cells, the pictures that they are in, and what they share. Knows `report` only.

What several maps have in common is held once: labels, and where attention is allowed.

Maps that are too large for a page are made smaller: means of blocks, as in a figure.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import ceil, sqrt

import numpy as np

from attnviz.renderers.pooling import pool_cells
from attnviz.report import Heatmap, HeatmapGrid, Report, Scale
from attnviz.words import Language, phrase

MAX_SIDE = 1024  # rows or columns of a map on a page
MAX_CELLS = 20_000_000  # of all maps: 72 heads of 512 tokens, about 4 MB of page
POOLED_SIDE = 512  # of a map that is pooled, whose means take more bytes than single weights do
POOLED_CELLS = 2**21  # of all such maps, about 3 MB of page
WIDTH, TEXT = 3.2, 10.8  # inches and points: a figure whose bar of colours is as long as a page's, with text as large


def block_for(maps: Sequence[Heatmap]) -> int:
    """Choose how many rows, and columns, become one, so that a page can hold these maps; 1 where it can as they are."""
    longest = max(int(max(each.values.shape)) for each in maps)
    n_cells = sum(int(each.values.size) for each in maps)
    if longest <= MAX_SIDE and n_cells <= MAX_CELLS and maps[0].block == 1:
        return 1
    return max(1, ceil(longest / POOLED_SIDE), ceil(sqrt(n_cells / POOLED_CELLS)))


def pool_heatmap(heatmap: Heatmap, block: int) -> Heatmap:
    """Pool a map to the mean of each block, of differences the one farthest from 0; allowed where any cell is."""
    if block == 1:
        return heatmap
    signed = bool(heatmap.values.min() < 0)
    pooled = pool_cells(heatmap.values, heatmap.allowed, (block, block), signed)
    starts = np.arange(0, len(heatmap.allowed), block)
    attends = heatmap.allowed.any(axis=1)
    shares = np.add.reduceat(np.where(attends, heatmap.equal_share, 0), starts)
    n_queries = np.add.reduceat(attends.astype(np.int32), starts)
    return replace(
        heatmap,
        values=pooled.filled(0).astype(np.float32),
        allowed=~np.ma.getmaskarray(pooled),
        rows=join_labels(heatmap.rows, block, " … "),
        columns=join_labels(heatmap.columns, block, " … "),
        row_positions=heatmap.row_positions[::block],
        column_positions=heatmap.column_positions[::block],
        equal=shares / np.maximum(n_queries, 1),  # so that even attention is 1 × an equal share
    )


def join_labels(labels: Iterable[str], block: int, between: str) -> tuple[str, ...]:
    """Join the first and the last label of each block."""
    whole = tuple(labels)
    blocks = (whole[start : start + block] for start in range(0, len(whole), block))
    return tuple(each[0] if len(each) == 1 else f"{each[0]}{between}{each[-1]}" for each in blocks)


OF_A_HEAD = re.compile(r"layer-(\d+)-(?:head-(\d+)|(mean))")


Shared = dict[str, object]  # what several maps have in common, by how it is written


@dataclass(eq=False)
class Held:
    """What a page holds beside its document: packed numbers, and how exact it says that they are."""

    language: Language
    parts: list[tuple[bytes, bytes]] = field(default_factory=list)  # see `packing.pack`; those of maps come first
    said: list[str] = field(default_factory=list)

    def say(self, name: str, **places: object) -> None:
        """Add a sentence from the table of words."""
        self.said.append(phrase(name, self.language, **places))


def share(thing: object, shared: Shared) -> int:
    """Return the number of a thing among those that are written once; it joins them if it is new."""
    written = json.dumps(thing)
    shared.setdefault(written, thing)
    return [*shared].index(written)


def share_bytes(numbers: np.ndarray, shared: Shared) -> int:
    """Return the number of an array among those that are written once, as base64 of its bytes."""
    return share(b64encode(numbers.tobytes()).decode("ascii"), shared)


def describe_maps(
    report: Report, originals: Sequence[Heatmap], maps: Sequence[Heatmap], block: int
) -> Mapping[str, object]:
    """Describe maps, the pictures that they are in, and what they share."""
    axes, masks, shares, backdrops = Shared(), Shared(), Shared(), Shared()
    described = [
        {
            **_describe_map(small, masks, shares),
            "block": original.block * block,
            "backdrop": None if small.backdrop is None else share(_describe_backdrop(small.backdrop), backdrops),
            **_axes(report, original, block, axes),
        }
        for small, original in zip(maps, originals, strict=True)
    ]
    places = {_key(each): place for place, each in enumerate(originals)}
    pictures = [_describe_picture(each, places) for each in pictures_of(report)]
    kinds = {scale.kind: scale for scale in (report.scale, *report.scales, report.scale)}  # the report's first
    return {
        "maps": described,
        "screen": [place for place, each in enumerate(originals) if _find_head(each) in report.screen],
        "pictures": pictures,
        "scales": [*map(describe_scale, kinds.values())],
        "axes": [*axes.values()],
        "masks": [*masks.values()],
        "shares": [*shares.values()],
        "backdrops": [*backdrops.values()],
    }


def list_scales(report: Report) -> Iterator[Scale]:
    """List the scales that maps are drawn by, or may be: the report's, then those that pictures have of their own."""
    yield from (report.scale, *report.scales)
    yield from (each.scale for each in pictures_of(report) if each.scale)


def describe_scale(scale: Scale) -> Mapping[str, object]:
    """Describe a scale with the limits of its colours, and with the ticks of its colour bar, from 0 to 1."""
    from attnviz.renderers.figure.colour_bar import plan_bar  # matplotlib comes with it
    from attnviz.renderers.figure.scale import norm_of, plan_limits

    (low, high), places = plan_limits(scale), norm_of(scale)
    ticks = [(float(places(value)), text) for value, text in plan_bar(scale, (0.0, 0.0), WIDTH, TEXT).ticks]
    return {**asdict(scale), **asdict(scale.family), "low": low, "high": high, "ticks": ticks}


def distinct(report: Report) -> Mapping[tuple[str, int], Heatmap]:
    """Collect every map once, in the order of the pictures, with the title that it has alone, if it stands alone."""
    panels = {_key(each): each for each in report.panels}
    found: dict[tuple[str, int], Heatmap] = {}
    for picture in report.pictures:
        if isinstance(picture, HeatmapGrid):
            found.update({_key(each): panels.get(_key(each), each) for each in picture.maps if _key(each) not in found})
        elif isinstance(picture, Heatmap):
            found[_key(picture)] = picture
    return found


def pictures_of(report: Report) -> Iterator[Heatmap | HeatmapGrid]:
    """Yield the pictures of maps; a map that stands among panels, too, is not told twice."""
    maps = [each for each in report.pictures if isinstance(each, Heatmap | HeatmapGrid)]
    beside = {_key(each) for picture in maps if isinstance(picture, HeatmapGrid) for each in picture.maps}
    return (each for each in maps if isinstance(each, HeatmapGrid) or _key(each) not in beside)


def _key(heatmap: Heatmap) -> tuple[str, int]:
    """Identify a map, whatever it is called among others: panels have shorter titles than maps that stand alone."""
    return heatmap.name, id(heatmap.values)


def _describe_picture(picture: Heatmap | HeatmapGrid, places: Mapping[tuple[str, int], int]) -> Mapping[str, object]:
    if isinstance(picture, Heatmap):
        picture = HeatmapGrid(picture.name, picture.title, (picture,), 1, picture.scale)
    is_layered, maps = picture.edges is not None, picture.maps
    return {
        "name": picture.name,
        "title": picture.title,
        "columns": picture.n_columns,
        "scale": describe_scale(picture.scale) if picture.scale else None,
        "maps": [places[_key(each)] for each in maps],
        "titles": ["{}.{}".format(*_find_head(each)) if is_layered else each.title for each in maps],
        "looks": {name: [round(each, 4) for each in of_heads] for name, of_heads in picture.shares.items()},
        "names": [each.note for each in maps],  # what heads are known for, or ""
    }


def _describe_map(heatmap: Heatmap, masks: Shared, shares: Shared) -> Mapping[str, object]:
    layer, head = _find_head(heatmap)
    forbids = not heatmap.allowed.all()
    return {
        "name": heatmap.name,
        "title": heatmap.title,
        "layer": layer,
        "head": head,
        "row_axis": heatmap.row_axis,
        "has_queries": heatmap.has_queries,
        "has_keys": heatmap.has_keys,
        "column_axis": heatmap.column_axis,
        "mask": share_bytes(np.packbits(heatmap.allowed) if forbids else np.zeros(0), masks),
        "shares": share_bytes(heatmap.equal_share.astype("<f4"), shares),
    }


def _find_head(heatmap: Heatmap) -> tuple[int | None, int | str | None]:
    """Return the numbers of layer and head of which a map is by its name; the mean over heads goes by "mean"."""
    found = OF_A_HEAD.fullmatch(heatmap.name)
    if found is None:
        return None, None
    return int(found[1]), found[3] or int(found[2])


def _describe_backdrop(image: np.ndarray) -> Mapping[str, object]:
    """Describe an image as grey pixels, so that a page decodes no format of images and its policy allows none."""
    height, width = image.shape
    return {"width": width, "height": height, "grey": b64encode(image.tobytes()).decode("ascii")}


def _axes(report: Report, heatmap: Heatmap, block: int, axes: Shared) -> Mapping[str, object]:
    is_text = heatmap.block == 1
    sides = (
        ("rows", "queries", heatmap.rows, heatmap.row_positions, is_text and heatmap.has_queries),
        ("columns", "keys", heatmap.columns, heatmap.column_positions, is_text),
    )
    of_report = report.data.get("tokens")  # where a text has one number per token
    alike = report.data.get("self_attention") is not False  # else two texts, though they may have the same words
    blocks = (heatmap.block, block)
    return {
        side: share(
            {
                **describe_axis(labels, positions, blocks, report.data.get(tokens, of_report), of_text),
                "of": alike or side,
                **({"texts": heatmap.row_texts} if side == "rows" and heatmap.row_texts else {}),
            },
            axes,
        )
        for side, tokens, labels, positions, of_text in sides
    }


def describe_axis(
    labels: Sequence[str], positions: Sequence[int], blocks: tuple[int, int], tokens: object, of_text: bool
) -> Mapping[str, object]:
    """Describe one side of a map, or the words of a graph.

    `blocks`: how many tokens a label of the report stands for, and how many of its labels become one here."""
    of_report, block = blocks
    n_tokens = len(tokens["offsets"]) if isinstance(tokens, Mapping) else len(positions) * of_report
    return {
        "labels": join_labels(labels, block, " … "),
        "positions": join_labels(map(str, positions), block, "–")
        if of_report == 1
        else join_labels(map(str, range(n_tokens)), of_report * block, "–"),
        "writing": _writing(tokens, positions) if block == 1 and of_text else None,
    }


def _writing(tokens: object, positions: Sequence[int]) -> Mapping[str, object] | None:
    """Tell before which tokens the text has a space, and which are markers of the model.

    None where nothing says.
    """
    if not isinstance(tokens, Mapping) or max(positions) >= len(tokens["offsets"]):
        return None
    offsets = [tokens["offsets"][position] for position in positions]
    apart = [bool(here[0] > before[1]) for before, here in pairwise(offsets)]
    special = tokens["special"]
    return {"spaced": [False, *apart], "special": [special[position] for position in positions]}
