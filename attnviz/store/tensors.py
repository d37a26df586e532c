"""Headers of safetensors files, whoever wrote them: what they hold, before any of it is read."""

import math
from pathlib import Path
from typing import NamedTuple

from attnviz.bounded import check_file_size
from attnviz.errors import InputError, raising


class Header(NamedTuple):
    """The shapes of tensors by name, what is said of them, and the bytes of the file."""

    shapes: dict[str, tuple[int, ...]]
    metadata: dict[str, str]
    n_bytes: int

    @property
    def n_numbers(self) -> int:
        """Count the numbers in all tensors."""
        return sum(map(math.prod, self.shapes.values()))


def read_header(path: Path, invalid: type[InputError], hint: str = "") -> Header:
    """Read the header of a safetensors file. Raises `invalid` where the library refuses it.

    It does so unless each tensor has the bytes that its shape says and they end where the file does.
    """
    n_bytes = check_file_size(path, math.inf, invalid, hint)
    from safetensors import SafetensorError, safe_open  # what is refused before is answered at once

    told = OSError, ValueError, SafetensorError
    with raising(invalid, f"{path} is not a whole safetensors file:", hint, told), safe_open(path, "numpy") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - no dict
        return Header(shapes, file.metadata() or {}, n_bytes)
