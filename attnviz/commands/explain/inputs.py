"""What `attnviz explain` reads."""

from attnviz.commands.explain.spec import ExplainSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.decomposition import Decomposable
from attnviz.models.loading import ModelReference, find_model
from attnviz.models.protocols import AttentionModel, Traceable
from attnviz.options import find_changed
from attnviz.selection import select_numbers

PICTURES = ("explanation", "steps-*")  # what figures are called
OF_ANSWERS = ("answer", "against")
OF_BUILT_IN = ("layer", "causal", "show_padding")


def explain_inputs(spec: ExplainSpec) -> Inputs:
    """Find one model and one text.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    reference = find_model(spec.model)
    if works_by_hand(spec, reference):
        reference.check(Traceable)
        _refuse(spec, (*OF_ANSWERS, "table"), f"is of an answer, and {reference} is worked out by hand")
        if reference.n_layers is not None and reference.n_heads is not None:
            select_numbers((str(spec.layer or 0),), reference.n_layers, "layer")
            select_numbers(spec.head, reference.n_heads, "head")
    else:
        reference = check_answering(spec, reference)
    inputs = read_inputs([reference], spec.text, every=spec.text.inline, out=spec.figure.out)
    if len(inputs.documents) != 1:
        found = f"{len(inputs.documents)} texts, where one is explained at a time"
        raise InvalidOption(found, hint="--index chooses one.")
    return inputs


def works_by_hand(spec: ExplainSpec, reference: ModelReference) -> bool:
    """Return whether one query is worked out: it is asked for, the model has no answer, or an option asks for it."""
    if spec.by_hand or not reference.works_by_hand or not reference.has_answers:
        return spec.by_hand or reference.works_by_hand
    changed = set(find_changed(spec))
    if spec.head:
        return "." not in ",".join(spec.head)
    return bool(changed & {"query", *OF_BUILT_IN}) and not changed & set(OF_ANSWERS)


def check_answering(spec: ExplainSpec, reference: ModelReference) -> ModelReference:
    """Check what can be without torch, and give the model with its answers, which one look does without.

    Raises InvalidOption, InvalidModel.
    """
    reference = reference.answering(Decomposable)
    reference.check(AttentionModel if spec.head else Decomposable)
    _refuse(spec, OF_BUILT_IN, "is for built-in models, which are worked out by hand")
    parse_head(spec)
    return reference


def parse_head(spec: ExplainSpec) -> tuple[int, int] | None:
    """Read the layer and the head of one look; None: the answer is explained. Raises InvalidOption."""
    if not spec.head:
        _refuse(spec, ("query",), "asks for one look of a head: say which with --head 18.6")
        return None
    written = ",".join(spec.head)
    layer, _, head = written.partition(".")
    if not (layer.isdecimal() and head.isdecimal()):
        raise InvalidOption(f"--head {written[:40]!r} does not name one head", hint="Write LAYER.HEAD, such as 18.6.")
    _refuse(spec, OF_ANSWERS, "is of the answer, and --head asks for one look")
    return int(layer), int(head)


def _refuse(spec: ExplainSpec, names: tuple[str, ...], why: str) -> None:
    for name in find_changed(spec):
        if name in names:
            raise InvalidOption(f"--{name.replace('_', '-')} {why}", hint="Leave it out.")
