"""`attnviz merge`: the parts of a survey put together."""

from __future__ import annotations

from pathlib import Path

from attnviz import store
from attnviz.bounded import is_file, is_folder, list_folder
from attnviz.commands.survey.file import NAME, load_survey
from attnviz.commands.survey.spec import MergeSpec, check_top
from attnviz.commands.survey.survey import Survey, merge_surveys
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.running import Events


def merge(spec: MergeSpec) -> Events:
    """Merge the parts of a survey, whatever their order: `attnviz merge`.

    Raises InvalidOption for none, and where they do not belong together or lack texts, InvalidSource for a folder that
    holds none, InvalidRecord for a file that is none.
    """
    if not spec.parts:
        raise InvalidOption("no parts to merge", hint="Name the folders: attnviz merge part-1 part-2.")
    check_top(spec.top)
    whole = merge_surveys([load_survey(_find_file(Path(part))) for part in spec.parts])
    if not whole.is_whole:
        raise InvalidOption(_describe_missing(whole), hint="Survey the missing parts, and name all of them.")
    folder = store.check_output_folder(spec.figure.out)
    from attnviz.commands.survey.output import write_survey  # matplotlib comes with it: parts are refused without

    return store.run_locked(folder, write_survey(whole, spec, folder))


def _find_file(path: Path) -> Path:
    """Return a file as it is, and of a folder its survey. Raises InvalidSource where it holds none."""
    if not is_folder(path):
        return path
    if not is_file(path / NAME):
        list_folder(path, InvalidSource)
        raise InvalidSource(f"{path} holds no {NAME}", hint="attnviz survey --shard I/N writes one.")
    return path / NAME


def _describe_missing(part: Survey) -> str:
    done = part.summary.n_texts + len(part.skipped)
    if part.n_texts is None:
        return f"only {done:,} texts are there, and no part was finished"
    if done == part.n_texts:
        return "part 1, which knows what chance gives, is missing"
    return f"{part.n_texts - done:,} of {part.n_texts:,} texts are missing"
