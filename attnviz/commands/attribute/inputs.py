"""What `attnviz attribute` reads and writes."""

from attnviz.commands.attribute.spec import AttributeSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.attribution import METHODS, Attributable
from attnviz.models.loading import find_model
from attnviz.registry import find

MAX_DRAWN = 100  # texts
ALL = "all"


def attribute_inputs(spec: AttributeSpec) -> Inputs:
    """Read one model that answers, and the texts.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    methods_of(spec.method)
    reference = find_model(spec.model).answering()
    reference.check(Attributable)
    inputs = read_inputs([reference], spec.text, every=spec.text.inline or spec.card, out=spec.figure.out)
    if not spec.card and len(inputs.documents) > MAX_DRAWN:
        found = f"{len(inputs.documents):,} texts, at most {MAX_DRAWN} are drawn"
        raise InvalidOption(found, hint="Choose with --index.")
    return inputs


def methods_of(names: str) -> list[str]:
    """Parse the names of methods, "all" for all of them. Raises InvalidOption for an unknown one."""
    if names.strip() == ALL:
        return [method.name for method in METHODS]
    return list(dict.fromkeys(find(METHODS, name.strip(), "method").name for name in names.split(",")))
