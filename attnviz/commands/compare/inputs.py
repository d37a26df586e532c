"""What `attnviz compare` reads and writes."""

from dataclasses import replace

from attnviz.commands.compare.spec import CompareSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.measures import choose_measures
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies

MAX_MODELS = 8


def compare_inputs(spec: CompareSpec) -> Inputs:
    """Read the models and the texts; without a choice the first of the sample.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    if not 1 <= len(spec.models) <= MAX_MODELS:
        found = f"{len(spec.models)} model{'' if len(spec.models) == 1 else 's'} to compare"
        raise InvalidOption(found, hint=f"Name 1 to {MAX_MODELS}, such as: attnviz compare single multi.")
    references = [find_model(replace(spec.model, model=name)).answering(Classifies) for name in spec.models]
    choose_measures(spec.measure)
    for reference in references:
        reference.check()
    return read_inputs(references, spec.text, every=spec.text.chosen, out=spec.figure.out)
