"""What `attnviz explain` reads."""

import re

from attnviz.commands.explain.spec import ExplainSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_one_text
from attnviz.models.decomposition import Decomposable
from attnviz.models.loading import ModelReference, find_model
from attnviz.models.protocols import AttentionModel, Traceable
from attnviz.options import refuse_changed

PICTURES = ("explanation", "steps-*")  # what figures are called
OF_ANSWERS = ("answer", "against")
HEAD = re.compile(r"[0-9]+\.[0-9]+")


def explain_inputs(spec: ExplainSpec) -> Inputs:
    """Find one model and one text.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    reference = find_model(spec.model)
    if works_by_hand(spec, reference):
        reference.check(Traceable)
        refuse_changed(spec, (*OF_ANSWERS, "table"), f"is of an answer, and {reference} is worked out by hand")
        _check_head(spec)
    else:
        reference = check_answering(spec, reference)
    return read_one_text([reference], spec.text, spec.figure.out, "one is explained at a time")


def works_by_hand(spec: ExplainSpec, reference: ModelReference) -> bool:
    """Return whether one query is worked out: it is asked for, or the model has no answer."""
    return spec.by_hand or (reference.works_by_hand and not reference.has_answers)


def check_answering(spec: ExplainSpec, reference: ModelReference) -> ModelReference:
    """Check what can be without torch, and give the model with its answers, which one look does without.

    Raises InvalidOption, InvalidModel.
    """
    reference = reference.answering(Decomposable)
    reference.check(Decomposable if spec.head is None else AttentionModel)
    refuse_changed(spec, ("causal",), "is for --by-hand")
    if spec.head is None:
        refuse_changed(spec, ("query",), "asks for one look of a head: say which with --head 18.6, or --by-hand")
    else:
        refuse_changed(spec, OF_ANSWERS, "is of the answer, and --head asks for one look")
    _check_head(spec)
    return reference


def _check_head(spec: ExplainSpec) -> None:
    if spec.head is not None and not HEAD.fullmatch(spec.head):
        raise InvalidOption(f"--head {spec.head[:40]!r} does not name one head", hint="Write LAYER.HEAD, such as 18.6.")
