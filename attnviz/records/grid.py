"""Patches of an image in rows and columns, among keys. Knows by name only whose code it is that reads images."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import Any

from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.registry import load
from attnviz.shapes import Grey

READER = "attnviz.images:grey_pixels"
MAX_SIDE = 256  # patches in a row or column: more would be pixels
MAX_PIXELS = 2**10  # of a side of what is kept of an image
MAX_LEADING = 16  # tokens before the patches that need no name: a marker, and registers
BEFORE_PATCHES = f"The last keys are patches; up to {MAX_LEADING} tokens may stand before them."


@dataclass(frozen=True, eq=False)
class Grid:
    """Keys that are patches of an image, row by row: the last ones, or those at places of their own.

    Args:
        n_rows: of patches, 1 to 256.
        n_columns: likewise.
        image: a PNG, JPEG, GIF, WebP or BMP file, or an image of Pillow: what the patches were cut from. All of it is
            stretched over the grid, in grey; where a model saw a part only, give that part.
        leading: names of the tokens before the patches, such as ("[CLS]",). Without them they are "token 0" and so on.
        at: the places of the patches among the keys, row by row, where they are not the last ones in that order.

    Raises:
        InvalidOption: for a grid of no patches, or of more than 256 either way, and for another number of places.
        InvalidSource: for a file that is no image, or cannot be read.
        TooLarge: for an image of more than 16 million pixels.

    Examples:
        >>> from attnviz import Grid
        >>> Grid(2, 2, leading=["[CLS]"]).names(5)  # row,column
        ('[CLS]', '0,0', '0,1', '1,0', '1,1')
    """

    n_rows: int
    n_columns: int
    image: InitVar[str | Path | Any] = None
    leading: Sequence[str] = ()
    at: Sequence[int] = ()
    pixels: Grey | None = field(default=None, init=False, repr=False)  # of the image, at the size that a picture needs

    def __post_init__(self, image: str | Path | Any) -> None:
        sides = (self.n_rows, self.n_columns)
        if not all(type(side) is int and 1 <= side <= MAX_SIDE for side in sides):
            problem = f"a grid of {self.n_rows} × {self.n_columns} patches is out of range"
            raise InvalidOption(problem, hint=f"Choose 1 to {MAX_SIDE} rows and columns.")
        if isinstance(self.leading, str):
            raise InvalidOption(f"leading={self.leading!r} is not a list", hint='Write leading=["[CLS]"].')
        object.__setattr__(self, "leading", tuple(map(str, self.leading)))
        object.__setattr__(self, "at", tuple(map(int, self.at)))
        if self.at and (len({*self.at}) != self.n_patches or len(self.at) != self.n_patches or min(self.at) < 0):
            problem = f"{len({*self.at})} places for {self.n_rows} × {self.n_columns} patches"
            raise InvalidOption(problem, hint="Give the place of each among the keys, from 0, row by row.")
        if image is not None:
            object.__setattr__(self, "pixels", load(READER)(image, *sides))

    def over(self, pixels: Any) -> "Grid":
        """Return the same over an image's grey pixels, as `pixels` are. Raises InvalidRecord for what are none."""
        if pixels is not None and not (pixels.ndim == 2 and all(0 < side <= MAX_PIXELS for side in pixels.shape)):
            raise InvalidRecord(f"an image is not [height, width], of at most {MAX_PIXELS:,} pixels either way")
        grid = replace(self)
        object.__setattr__(grid, "pixels", pixels)
        return grid

    @property
    def n_patches(self) -> int:
        """Count the keys of the image."""
        return self.n_rows * self.n_columns

    def fits(self, n_keys: int) -> bool:
        """Return whether so many keys are the patches and the tokens before them, or hold the patches' places."""
        if self.at:
            return max(self.at) < n_keys
        n_leading = n_keys - self.n_patches
        return n_leading == len(self.leading) if self.leading else 0 <= n_leading <= MAX_LEADING

    def find_places(self, n_keys: int) -> tuple[int, ...]:
        """Return where among so many keys the patches are, row by row."""
        return tuple(self.at) or tuple(range(n_keys - self.n_patches, n_keys))

    def names(self, n_keys: int) -> tuple[str, ...]:
        """Name so many keys: the patches "row,column", and what is beside them. Raises InvalidRecord otherwise."""
        if not self.fits(n_keys):
            before = f" after {', '.join(self.leading)}" if self.leading else ""
            problem = f"{self.n_rows} × {self.n_columns} patches{before} do not fit {n_keys} keys"
            raise InvalidRecord(problem, hint=BEFORE_PATCHES)
        called = dict(enumerate(self.leading))
        for number, place in enumerate(self.find_places(n_keys)):
            called[place] = "{},{}".format(*divmod(number, self.n_columns))
        return tuple(called.get(place, f"token {place}") for place in range(n_keys))
