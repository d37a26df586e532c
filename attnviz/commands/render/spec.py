"""The options of `attnviz render`."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import ARGUMENT, MODEL, TEXT, Option
from attnviz.specs import MAX_MEMORY, FigureOptions, PrintOptions


@dataclass(frozen=True, kw_only=True)
class RenderSpec:
    """Draw a saved record again, without the model, or weights that any other program has saved.

    Example: attnviz render weights.npy --words "the cat sat on the mat"
    """

    figure: FigureOptions = FigureOptions()
    printing: PrintOptions = PrintOptions()
    record: Annotated[
        str,
        Option("attention.safetensors, or weights as .npy, .npz, .pt, .safetensors, .json or .csv.", ARGUMENT, "FILE"),
    ]
    # None: named in the file, else by their positions; so are keys, where they are not the tokens
    tokens_file: Annotated[
        str | None,
        Option("Names of the tokens of weights: one a line, or words in a single line.", TEXT, "FILE", is_common=True),
    ] = None
    keys_file: Annotated[
        str | None, Option("Names of the keys, where they are of another text than the queries.", TEXT, "FILE")
    ] = None
    words: Annotated[str | None, Option("Names of the tokens, separated by blanks.", TEXT, "TEXT", is_common=True)] = (
        None
    )
    grid: Annotated[
        str | None, Option("Keys are patches of an image, in so many rows and columns: 28x28.", TEXT, "ROWSxCOLUMNS")
    ] = None
    image: Annotated[str | None, Option("The image that --grid lies over.", TEXT, "FILE")] = None
    row: Annotated[
        int | None, Option("Which text, from 0, if the weights are of several.", TEXT, "N", is_common=True)
    ] = None
    array: Annotated[
        str | None,
        Option("Which array, if the file has several.", MODEL, "NAME", is_common=True),
    ] = None
    axes: Annotated[
        str | None, Option("What the axes are, if it is not plain: text,layer,head,query,key.", MODEL, "NAMES")
    ] = None
    max_memory: Annotated[float, MAX_MEMORY] = 4.0
