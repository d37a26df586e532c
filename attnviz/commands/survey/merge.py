"""`attnviz merge`: the parts of a survey put together."""

from pathlib import Path

from attnviz import store
from attnviz.commands.survey.files import check_parts, find_known, load_files
from attnviz.commands.survey.spec import MergeSpec
from attnviz.errors import InvalidOption
from attnviz.running import Events


def merge(spec: MergeSpec) -> Events:
    """Put the parts of a survey into one folder, whatever their order: `attnviz merge`.

    Raises InvalidOption for none, and where they do not belong together or lack texts, InvalidRecord for a folder that
    holds none.
    """
    if not spec.parts:
        raise InvalidOption("no parts to merge", hint="Name the folders: attnviz merge part-1 part-2.")
    parts = [load_files(Path(part)) for part in spec.parts]
    folder = store.check_output_folder(spec.figure.out)
    check_parts(parts)
    if any(part.folder.resolve() == folder.resolve() for part in parts):
        raise InvalidOption(f"{folder} is one of the parts", hint="Give another --out.")
    from attnviz.commands.survey.report import write_survey  # matplotlib comes with it: parts are refused without

    with store.locked(folder):
        empty = find_known(folder, parts[0].info, is_fresh=True)
        facts = next(part.facts for part in parts if part.facts is not None)
        yield from write_survey(empty.add(parts, facts), spec)
