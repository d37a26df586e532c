"""`attnviz sources`: which passages of a prompt an answer needs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from math import comb, sqrt
from typing import TYPE_CHECKING

import numpy as np

from attnviz import store
from attnviz.commands.sources.inputs import DECODERS
from attnviz.commands.sources.passages import Prompt, split_prompt
from attnviz.commands.sources.report import LEAST, PICTURE, Sources, sources_report
from attnviz.commands.sources.spec import SourcesSpec
from attnviz.document import Chat
from attnviz.errors import InvalidModel, InvalidText
from attnviz.inputs import Inputs
from attnviz.records import Tokens
from attnviz.running import Events, Progress
from attnviz.running.pictures import Pictures
from attnviz.table.intervals import SHARE, correct_p_values, p_value
from attnviz.table.numbers import Numbers

if TYPE_CHECKING:  # torch comes with it
    from attnviz.models.huggingface.answering import NextTokenModel
    from attnviz.models.huggingface.generating import Continuation
    from attnviz.models.tokenizer import Encoding


def sources(spec: SourcesSpec, inputs: Inputs) -> Events:
    """Let the model answer, knock each passage out, and draw what goes. Raises InvalidModel, InvalidText, TooLarge."""
    from attnviz.models.huggingface.answering import NextTokenModel

    pictures = Pictures.from_options(spec.figure, (PICTURE,), store.RECORD)
    yield Progress(0, 1, "passages", label="reading the prompt")
    model = inputs.model.open(inputs.corpus.texts)
    if not isinstance(model, NextTokenModel):
        raise InvalidModel(f"{inputs.model} writes no answer", hint=DECODERS)
    prompt = split_prompt([each.text for each in inputs.documents], spec.passages, spec.question)
    notices = dict.fromkeys((*inputs.corpus.notices, *inputs.model.find_notices([prompt.text])))
    found = yield from find_sources(spec, model, prompt, inputs.corpus.name)
    with store.locked(inputs.out):
        drawn = yield from pictures.write(sources_report(found, spec.figure.title), inputs.out, None)
    yield replace(drawn, rows=found.table.cells(), notices=(*notices, *drawn.notices))


def find_sources(
    spec: SourcesSpec, model: NextTokenModel, prompt: Prompt, name: str
) -> Generator[Progress, None, Sources]:
    """Let the model answer a prompt, and knock out one passage after another.

    Raises InvalidModel where the model does not attend as it is told, InvalidText for a prompt or an answer without
    tokens, TooLarge.
    """
    from attnviz.models.huggingface.generating import Continuation

    text, read = model.read_once(Chat.ask(prompt.text) if spec.model.chat else prompt.text)
    parts = _place_passages(prompt, text, read)
    ahead = Continuation(model, read.ids, start=parts[-1][-1] + 1)
    answer = _choose_answer(spec, model, ahead, read.ids)
    ahead.check(answer)
    whole, attended = ahead.score(answer), ahead.look(answer, parts)
    rng = np.random.default_rng(spec.model.seed)
    losses, random, p_values = list[np.ndarray](), np.full(len(parts), np.nan), np.ones(len(parts))
    for number, part in enumerate(parts):
        yield Progress(number, len(parts), "passages")
        losses.append(whole - ahead.score(answer, part))
        others = [place for other in parts if other is not part for place in other]
        if losses[-1].sum() >= LEAST and comb(len(others), len(part)) >= spec.draws:  # else several would be the same
            drawn = [rng.choice(others, len(part), replace=False) for _ in range(spec.draws)]
            lost = np.array([(whole - ahead.score(answer, each.tolist())).sum() for each in drawn])
            error = max(lost.std(ddof=1) * sqrt(1 + 1 / spec.draws), 1e-6)  # of their mean, and of one more
            random[number] = lost.max()
            p_values[number] = p_value((losses[-1].sum() - lost.mean()) / error, spec.draws - 1)
    # Whoever looks for the passages that an answer needs looks at all of them: one that is not tested counts as well.
    loss, corrected = np.sum(losses, axis=1), np.array(correct_p_values(p_values.tolist()))
    by_head = attended.reshape(-1, len(parts))  # what each gives each passage
    columns = {"passage": [*range(len(parts))], "tokens": [*map(len, parts)], "loss": loss, "random": random}
    columns |= {"p_value": np.where(np.isnan(random), np.nan, corrected), "attention": by_head.mean(axis=0)}
    columns |= {"needed": (corrected <= 1 - SHARE) & (loss >= random + LEAST), "read": by_head.max(axis=0)}
    places = zip(*np.unravel_index(by_head.argmax(axis=0), attended.shape[:2]), strict=True)
    columns["reader"] = [f"{layer}.{head}" for layer, head in places]
    without_all = ahead.score(answer, [place for part in parts for place in part])
    return Sources(
        texts=tuple(prompt.text[first:last] for first, last in prompt.passages),
        answer=model.loaded.tokenizer.decode_written(read.ids, answer, 0),
        log_probability=float(whole.sum()),
        table=Numbers.from_columns(columns, ("passage",)),
        losses=np.stack(losses, axis=1),
        together=float((whole - without_all).sum()),
        n_draws=spec.draws,
        provenance=model.describe_reading(prompt.text, name, read.n_tokens),
    )


def _place_passages(prompt: Prompt, text: str, read: Encoding) -> list[list[int]]:
    """Return which tokens each passage is, of the prompt as the model reads it: within a template, or cut off.

    The first token is in none: attention rests there that is needed nowhere. Raises InvalidText for a passage without
    tokens, and where none is left for the question.
    """
    n_read = len(read.ids) - sum(read.tokens.special)
    if n_read < read.n_tokens:
        problem = f"the prompt has {read.n_tokens:,} tokens, of which --max-tokens leaves {n_read:,}"
        raise InvalidText(problem, hint="The question stands at the end: leave --max-tokens out, or give less text.")
    begin = text.find(prompt.text)
    if begin < 0:
        raise InvalidText("the model's template changes the prompt", hint="Leave --chat out.")
    parts = [_find_places(read.tokens, begin + first, begin + last) for first, last in prompt.passages]
    for number, part in enumerate(parts):
        if not part:
            problem = f"passage {number} has no token beside the prompt's first, which is never knocked out"
            raise InvalidText(problem, hint="Give longer passages.")
    if parts[-1][-1] + 1 >= len(read.ids):
        raise InvalidText("the model reads no question behind the passages", hint="Give it with --question.")
    return parts


def _find_places(tokens: Tokens, first: int, last: int) -> list[int]:
    """Return which tokens, but for the first, cover a part of the text."""
    spans = enumerate(tokens.offsets)
    return [place for place, (begin, end) in spans if place and begin < end and begin < last and first < end]


def _choose_answer(
    spec: SourcesSpec, model: NextTokenModel, ahead: Continuation, ids: Sequence[int]
) -> tuple[int, ...]:
    """Return the tokens of the given answer, with a space before it where that is likelier, or what the model writes.

    Raises InvalidText where these are none.
    """
    if spec.answer is not None:
        spelled = [model.spell_answer(each) for each in (spec.answer, f" {spec.answer}")]
        return max(spelled, key=lambda answer: float(ahead.score(answer).sum()))
    written = ahead.write(spec.length)
    pieces = model.loaded.tokenizer.decode_written(ids, written, 0).pieces
    ends = (n for n, piece in enumerate(pieces) if "\n" in piece and "".join(pieces[:n]).strip())
    answer = written[: next(ends, len(pieces))]  # the first line that says something
    if not answer:
        raise InvalidText(f"{model.name} answers nothing", hint="Ask in another way, or give --answer.")
    return answer
