"""What `attnviz sources` reads."""

from attnviz.commands.sources.passages import split_prompt
from attnviz.commands.sources.spec import SourcesSpec
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.loading import find_model
from attnviz.models.protocols import Generates

DECODERS = "attnviz sources takes a decoder: --model smollm2, a folder, or a name on the hub."


def sources_inputs(spec: SourcesSpec) -> Inputs:
    """Read a decoder and a prompt. Raises InvalidOption, InvalidModel, InvalidSource, InvalidText."""
    if not spec.text.chosen and spec.text.inline_text is None:
        raise InvalidOption("no prompt", hint='Give a file of passages: attnviz sources notes.txt --question "…".')
    for name in ("question", "answer"):
        given = getattr(spec, name)
        if given is not None and not given.strip():
            raise InvalidOption(f"--{name} is empty", hint=f"Write it in quotes, or leave --{name} out.")
    reference = find_model(spec.model).answering()
    reference.check()
    try:
        reference.check(Generates)
    except (InvalidModel, InvalidOption) as error:  # whose hint is about another command
        raise InvalidModel(error.problem, hint=DECODERS) from error
    inputs = read_inputs([reference], spec.text, every=True, out=spec.figure.out)
    split_prompt([each.text for each in inputs.documents], spec.passages, spec.question)
    return inputs
