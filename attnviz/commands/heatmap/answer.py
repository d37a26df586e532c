"""What a model answers to a text that is drawn, and what to the same without each word, and without each head."""

from collections.abc import Sequence

import numpy as np

from attnviz.display import escape_for_display
from attnviz.errors import InvalidOption, InvalidText
from attnviz.models.attribution import Attributable
from attnviz.models.protocols import AttentionModel
from attnviz.records import AttentionMaps
from attnviz.records.attribution import Question
from attnviz.report import TextAnswer, name_map
from attnviz.views.answers import is_clear, quote_answer


def ask_answer(
    model: AttentionModel, text: str, maps: AttentionMaps, heads: Sequence[tuple[int, int]]
) -> TextAnswer | None:
    """Ask for the answer to the text of a record without each word, and without each of some layers and heads.

    None where there is no one answer to these very words: the model has none or several numbers, it knows too few of
    them, it answers by another attention than is drawn, or only one word is there to be left out.
    """
    from attnviz.models.ablation import silence_heads  # torch has come with the model
    from attnviz.models.attribution.methods import leave_one_out

    if not isinstance(model, Attributable) or maps.keys.mostly_unknown:
        return None
    try:
        subject = model.subject(text, maps.provenance.text_name, Question())
        if subject.tokens != maps.keys:  # such as of two texts, or of words that are merged
            return None
        words = leave_one_out(subject).scores
    except (InvalidOption, InvalidText):
        return None
    target, projections = subject.target, model.list_projections()
    without = list[float]()
    for pair in heads if len(projections) == model.n_layers else ():
        with silence_heads(projections, [pair]):
            without.append(float(subject.values([np.ones(len(subject.ids), dtype=bool)])[0]))
    return TextAnswer(
        label=(quote_answer if "token" in target.form else escape_for_display)(target.name),
        against=target.against and escape_for_display(target.against),
        value=target.value,
        is_probability=target.score is None,
        is_clear=is_clear(target),
        words=tuple(words.tolist()),
        heads=dict(zip((name_map(*head) for head in heads), without, strict=False)),
    )
