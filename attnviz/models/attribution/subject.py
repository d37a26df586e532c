"""One text, one model and one answer of it, and what a method says of them. Knows torch; no kind of model, no files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, nn

from attnviz.display import escape_for_display, list_first
from attnviz.errors import AttnvizError, InvalidModel, InvalidOption
from attnviz.models.attribution import METHODS
from attnviz.models.attribution.operators import WordInputs
from attnviz.models.device import enough_memory
from attnviz.models.predicting import batch_by_length, check_finite, read_logits
from attnviz.records import Provenance, Tokens
from attnviz.records.answers import AnswerInfo, AnswerKind
from attnviz.records.attribution import AnswerForm, Attribution, MethodScores, Question, Target
from attnviz.registry import find, load, suggest_name

MAX_NAMED = 5  # answers in a message
AT_ONCE = 2**14  # tokens of a batch
ANY_MODEL = "Choose --method leave-one-out, which asks nothing of a model."
Logits = Float[Tensor, "text answer"]


@dataclass(frozen=True, eq=False)
class Answering:
    """A model that answers, as far as explaining it needs: from ids of texts of one length to logits.

    `n_markers` ids stand before a text and stay when all of it is deleted.
    """

    module: nn.Module
    words: Tensor  # the vectors of the vocabulary, by identity
    logits: Callable[[Int[Tensor, "text token"]], Logits]
    answers: AnswerInfo | None = None  # None: they are tokens
    temperature: float = 1.0  # that divides logits before softmax
    form: AnswerForm = "token"  # "masked token": it stands in place of a mask, and not behind the text

    def values(self, batch: Int[Tensor, "text token"]) -> Float64[np.ndarray, "text answer"]:
        """Return what the logits say: probabilities or numbers."""
        return read_logits(self.compute_logits(batch) / self.temperature, self.kind)

    @property
    def kind(self) -> AnswerKind:
        """Return the kind of the answer; a next token is a label, one of several."""
        return "label" if self.answers is None else self.answers.kind

    def compute_logits(self, batch: Int[Tensor, "text token"]) -> Logits:
        """Compute the logits of a pass that nothing is learned from."""
        with torch.inference_mode():
            return self.logits(batch.to(self.words.device))


@dataclass(frozen=True, eq=False)
class Subject:
    """What is explained. `against`: the answer whose logit is subtracted, None for none.

    `rival` is `against`; where none is subtracted it is the most probable other answer, of several one of which holds.
    """

    answering: Answering
    ids: tuple[int, ...]
    tokens: Tokens
    target: Target
    answer: int
    against: int | None
    provenance: Provenance
    seed: int = 0
    rival: int | None = None

    @property
    def batch(self) -> Int[Tensor, "1 token"]:
        """Return the token ids of the text as a batch of one."""
        return torch.tensor([self.ids], device=self.answering.words.device)

    def run(self, watching: WordInputs) -> Float[Tensor, "1"]:
        """Return the logit that is explained, of a pass over the text that `watching` sees; no parameter learns."""
        self.answering.module.requires_grad_(False)
        with enough_memory(), torch.enable_grad(), watching:
            logits = self.answering.logits(self.batch)
            found = logits[:, self.answer]
            return found if self.against is None else found - logits[:, self.against]

    def values(self, kept: Sequence[Bool[np.ndarray, " token"]]) -> Float64[np.ndarray, " part"]:
        """Compute the answer's probability, or the number that it is, for each part of the text that is kept.

        Parts of one length are read together.
        """
        ids, found = np.array(self.ids), np.empty(len(kept))
        parts = [ids[keep] for keep in kept]
        for places in batch_by_length(list(map(len, parts)), len(parts), AT_ONCE, alike=True):
            batch = torch.from_numpy(np.stack([parts[place] for place in places]))
            with enough_memory():
                found[places] = self.answering.values(batch)[:, self.answer]
        return found


def attribute(subject: Subject, method: str) -> Attribution:
    """Score tokens by a method of this name. Raises InvalidOption for an unknown name, InvalidModel where a method
    that adds up does not, with what in the model is to blame.
    """
    found: MethodScores = load(find(METHODS, method, "method"))(subject)
    try:
        return Attribution(
            method=method, tokens=subject.tokens, target=subject.target, provenance=subject.provenance, **vars(found)
        )
    except AttnvizError as error:
        blamed = f"; not linear even when held: {', '.join(found.not_held[:4])}" if found.not_held else ""
        raise InvalidModel(f"{error}{blamed}", hint=ANY_MODEL) from error


def make_subject(
    answering: Answering,
    read: tuple[tuple[int, ...], Tokens, Provenance],
    question: Question,
    find: Callable[[str, str], int],
    name: Callable[[int], str],
) -> Subject:
    """Choose an answer as the subject, by what is asked for, else the most probable; of two labels against the other.

    `read` are the ids of a text, its tokens and where it comes from; `find` finds an answer that an option names, and
    `name` calls it. Raises InvalidOption as `find` does, and where an answer is to be held against itself.
    """
    ids, tokens, provenance = read
    logits = answering.compute_logits(torch.tensor([ids])).cpu().double()
    values = read_logits(logits / answering.temperature, answering.kind)[0]
    check_finite(values[None])
    answer = int(logits.argmax()) if question.target is None else find(question.target, question.option)
    if answering.kind == "score":
        target = Target(name(answer), score=float(values[answer]), form="score")
        return Subject(answering, ids, tokens, target, answer, None, provenance, question.seed)
    rival = None
    if answering.kind == "label" and len(values) > 1:
        rival = next(each for each in logits[0].topk(2).indices.tolist() if each != answer)
    against = rival if len(values) == 2 else None
    if question.against is not None:
        rival = against = find(question.against, "against")
    if against == answer:
        said = f"--against {question.against!r} is the {question.option} itself"
        raise InvalidOption(said, hint="Choose another, or none.")
    target = Target(
        name(answer),
        "" if against is None else name(against),
        float(values[answer]),
        rival=None if rival is None else (name(rival), float(values[rival])),
        form=answering.form,
    )
    return Subject(answering, ids, tokens, target, answer, against, provenance, question.seed, rival)


def make_labelled_subject(
    answering: Answering, read: tuple[tuple[int, ...], Tokens, Provenance], answers: AnswerInfo, question: Question
) -> Subject:
    """Choose a label or number, by its name or place: see `make_subject`.

    Raises InvalidOption for one that the model does not have, and where several numbers leave it open which is meant.
    """
    if answers.kind == "score":
        model = read[2].model
        if question.against is not None:
            problem = f"--against {question.against[:60]!r} is for labels, and {model} answers with a number"
            raise InvalidOption(problem, hint="Leave it out: a number is explained against 0.")
        if question.target is None and len(answers.labels) > 1:
            hint = f"Choose one with --{question.option}: {list_first(answers.labels, MAX_NAMED, escape_for_display)}."
            raise InvalidOption(f"{model} answers with {len(answers.labels)} numbers", hint=hint)
    answering = replace(answering, answers=answers, form=answers.kind)
    return make_subject(answering, read, question, partial(_find_answer, answers), answers.labels.__getitem__)


def _find_answer(answers: AnswerInfo, name: str, option: str) -> int:
    labels = answers.labels
    if name in labels:
        return list(labels).index(name)
    if name.isdecimal() and int(name) < len(labels):
        return int(name)
    noun = "number" if answers.kind == "score" else "label"
    raise InvalidOption(f"--{option} {name[:60]!r} is not a {noun} of this model", hint=suggest_name(name, labels))
