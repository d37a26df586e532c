"""Parts of an image covered, to see what a model's answer loses with them: a look alone is no reason.

An answer may lose as much with any other part. So as many patches are covered elsewhere, a number of times: a region of
the same form that lies at a random place, in which patches that would fall on the tested region are replaced by others
at random. What is covered gets the mean colour of the image, in the image itself: what makes it ready for the model
sees no difference.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float
from PIL import Image

from attnviz.models.locating import find_cells

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
