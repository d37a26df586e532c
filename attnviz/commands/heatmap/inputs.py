"""What `attnviz heatmap` reads and writes."""

import shlex
from pathlib import Path

from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.loading import find_model
from attnviz.models.protocols import AttentionModel, Generates
from attnviz.registry import load
from attnviz.store import check_output_folder
from attnviz.text import Corpus, Document, resolve_argument
from attnviz.text.files import is_image


def heatmap_inputs(spec: HeatmapSpec) -> Inputs:
    """Find one model and the texts, or images, to draw.

    Raises InvalidOption, InvalidModel, InvalidSource, InvalidSelection or TooLarge.
    """
    reference = find_model(spec.model, spec.pretrained)
    reference.check(AttentionModel if spec.pretrained.generate is None else Generates)
    files = {each: Path(each) for each in resolve_argument(spec.text).text_file if is_image(each)}
    if files and spec.question is not None and is_image(spec.question) and Path(spec.question).is_file():
        named = " ".join(f"--text-file {shlex.quote(each)}" for each in (*files, spec.question))
        raise InvalidOption(f"{spec.question} stands where a question does", hint=f"Several images: {named}.")
    if files and reference.reads_images:
        photo = load("attnviz.images:Photo")  # numpy comes with it
        photos = [photo.open(each, spec.question or "") for each in files.values()]
        documents = [Document(each, str(each), f"image-{place}") for place, each in enumerate(photos)]
        folder = check_output_folder(spec.figure.out)
        return Inputs((reference,), Corpus(documents[0].name, documents), documents, files=files, folder=folder)
    if spec.question is not None:
        problem = f"unexpected: {spec.question[:60]}. A text stands in quotes, and a question follows an image"
        raise InvalidOption(problem, hint="--model takes the folder of a model that reads images and words.")
    return read_inputs([reference], spec.text, every=spec.text.inline, out=spec.figure.out)
