"""Files of weights as records, with names of tokens from a file or an option. torch comes with it."""

import json
import re
from collections.abc import Sequence
from math import ceil, prod

from attnviz.bounded import decode_json, expand_path
from attnviz.commands.render.spec import RenderSpec
from attnviz.display import format_count
from attnviz.errors import InvalidOption, InvalidSource, raising
from attnviz.models.attentions.attentions import make_maps
from attnviz.models.attentions.weights_file import COMMAND, WeightsRequest, read_weights
from attnviz.models.sizes import FLOAT32, Work, check_memory
from attnviz.records import AttentionMaps
from attnviz.records.grid import Grid
from attnviz.store.weights import FileArray
from attnviz.text.files import decode, read_content

Names = Sequence[str] | None


def read_maps(spec: RenderSpec) -> tuple[AttentionMaps, tuple[str, ...]]:
    """Make a record of a file of weights, and say how its names were read. Raises what either does."""
    tokens, of_tokens = read_token_names(spec.tokens_file, spec.words)
    names, of_keys = read_token_names(spec.keys_file)
    keys = names if spec.grid is None else parse_grid(spec.grid, spec.image)

    def check(chosen: FileArray) -> None:  # that the array, the record made of it and its pictures have room
        *n_layers, n_heads, n_queries, n_keys = (1, 1, 1, *chosen.shape)
        n_copies = 3 + ceil(chosen.item_size / FLOAT32)
        check_memory(Work(n_queries, n_keys, n_heads, prod(n_layers), n_copies=n_copies), spec.max_memory)

    asked = WeightsRequest(tokens, keys, spec.row, None, spec.array, spec.axes, COMMAND)
    weights = read_weights(spec.record, asked, check)
    unread = (f"{weights.name}: not read: {weights.unread}",) if weights.unread else ()
    return make_maps(weights, asked), (*of_tokens, *of_keys, *unread)


def parse_grid(sides: str, image: str | None) -> Grid:
    """Read rows and columns of patches as people write them. Raises InvalidOption, and as `Grid` does."""
    match = re.fullmatch(r"\s*([0-9]{1,4})\s*[x×,]\s*([0-9]{1,4})\s*", sides)
    if match is None:
        raise InvalidOption(f"--grid {sides[:40]!r} does not give rows and columns", hint="Write 28x28.")
    return Grid(int(match[1]), int(match[2]), None if image is None else expand_path(image, InvalidSource))


def read_token_names(file: str | None, words: str | None = None) -> tuple[Names, tuple[str, ...]]:
    """Return the names in a file or an option, or None, and how they were read.

    Lines are a name each; a single line is words separated by blanks; a .json holds a list. Raises InvalidSource.
    """
    if file is None:
        return (None, ()) if words is None else (words.split(), ())
    path = expand_path(file, InvalidSource)
    text = decode(read_content(path), file, hint="Save the file as UTF-8.")
    if path.suffix.lower() == ".json":
        with raising(InvalidSource, f"{file} is not a list of texts", 'Such as ["the", "cat"].'):
            names, read_as = decode_json(tuple[str, ...], json.loads(text), file), "of its list"
    else:
        names = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        read_as = "one a line"
        if len(names) == 1:
            names, read_as = text.split(), "separated by blanks in its only line"
    return names, (f"{file}: {format_count(len(names), 'tokens')}, {read_as}",)
