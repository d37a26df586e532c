"""`attnviz lesson`: one sentence as a page to learn from."""

from typing import Any, cast

from attnviz import store
from attnviz.commands.lesson.content import (
    choose_layers,
    describe_example,
    describe_measured,
    describe_model,
    read_tokens,
)
from attnviz.commands.lesson.inputs import split_out
from attnviz.commands.lesson.spec import LessonSpec
from attnviz.display import escape_for_display
from attnviz.inputs import Inputs
from attnviz.models.protocols import Traceable
from attnviz.renderers.page.html import write_page
from attnviz.report import Column, Note, Report, Table
from attnviz.running import Events, Result
from attnviz.views import captions
from attnviz.words import LANGUAGE_TAGS, Language, list_phrases, phrase

ROOM = "attnviz.commands.lesson.page"
PARTS = ("page", "choose", "see", "off", "judge", "blur", "heads", "when")  # of the table of words
MAX_LENGTH = 500  # characters of the sentence, as it stands above the page
MAX_LETTERS = 24  # of a token
BY_HAND = "The same steps in text, of any head: attnviz explain --by-hand."


def lesson(spec: LessonSpec, inputs: Inputs) -> Events:
    """Work out everything that the page shows, and write it.

    Raises InvalidText for a sentence that is too long, ExecutionError where arithmetic and model do not agree.
    """
    language = spec.figure.lang
    found, notices = (describe_example(language), []) if spec.example else _describe_sentence(inputs, language)
    content = {
        "language": language,
        "words": list_phrases(language, *PARTS),
        **found,
        **describe_measured(),
    }
    _, name = split_out(spec.figure.out)
    strings = {
        **{name.replace(".", "_"): text for name, text in content["words"].items()},
        "language": LANGUAGE_TAGS[language],
        "noscript": phrase("ui.noscript", language),
        "text": content["text"],
    }
    page = write_page("lesson.html", content, ("lesson.js",), ("base.css", "lesson.css"), strings, ROOM)
    with store.locked(inputs.out):
        store.write(inputs.out / name, page)
    columns = (Column("model"), Column("layers"), Column("heads"), Column("numbers for each token"))
    rows = tuple((m["name"], m["nLayers"], m["nHeads"], m["dModel"]) for m in content["models"])
    tables = (Table("models", "What the page shows", "facts", columns, rows), Note(BY_HAND))
    document = Report(f"a lesson on {content['text']}", f"page {inputs.out / name}", tables, data={"models": rows})
    yield Result(files=(inputs.out / name,), notices=tuple(notices), document=document)


def _describe_sentence(inputs: Inputs, language: Language) -> tuple[dict[str, Any], list[str]]:
    """Return what a page holds of one sentence in the models, and what is to be said about it."""
    (document,) = inputs.documents
    models = [cast(Traceable, reference.open(inputs.corpus.texts)) for reference in inputs.models]
    tokens = read_tokens(models[0], document)
    notices = [*inputs.corpus.notices, *(note.text for note in captions.describe_unknown(tokens, "tokens"))]
    if len(models) > 1 and read_tokens(models[1], document).pieces != tokens.pieces:
        notices.append(f"{models[1].name} cuts the text into other tokens, and is left out")
        del models[1:]
    layers = choose_layers(models, len(tokens))
    for model, chosen in zip(models, layers, strict=True):
        if len(chosen) < model.n_layers:
            shown = f"the last {len(chosen)} of {model.n_layers} layers of {model.name}"
            notices.append(f"the page shows {shown}, and has no room for more")
    n_tokens = len(tokens) - sum(tokens.special)
    content = {
        "text": escape_for_display(document.text, MAX_LENGTH),
        "tokens": [
            {"piece": escape_for_display(piece, MAX_LETTERS), "special": special}
            for piece, special in zip(tokens.pieces, tokens.special, strict=True)
        ],
        "nUnknown": sum(tokens.unknown),
        "nTokens": n_tokens,
        "mostlyUnknown": tokens.mostly_unknown,
        "cut": models[0].encode(document.text).n_tokens - n_tokens,
        "models": [
            describe_model(model, document, chosen, language) for model, chosen in zip(models, layers, strict=True)
        ],
    }
    return content, notices
