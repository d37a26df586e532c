"""`attnviz lesson`: one sentence as a page to learn from."""

import json
from importlib.resources import files

from attnviz import store
from attnviz.commands.lesson.content import describe_example, describe_sentence
from attnviz.commands.lesson.inputs import split_out
from attnviz.commands.lesson.spec import LessonSpec
from attnviz.inputs import Inputs
from attnviz.renderers.page.html import write_page
from attnviz.report import Column, Note, Report, Table
from attnviz.running import Events, Result
from attnviz.words import LANGUAGE_TAGS, list_phrases, phrase

ROOM = "attnviz.commands.lesson.page"
# What models of several heads gave on reviews, and of sequences to recall: of the models that come with attnviz and
# docs/studies/capacity.json; a test writes it. Some sequences are to be tried: what two models report of them with any
# of their heads off, [sequence, choice, letter]. Bit h of a choice says that head h is off.
MEASURED = files("attnviz.commands.lesson").joinpath("measured.json")
PARTS = ("page", "choose", "see", "off", "judge", "blur", "heads", "when")  # of the table of words
BY_HAND = "The same steps in text, of any head: attnviz explain --by-hand."


def lesson(spec: LessonSpec, inputs: Inputs) -> Events:
    """Work out everything that the page shows, and write it.

    Raises InvalidText for a sentence that is too long, ExecutionError where arithmetic and model do not agree.
    """
    language = spec.figure.lang
    found, notices = (describe_example(language), []) if spec.example else describe_sentence(inputs, language)
    content = {
        "language": language,
        "words": list_phrases(language, *PARTS),
        **found,
        **json.loads(MEASURED.read_bytes()),
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
