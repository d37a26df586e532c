"""`attnviz heatmap`: from texts to pictures of who attends to what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz import store
from attnviz.errors import BadOption
from attnviz.models.names import resolve
from attnviz.selection import numbers
from attnviz.specs.heatmap import HeatmapSpec
from attnviz.specs.model import ModelOptions, PretrainedOptions
from attnviz.specs.text import TextOptions
from attnviz.text.document import Corpus
from attnviz.workflows.keeping import attender_of, corpus_of, files_of, pretrained_of

if TYPE_CHECKING:
    from attnviz.workflows.drawing import Drawn, Follow

TRAINED = "Trained are single, multi:2, multi:4 and multi:8, without --d-model, --layers, --vocab or --tokenizer"


def heatmap(spec: HeatmapSpec, follow: Follow | None = None) -> Iterator[Drawn]:
    """Read, attend and draw, one text after the other. Everything that can be refused at once is refused first."""
    name = resolve(spec.model)
    if name.kind == "pretrained":
        files_of(name, spec.model.max_memory)
    else:
        _check_own(spec.model, spec.pretrained)
    if name.known_sizes:
        numbers(spec.figure.layer, name.n_layers, "layer")
        numbers(spec.figure.head, name.n_heads, "head")
    folder = store.output_folder(spec.figure.out)
    corpus = corpus_of(spec.text)
    chosen = _chosen(spec.text, corpus)
    return _drawn(spec, folder, corpus, chosen, follow)


def _check_own(model: ModelOptions, pretrained: PretrainedOptions) -> None:
    """Raises BadOption for what models of ours do not have."""
    for field in fields(PretrainedOptions):
        if getattr(pretrained, field.name) is not None:
            option = f"--{field.name.replace('_', '-')}"
            raise BadOption(
                f"{option} is for pretrained models of others", hint=f"{model.model} reads one text. Leave it out."
            )


def _drawn(
    spec: HeatmapSpec, out: Path, corpus: Corpus, chosen: tuple[int, ...], follow: Follow | None
) -> Iterator[Drawn]:
    # Only now, because torch and matplotlib come with them and take seconds.
    from attnviz.workflows.drawing import Drawing, unfollowed

    drawing = Drawing.of(spec.figure)
    name = resolve(spec.model)
    attender = (
        pretrained_of(name, spec.model, spec.pretrained)
        if name.kind == "pretrained"
        else attender_of(spec.model, corpus)
    )
    drawing.check_number(attender.n_layers, attender.n_heads)
    for index in chosen:  # a text that cannot be drawn is refused before the first picture
        attender.encode(corpus.documents[index].text)
    with store.locked(out):
        for count, index in enumerate(chosen):
            document = corpus.documents[index]
            maps = attender.attention(document.text, document.name)
            drawn = drawing.draw(maps, out if len(chosen) == 1 else out / document.slug, follow=follow or unfollowed)
            notices = (*(_first_notices(spec, corpus, attender.trained) if count == 0 else ()), *drawn.notices)
            yield replace(drawn, notices=notices)


def _chosen(text: TextOptions, corpus: Corpus) -> tuple[int, ...]:
    """Texts that were given one by one are all drawn; of a data set the first, unless `--index` says otherwise."""
    if text.index or text.inline:
        return numbers(text.index, len(corpus.documents), "text")
    return (0,)


def _first_notices(spec: HeatmapSpec, corpus: Corpus, trained: bool | None) -> Iterator[str]:
    yield from corpus.notices
    if trained is False:
        others = f". {TRAINED}" if resolve(spec.model).kind in ("single", "multi") else ""
        seed = spec.model.seed
        yield f"untrained: the weights are random (seed {seed}), so the maps show no learned attention{others}"
    if not (spec.text.index or spec.text.inline) and len(corpus.documents) > 1:
        yield f"drawing text 0 of {corpus.name} ({len(corpus.documents):,} texts); --index chooses others"
