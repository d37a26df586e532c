"""`attnviz merge`: the parts of a survey or of a batch, put together as one run would have made them."""

from __future__ import annotations

from pathlib import Path

from attnviz.errors import InvalidOption, InvalidSource
from attnviz.inputs import is_file, is_folder
from attnviz.manifest import NAME
from attnviz.specs.survey import MergeSpec
from attnviz.workflows import Events
from attnviz.workflows.diff import SURVEY


def merge(spec: MergeSpec) -> Events:
    """Merge what the parts hold, surveys or batches, whatever their order.

    Raises InvalidOption for none, for parts of both kinds and where they do not belong together, InvalidSource for a
    folder that holds neither.
    """
    if not spec.parts:
        raise InvalidOption("no parts to merge", hint="Name the folders: attnviz merge part-1 part-2.")
    files = [_file(Path(part)) for part in spec.parts]
    manifests = [file for file in files if file.suffix == ".json"]
    if not manifests:
        from attnviz.workflows.survey import merge_parts

        return merge_parts(spec, files)
    if len(manifests) < len(files):
        other = next(file for file in files if file.suffix != ".json")
        raise InvalidOption(f"{manifests[0]} is of a batch and {other} of a survey", hint="Merge each kind apart.")
    from attnviz.workflows.batch_merge import merge_batches

    return merge_batches(spec, files)


def _file(path: Path) -> Path:
    """A file as it is; of a folder its manifest or its survey."""
    if not is_folder(path):
        return path
    found = [path / name for name in (NAME, SURVEY) if is_file(path / name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidSource(f"{path} holds a batch and a survey", hint=f"Name one: {found[0]} or {found[1]}.")
    raise InvalidSource(f"{path} holds no {NAME} and no {SURVEY}", hint="--shard writes one.")
