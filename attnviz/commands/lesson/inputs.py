"""What `attnviz lesson` reads and writes."""

from dataclasses import replace
from pathlib import Path

from attnviz import store
from attnviz.commands.lesson.spec import NAME, OF_PAGE, LessonSpec
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.inputs import Inputs, read_one_text
from attnviz.models.loading import find_model
from attnviz.models.protocols import Traceable
from attnviz.options import find_changed

SENTENCE = 'attnviz lesson "the acting saved the film"'
KINDS = "A lesson takes single, multi:8, random:4 and such, or a folder that attnviz train wrote."
SUFFIX = ".html"
OF_EXAMPLE = ("example", *OF_PAGE)


def lesson_inputs(spec: LessonSpec) -> Inputs:
    """Find one sentence and one model, or two that are shown side by side; nothing for the example.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    folder, _ = split_out(spec.figure.out)
    if spec.example:
        if others := [name.replace("_", " ") for name in find_changed(spec) if name not in OF_EXAMPLE]:
            found = f"--example has a text and numbers of its own, and takes no {others[0]}"
            raise InvalidOption(found, hint="Leave one out.")
        return Inputs(folder=store.check_output_folder(folder))
    if not (spec.text.chosen or spec.text.text_file):
        raise InvalidOption("no sentence to make a lesson of", hint=f"Give one, as in {SENTENCE}.")
    beside, chosen = spec.beside, [spec.model]
    if beside is None and spec.model.heads != 1:
        beside = {"multi": "single", "multi-zh": "single-zh"}.get(spec.model.model.partition(":")[0])
    if beside is not None:  # of the same options but for its heads
        chosen.append(replace(spec.model, model=beside, heads=None))
    references = [find_model(options) for options in chosen]
    for reference in references:
        if not reference.works_by_hand:
            raise InvalidModel(f"{reference} cannot be worked out by hand", hint=KINDS)
        reference.check(Traceable)
    return read_one_text(references, spec.text, folder, "a lesson is of one sentence")


def split_out(out: str) -> tuple[str, str]:
    """Return the folder and the name of the page that `--out` asks for."""
    path = Path(out)
    return (str(path.parent), path.name) if path.suffix.lower() == SUFFIX else (out, NAME)
