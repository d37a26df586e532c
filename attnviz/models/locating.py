"""Which position of a model is which part of an image: measured, whatever the model is, and never read from a name.

Attention is all that carries anything from one position to another. While every attention before the one that is asked
about gives nothing, each position there holds what it was made of and no more. So what a pixel changes is one position,
and which one two gradients tell: of the sum of all positions, and of the same sum in which each counts as often as its
number says. The second is so many times the first. Where that is no whole number, the pixel changes several positions
at once, and then nothing is said.

Where in the image a pixel comes from that the model is given is told by two images of a ramp, down and across: how
light the pixel is in each says how far down and across it lies, whatever was cut, padded, shrunk or put in another
order.

Markers have parameters of their own, whose positions are told as those of pixels are.

What an answer loses where parts of the image are covered is measured, too: a look alone is no reason. An answer may
lose as much with any other part. So as many patches are covered elsewhere, a number of times: a region of the same form
that lies at a random place, in which patches that would fall on the tested region are replaced by others at random.
What is covered gets the mean colour of the image, in the image itself: what makes it ready for the model sees no
difference.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from PIL import Image
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_leaves, tree_map

SURE = 0.5  # margin: how far from halfway between two positions each pixel has to be, from 0 to 1
LEAST = 1e-2  # of the largest gradient: of what is smaller, rounding hides the number
MARKER = re.compile(r"(?:^|\.)(?:(\w+?)_tokens?|(class)_embedding)$")  # names of parameters

Inputs = Mapping[str, Any]
Prepare = Callable[[Image.Image], Inputs]
Box = tuple[float, float, float, float]  # left, top, right, bottom, as shares of an image's sides


class Places(NamedTuple):
    """Which positions are patches, row by row, of which part of an image, how sure that is, and names of others."""

    n_rows: int
    n_columns: int
    at: tuple[int, ...]
    box: Box
    margin: float
    markers: dict[int, str]


class Reached(BaseException):
    """What reached a module. No error: nothing behind the states that are looked at is worked out."""


def read_states(
    model: nn.Module, inputs: Inputs, watched: nn.Module, muted: Sequence[nn.Module], check: Callable[[int], object]
) -> Float[Tensor, "n d"]:
    """Return the states that reach a module while some others give zeros; none where it does not run.

    What their gradients need is kept in half of its precision: both are then by the same factors, and how often one is
    in the other does not change. Before any of it is kept, `check` is told how many bytes all of it takes.
    """
    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    held = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal held
        if tensor.untyped_storage().data_ptr() in weights or not tensor.is_floating_point():
            return tensor
        held += tensor.numel() * torch.bfloat16.itemsize
        check(held)
        return tensor.to(torch.bfloat16)

    def give(kept: Tensor) -> Tensor:
        return kept.float() if kept.dtype == torch.bfloat16 else kept

    def stop(_: nn.Module, given: Any, named: Any) -> None:
        states = next(each for each in tree_leaves((given, named)) if isinstance(each, Tensor) and each.ndim > 1)
        raise Reached(states.flatten(0, -2))

    def clear(_: nn.Module, given: Any, output: Any) -> Any:
        return tree_map(lambda each: torch.zeros_like(each) if isinstance(each, Tensor) else each, output)

    hooks = [watched.register_forward_pre_hook(stop, with_kwargs=True)]
    hooks += [each.register_forward_hook(clear) for each in muted]
    try:
        with saved_tensors_hooks(keep, give):
            model(**inputs)
    except Reached as seen:
        return torch.as_tensor(seen.args[0])
    finally:
        for each in hooks:
            each.remove()
    return torch.empty(0, 1)


def find_pixels(inputs: Inputs) -> tuple[str, Tensor]:
    """Return the name and the tensor of the pixels among what a model is given."""
    floating = ((name, each) for name, each in inputs.items() if isinstance(each, Tensor))
    return next((name, each) for name, each in floating if each.is_floating_point())


def trace_positions(
    states: Float[Tensor, "position d"], sources: Sequence[Tensor]
) -> list[tuple[Int[np.ndarray, "..."], float]]:
    """Find which position each number of some tensors changes, -1 for none, and how sure that is of each tensor."""
    direction = torch.randn(states.shape[1], generator=torch.Generator().manual_seed(0)).to(states)
    along, found = states @ direction, []
    numbers = torch.arange(1.0, len(along) + 1).to(along)
    once = torch.autograd.grad(along.sum(), sources, retain_graph=True, materialize_grads=True)
    numbered = torch.autograd.grad(along @ numbers, sources, materialize_grads=True)
    for source, one, several in zip(sources, once, numbered, strict=True):
        changes = one.abs() > LEAST * one.abs().max()
        number = torch.where(changes, several / one, torch.zeros_like(source))
        off = float((number - number.round()).abs().max())
        found.append((number.round().long().cpu().numpy() - 1, 1 - 2 * off))
    return found


def locate(
    states: Float[Tensor, "position d"],
    pixels: Tensor,
    shares: Float[np.ndarray, "axis ..."],
    markers: Mapping[str, Tensor],
) -> Places | str:
    """Find the patches of an image in the order of the states, which were made of pixels and markers. Else say why not.

    `shares` are how far down and across the image each pixel lies, NaN outside it. Of an image that is cut up into
    several, those patches are found that are of the largest part of it.
    """
    (positions, margin), *others = trace_positions(states, [pixels, *markers.values()])
    if not (positions >= 0).any() or margin < SURE:
        return f"a pixel of the image changes none of {len(states)} positions alone"
    n_parts = positions[..., 0, 0, 0].size if positions.ndim > 3 else 1
    parts = zip(positions.reshape(n_parts, -1), shares.reshape(2, n_parts, -1).swapaxes(0, 1), strict=True)
    grids = [_arrange(*part) for part in parts if (part[0] >= 0).any()]
    n_rows, n_columns, at, box = max(grids, key=lambda grid: (grid[3][2] - grid[3][0]) * (grid[3][3] - grid[3][1]))
    if n_rows * n_columns != len(at):
        n_changed = len(np.unique(positions[positions >= 0]))
        return f"{n_changed} of {len(states)} positions change with the image, and they are no grid of patches"
    names = dict[int, str]()
    for name, (of_rows, _) in zip(markers, others, strict=True):
        places = [int(row.max()) for row in of_rows.reshape(-1, of_rows.shape[-1]) if row.max() >= 0]
        for number, place in enumerate(places):
            names[place] = f"[{name.upper()}{f' {number}' if len(places) > 1 else ''}]"
    return Places(n_rows, n_columns, at, box, margin, names)


def find_markers(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters of which markers are made, by what these are called: cls, register.

    All others get no gradient.
    """
    found = ((MARKER.search(name), parameter) for name, parameter in model.requires_grad_(False).named_parameters())
    return {match[1] or match[2]: parameter.requires_grad_() for match, parameter in found if match}


def read_shares(prepare: Prepare, size: tuple[int, int]) -> Float[np.ndarray, "axis ..."]:
    """Measure how far down and across an image of a size each pixel lies that a model is given; NaN outside it."""
    ramps = [(np.arange(length) + 0.5) * 255 / length for length in size]
    lines = np.zeros(1), np.full(1, 255), ramps[1][:, None], ramps[0]
    found = []
    for line in lines:
        colours = np.broadcast_to(line.round().astype(np.uint8)[..., None], (*size[::-1], 3))
        found.append(find_pixels(prepare(Image.fromarray(np.ascontiguousarray(colours))))[1].float().cpu().numpy())
    dark, light, *ways = found
    shown = np.abs(light - dark) > 1e-3
    return np.stack([np.where(shown, way - dark, np.nan) / np.where(shown, light - dark, 1) for way in ways])


def _arrange(
    positions: Int[np.ndarray, " pixel"], shares: Float[np.ndarray, "axis pixel"]
) -> tuple[int, int, tuple[int, ...], Box]:
    """Arrange the positions that pixels change in rows and columns, by where in the image the pixels lie."""
    is_patch = (positions >= 0) & np.isfinite(shares).all(axis=0)
    at, patch, n_pixels = np.unique(positions[is_patch], return_inverse=True, return_counts=True)
    lines, ends = [], []
    for share in shares[:, is_patch]:
        centre = np.bincount(patch, share) / n_pixels
        variance = np.bincount(patch, share**2) / n_pixels - centre**2
        extent = np.sqrt(12 * variance.clip(0)).mean()  # of a patch, all of whose pixels are its own
        order = centre.argsort()
        is_next = np.diff(centre[order], prepend=centre[order[0]]) > extent / 2
        lines.append(is_next.cumsum()[order.argsort()])
        ends.append((max(0.0, float(centre.min() - extent / 2)), min(1.0, float(centre.max() + extent / 2))))
    (top, bottom), (left, right) = ends
    n_rows, n_columns = (int(line.max()) + 1 for line in lines)
    cells = lines[0] * n_columns + lines[1]
    is_alone = len(np.unique(cells)) == len(cells)
    return n_rows, n_columns, tuple(at[cells.argsort()].tolist()) if is_alone else (), (left, top, right, bottom)


def find_cells(n_pixels: int, low: float, high: float, n_cells: int) -> np.ndarray:
    """Return in which row, or column, of a part of an image each pixel lies; what is around goes on as its edges."""
    shares = ((np.arange(n_pixels) + 0.5) / n_pixels - low) / (high - low)
    return (shares * n_cells).astype(int).clip(0, n_cells - 1)


SHARE = 0.1  # of all patches are covered
N_DRAWS = 19  # by chance, more is lost than in all of them in one case of twenty
Region = Bool[np.ndarray, "row column"]


def measure_covers(
    measure: Callable[[Image.Image], float],
    image: Image.Image,
    box: Sequence[float],
    look: Float[np.ndarray, "row column"],
) -> tuple[int, list[float]]:
    """Measure an image with the patches covered that a look gives most, then with as many others, for each draw.

    `box` is the part of the image that the patches are of. Those whose look is below 0 are never covered. The same
    draws come every time. Returns how many patches are covered at a time, and what was measured.
    """
    random, barred, number = np.random.default_rng(0), look < 0, max(1, round(SHARE * look.size))
    shown = _choose(look, number)
    regions = [shown]
    for _ in range(N_DRAWS):
        moved = np.roll(shown, tuple(random.integers(look.shape)), axis=(0, 1))
        regions.append(_choose(random.random(look.shape) + moved - 2.0 * (shown | barred), number))
    return number, [measure(cover(image, box, region)) for region in regions]


def cover(image: Image.Image, box: Sequence[float], region: Region) -> Image.Image:
    """Give patches of a part of an image its mean colour."""
    pixels = np.array(image)
    rows, columns = (
        find_cells(n_pixels, box[1 - axis], box[3 - axis], region.shape[axis])
        for axis, n_pixels in enumerate(pixels.shape[:2])
    )
    pixels[region[np.ix_(rows, columns)]] = pixels.mean(axis=(0, 1)).round()
    return Image.fromarray(pixels)


def _choose(order: Float[np.ndarray, "row column"], number: int) -> Region:
    """Choose so many patches that come first in an order, the largest first."""
    region = np.zeros(order.size, dtype=bool)
    region[np.argsort(-order, axis=None, kind="stable")[:number]] = True
    return region.reshape(order.shape)
