"""The options of `attnviz render`."""

from dataclasses import MISSING, dataclass

from attnviz.options import ARGUMENT, MODEL, TEXT, common, option
from attnviz.specs import MAX_MEMORY, FigureOptions, PrintOptions


@dataclass(frozen=True, kw_only=True)
class RenderSpec:
    """Draw a saved record again, without the model, or weights that any other program has saved.

    Example: attnviz render weights.npy --words "the cat sat on the mat"
    """

    figure: FigureOptions = FigureOptions()
    printing: PrintOptions = PrintOptions()
    record: str = option(
        MISSING, "A record, a watched run, or weights: .npy, .npz, .pt, .safetensors, .json, .csv.", ARGUMENT, "FILE"
    )
    # None: named in the file, else by their positions; so are keys, where they are not the tokens
    tokens_file: str | None = common(
        None, "Names of the tokens of weights: one a line, or words in a single line.", TEXT, "FILE"
    )
    keys_file: str | None = option(
        None, "Names of the keys, where they are of another text than the queries.", TEXT, "FILE"
    )
    words: str | None = common(None, "Names of the tokens, separated by blanks.", TEXT, "TEXT")
    grid: str | None = option(
        None, "Keys are patches of an image, in so many rows and columns: 28x28.", TEXT, "ROWSxCOLUMNS"
    )
    image: str | None = option(None, "The image that --grid lies over.", TEXT, "FILE")
    row: int | None = common(None, "Which text, from 0, if the weights are of several.", TEXT, "N")
    array: str | None = common(None, "Which array, if the file has several.", MODEL, "NAME")
    axes: str | None = option(None, "What the axes are, if it is not plain: text,layer,head,query,key.", MODEL, "NAMES")
    max_memory: float = MAX_MEMORY.field(4.0)
