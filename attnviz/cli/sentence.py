"""A command line without a command: a sentence, a file or a model alone is meant to be seen, as one page.

Words that people try and that are no commands are answered by what works.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from attnviz.bounded import exists
from attnviz.errors import InvalidOption
from attnviz.registry import suggest_name

RECORDS = (".safetensors", ".npy", ".npz", ".pt")  # endings of what `render` draws
FORMATS = ("--html", "--png", "--svg", "--pdf")
ANSWERS = {
    "show": 'attnviz "the cat sat on the mat" draws and opens a page; attnviz render FILE draws a saved record.',
    "models": "--model takes single, multi:8, single-zh, multi-zh, random:4, minilm, smollm2, or a folder.",
    "version": "attnviz --version prints it.",
}
TRY = """Try one of these:
  attnviz "the film was not good but the acting saved the film"
  attnviz heatmap "the cat sat on the mat" --heads 8
  attnviz lesson "the acting saved the film" --open
attnviz --help lists all commands."""


def complete_line(arguments: Sequence[str], commands: Collection[str], of_program: Collection[str]) -> list[str]:
    """Return the line with the command that is meant before it, and formats as options of their own as `--format`.

    Raises InvalidOption for a word that is no command, where another one does what it says.
    """
    found = [word for each in arguments for word in (("--format", each[2:]) if each in FORMATS else (each,))]
    first = found[0]
    if first in commands or first in of_program:
        return found
    is_word = len(first.split()) == 1 and first.isascii() and first[0] != "-" and not {".", "/"} & {*first}
    if is_word and not exists(Path(first)):
        nearest = f"{suggest_name(first, list(commands))} A text of one word: attnviz heatmap {first}"
        raise InvalidOption(f"there is no command {first!r}", hint=ANSWERS.get(first, nearest))
    as_page = [] if "--format" in found else ["--format", "html"]
    command = "render" if first.endswith(RECORDS) else "heatmap"
    as_text = [f"--text={first}"] if first.startswith("-") and len(first.split()) > 1 else [first]  # "-5 degrees"
    return [command, *as_page, *([] if "--open" in found else ["--open"]), *as_text, *found[1:]]
