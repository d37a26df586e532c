"""What `attnviz render` reads and writes."""

import filecmp
from pathlib import Path

from attnviz import store
from attnviz.bounded import exists, expand_path, is_file, is_folder, list_folder
from attnviz.commands.render.spec import RenderSpec
from attnviz.errors import InvalidOption, InvalidSource, refuse_several
from attnviz.inputs import Inputs
from attnviz.models.sizes import Work, check_memory
from attnviz.options import list_options, refuse_changed
from attnviz.running.drawing import Drawing, check_factored_room
from attnviz.specs import LOOKS
from attnviz.store.weights import find_kind

OF_RUN = (*LOOKS, "record", "lang", "table", "print", "json", "quiet")  # of whose numbers there are curves and a film
NAME_OPTIONS = ("tokens_file", "keys_file", "words", "grid", "image", "row", "array", "axes")


def render_inputs(spec: RenderSpec) -> Inputs:
    """Check one record, and that the folder holds no other, or a file of weights.

    Raises InvalidRecord, InvalidSource, TooLarge or InvalidOption.
    """
    drawing, path = Drawing.from_options(spec.figure), Path(spec.record)
    if is_file(path / store.RECORD):  # of a folder, as `attnviz diff` takes it
        path = path / store.RECORD
    if is_folder(path):
        parts = [each for each in list_folder(path, InvalidSource) if each.suffix == ".parquet"]
        others = {each.name for each in list_options(RenderSpec)}.difference(OF_RUN)
        refuse_changed(spec, others, "does nothing for a watched run")
        return Inputs(files={part.name: part for part in parts}, folder=store.check_output_folder(spec.figure.out))
    if find_kind(path) == "record":
        refuse_changed(spec, NAME_OPTIONS, "is of weights, and this is a record")
        (n_layers, n_heads, n_queries, n_keys), is_factored = store.read_record_shape(path)
        drawing.check_number(n_layers, n_heads)
        if is_factored:
            check_factored_room((n_layers * n_heads, n_queries, n_keys), path.stat().st_size, spec.max_memory)
        else:
            check_memory(Work(n_queries, n_keys, n_heads, n_layers), spec.max_memory)
        folder = store.check_output_folder(spec.figure.out)
        there = folder / store.RECORD
        if is_file(there) and not filecmp.cmp(there, path, shallow=False):
            raise InvalidOption(f"{folder} holds another record and its pictures", hint="Choose another --out.")
        return Inputs(files={"record": path}, folder=folder)
    refuse_several({"--words": spec.words, "--tokens-file": spec.tokens_file})
    refuse_several({"--grid": spec.grid, "--keys-file": spec.keys_file})
    if spec.grid is None and spec.image is not None:
        raise InvalidOption("--image lies under a grid", hint="Say which: --grid 28x28, rows and columns of patches.")
    files = {"weights": path}
    for what, name in (("tokens", spec.tokens_file), ("keys", spec.keys_file), ("image", spec.image)):
        if name is not None:
            files[what] = expand_path(name, InvalidSource)
            if not exists(files[what]):
                raise InvalidSource(f"no file {name}")
    return Inputs(files=files, folder=store.check_output_folder(spec.figure.out))
