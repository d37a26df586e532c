"""Which position of a model is which part of an image: measured, whatever the model is, and never read from a name.

Attention is all that carries anything from one position to another. While every attention before the one that is asked
about gives nothing, each position there holds what it was made of and no more. So cells of an image are lit by the bits
of their row, and then of their column: a position whose state is what it is when all of the image is lit follows a cell
whose number has that bit, and one that stays as it is when all is dark follows a cell that lacks it. What lies in
between is of several cells at once, and then nothing is said. Of the image, the part that a model is given to see is
found by ramps: what is at its edges shows how far they are.

Markers have parameters of their own. To change one changes the positions that are made of it, which so get its name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

DARK, LIGHT = (40, 90, 20), (200, 130, 240)  # unlike in each channel
SURE = 0.5  # margin: how far from halfway between dark and lit each bit of each position has to be, from 0 to 1
LEAST = 1e-4  # of the largest change: what rounding leaves
NEAR = 1.4  # times as wide: of grids whose form is not quite an image's
WHOLE = 0.97  # of a side: the rest is what the ends of a ramp lose in smoothing
LARGE = 2048  # pixels of an image's longer side, as near as whole multiples come: its cells have many, and sharp edges
MARKER = re.compile(r"(?:^|\.)(?:(\w+?)_tokens?|(class)_embedding)$")  # names of parameters

Inputs = Mapping[str, Any]
Prepare = Callable[[Image.Image], Inputs]


Look = Callable[[Inputs], Tensor]  # [position, d_model]


class Places(NamedTuple):
    """Which positions are patches, row by row, of which part of an image, and how sure that is."""

    n_rows: int
    n_columns: int
    at: tuple[int, ...]
    box: tuple[float, float, float, float]  # left, top, right, bottom, as shares of the image's sides
    margin: float


class Reached(BaseException):
    """What reached a module. No error: nothing behind the states that are looked at is worked out."""


def watch(run: Callable[[Inputs], object], watched: nn.Module, muted: Sequence[nn.Module]) -> Look:
    """Return a way to the states that reach a module while some others give zeros; none where it does not run."""

    def stop(_: nn.Module, given: Any, named: Any) -> None:
        states = next(each for each in tree_leaves((given, named)) if isinstance(each, Tensor) and each.ndim > 1)
        raise Reached(states.detach().float().flatten(0, -2).clone())

    def clear(_: nn.Module, given: Any, output: Any) -> Any:
        return tree_map(lambda each: torch.zeros_like(each) if isinstance(each, Tensor) else each, output)

    def look(inputs: Inputs) -> Tensor:
        hooks = [watched.register_forward_pre_hook(stop, with_kwargs=True)]
        hooks += [each.register_forward_hook(clear) for each in muted]
        try:
            run(inputs)
        except Reached as seen:
            return torch.as_tensor(seen.args[0])
        finally:
            for each in hooks:
                each.remove()
        return torch.empty(0, 1)

    return look


def locate(look: Look, prepare: Prepare, image: Image.Image) -> Places | str:
    """Find the patches of an image, in the order of the states. Else say why not."""
    n_positions = len(look(prepare(image)))
    for scale in (max(1, LARGE // max(image.size)), 1):  # some models cut larger images into more patches
        width, height = (side * scale for side in image.size)
        ends = [prepare(Image.new("RGB", (width, height), colour)) for colour in (DARK, LIGHT)]
        dark, lit = map(look, ends)
        if len(dark) == len(lit) == n_positions > 1:
            break
    else:
        return "how many positions there are depends on what the image shows"
    changed, pixels = find_changed(dark, lit), _read_pixels(ends[0])
    left, top, right, bottom = _find_box(prepare, (width, height), ends)
    ratios = [(bottom - top) * height / ((right - left) * width)]
    if pixels.ndim > 3:  # else patches are cut already
        ratios.insert(0, pixels.shape[-2] / pixels.shape[-1])
    for positions in _list_runs(changed):
        for grid in (each for ratio in ratios for each in _list_grids(len(positions), ratio)):
            down, across = _find_used(pixels, *grid)
            box = left, top, left + (right - left) * across, top + (bottom - top) * down
            cells, margin = torch.zeros(len(positions), dtype=torch.long), 1.0
            for axis, step in enumerate((grid[1], 1)):
                for bit in range((grid[axis] - 1).bit_length()):
                    states = look(prepare(_light((width, height), box, grid, axis, bit)))[positions]
                    from_dark, from_lit = ((states - each[positions]).norm(dim=-1) for each in (dark, lit))
                    told = from_dark / (from_dark + from_lit)
                    cells += (told > 0.5) * step * 2**bit
                    margin = min(margin, float((2 * told - 1).abs().min()))
            if margin >= SURE and sorted(cells.tolist()) == list(range(len(positions))):
                return Places(*grid, tuple(positions[place] for place in cells.argsort().tolist()), box, margin)
    return f"{len(changed)} of {n_positions} positions change with the image, and no grid of patches is told from them"


def find_changed(before: Tensor, after: Tensor) -> list[int]:
    """Return the positions whose states are others."""
    apart = (after - before).norm(dim=-1)
    return [int(place) for place in torch.nonzero(apart > LEAST * apart.max())]


def name_markers(look: Look, module: nn.Module, inputs: Inputs) -> dict[int, str]:
    """Name positions by the parameters that they are made of: [CLS], [REGISTER 2]."""
    before, named = look(inputs), dict[int, str]()
    for name, parameter in module.named_parameters():
        if found := MARKER.search(name):
            kept = parameter.detach().clone()
            with torch.no_grad():
                parameter.add_(1.0)
                places = find_changed(before, look(inputs))
                parameter.copy_(kept)
            for number, place in enumerate(places):
                named[place] = f"[{(found[1] or found[2]).upper()}{f' {number}' if len(places) > 1 else ''}]"
    return named


def _list_runs(changed: Sequence[int]) -> Iterator[list[int]]:
    """Yield all positions, then of those that stand apart the last of each length: of an image cut up, the whole."""
    yield list(changed)
    runs = np.split(np.array(changed), np.flatnonzero(np.diff(changed) > 1) + 1)
    if len(runs) > 1:
        yield from {len(run): run.tolist() for run in runs if len(run) > 1}.values()


def _list_grids(number: int, ratio: float) -> list[tuple[int, int]]:
    """List the rows and columns of so many patches whose form is near an image's, height over width; nearest first."""
    grids = [(rows, number // rows) for rows in range(1, number + 1) if number % rows == 0]
    off = {grid: abs(log(grid[0] / grid[1] / ratio)) for grid in grids}
    return sorted((grid for grid in grids if off[grid] < log(NEAR)), key=lambda grid: off[grid])[:2]


def _find_used(pixels: Tensor, n_rows: int, n_columns: int) -> tuple[float, float]:
    """Return which share of its height and width is cut into patches, where a rest at the end is too small for one."""
    height, width = pixels.shape[-2:]
    side = min(height // n_rows, width // n_columns)
    if pixels.ndim > 3 and side and (height // side, width // side) == (n_rows, n_columns):
        return n_rows * side / height, n_columns * side / width
    return 1.0, 1.0


def _light(size: tuple[int, int], box: Sequence[float], grid: tuple[int, int], axis: int, bit: int) -> Image.Image:
    """Light the cells of a part of an image whose row, or column, has a bit."""
    cells = find_cells(size[1 - axis], box[1 - axis], box[3 - axis], grid[axis])
    is_lit = (cells >> bit & 1).astype(bool)
    return _spread(np.where(is_lit[:, None], LIGHT, DARK).astype(np.uint8), size, axis == 0)


def find_cells(n_pixels: int, low: float, high: float, n_cells: int) -> np.ndarray:
    """Return in which row, or column, of a part of an image each pixel lies; what is around goes on as its edges."""
    shares = ((np.arange(n_pixels) + 0.5) / n_pixels - low) / (high - low)
    return (shares * n_cells).astype(int).clip(0, n_cells - 1)


def _find_box(prepare: Prepare, size: tuple[int, int], ends: Sequence[Inputs]) -> tuple[float, float, float, float]:
    """Find which part of an image a model is given, by how light its lightest and darkest pixels are in ramps."""
    (width, height), box = size, [0.0, 0.0, 1.0, 1.0]
    low, high = map(_read_pixels, ends)
    shown = (high - low).abs() > 1e-3
    for axis, length in enumerate((width, height)):
        share = (np.arange(length)[:, None] + 0.5) / length
        ramp = (np.array(DARK) + share * (np.array(LIGHT) - np.array(DARK))).round().astype(np.uint8)
        places = ((_read_pixels(prepare(_spread(ramp, size, axis == 1))) - low) / (high - low))[shown].clamp(0, 1)
        if float(places.max() - places.min()) < WHOLE:
            box[axis], box[axis + 2] = float(places.min()), float(places.max())
    left, top, right, bottom = box
    return left, top, right, bottom


def _spread(line: np.ndarray, size: tuple[int, int], is_down: bool) -> Image.Image:
    """Make an image of one line of colours, down or across."""
    pixels = np.broadcast_to(line[:, None] if is_down else line[None], (*size[::-1], 3))
    return Image.fromarray(np.ascontiguousarray(pixels))


def _read_pixels(inputs: Inputs) -> Tensor:
    return next(each for each in inputs.values() if isinstance(each, Tensor) and each.is_floating_point()).float()
