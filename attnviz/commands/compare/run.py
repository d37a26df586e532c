"""`attnviz compare`: the same texts through several models, measured, drawn and put into words."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from attnviz import store
from attnviz.commands.compare.accumulator import ComparisonAccumulator
from attnviz.commands.compare.outcome import comparison, describe_model, pictures_of, report_of
from attnviz.commands.compare.spec import CompareSpec
from attnviz.inputs import Inputs
from attnviz.measures.weighing import weigh_values
from attnviz.models.loading import ModelReference
from attnviz.models.protocols import AttentionModel, Classifies, quickest_attention
from attnviz.models.sizes import Work, check_memory
from attnviz.records.training_metrics import Prediction
from attnviz.running import Events, Progress
from attnviz.running.pictures import Pictures
from attnviz.specs import ModelOptions
from attnviz.text import Document
from attnviz.views.captions import WEIGHED_LABEL

ROUNDS = 15  # of timing, the models in turn
COPIES = 5  # of all records together, measured: 23.5 bytes for each cell of each head
# What the pictures of a comparison are called.
PICTURES = ("maps*", "difference*", "query-*", "rollout", "similarity", "distributions", "attention")


def compare(spec: CompareSpec, inputs: Inputs) -> Events:
    """Compare each model with the first, while no other run writes to the folder. Raises InvalidText."""
    return store.run_locked(inputs.out, _compare(spec, inputs))


def _compare(spec: CompareSpec, inputs: Inputs) -> Events:
    drawing = Pictures.from_options(spec.figure, PICTURES, "*.safetensors")
    corpus, documents = inputs.corpus, inputs.documents
    models = _open_models(inputs.models, corpus.texts)
    for document in documents:  # a text that cannot be read is refused before the first is measured
        _check_room(models, document.text, spec.model.max_memory)
    trained = [model.trained for model in models]
    told = [model.name for model in models]
    notices = tuple(_notices(spec, inputs, told, trained))
    yield Progress(0, len(documents), "texts", notices=notices)
    answered = [_predictions(model, documents, spec.model) for model in models]
    tally = ComparisonAccumulator.for_models(len(models), spec.measure)
    kept_or_drawn = len(documents) == 1 or spec.figure.weigh == "values"
    attentions = [model.attention if kept_or_drawn else quickest_attention(model) for model in models]
    for count, document in enumerate(documents, 1):
        attended = [attention(document.text, document.name) for attention in attentions]
        tally.add(attended if spec.figure.weigh == "attention" else [weigh_values(maps) for maps in attended])
        yield Progress(count, len(documents), "texts", document.name)
    took = _seconds(models, documents) if spec.time else [None] * len(models)
    found = [describe_model(*of_model) for of_model in zip(models, tally.numbers, answered, took, strict=True)]
    whole = comparison(documents[0].name if len(documents) == 1 else corpus.name, tally, found)
    pictures = pictures_of(spec, whole, tally.last)
    report, rows = report_of(spec, whole, pictures, tally.last)
    if spec.figure.weigh == "values":
        report = replace(report, subtitle=f"{report.subtitle} · {WEIGHED_LABEL}")
    kept = tally.last if spec.figure.weigh == "attention" else attended  # weights, whatever is shown of them
    pairs = zip(kept, whole.slugs, strict=True) if len(documents) == 1 else ()
    records = {f"{slug}.safetensors": maps for maps, slug in pairs}
    drawn = yield from drawing.write(report, inputs.out, records)
    means = {m.name: [[float(model.per_text(m.name).mean()) for model in whole.models]] for m in whole.measures}
    yield replace(drawn, rows=rows, numbers={whole.texts: means})


def _check_room(models: Sequence[AttentionModel], text: str, max_memory: float) -> None:
    """Raises TooLarge where one text's maps through all models would not fit together."""
    sizes = [model.map_size(text) for model in models]
    n_queries, n_keys = (max(of_side) for of_side in zip(*sizes, strict=True))
    cells = sum(model.n_layers * model.n_heads * math.prod(size) for model, size in zip(models, sizes, strict=True))
    n_maps = math.ceil(cells / (n_queries * n_keys))  # of the largest size
    n_parameters = sum(model.n_parameters for model in models)
    check_memory(Work(n_queries, n_keys, n_maps, 1, n_parameters=n_parameters, n_copies=COPIES), max_memory)


def _notices(spec: CompareSpec, inputs: Inputs, names: Sequence[str], trained: Sequence[bool | None]) -> Iterator[str]:
    yield from inputs.corpus.notices
    untrained = [name for name, is_trained in zip(names, trained, strict=True) if is_trained is False]
    if untrained:
        verb = "is" if len(untrained) == 1 else "are"
        seed = spec.model.seed
        yield f"{', '.join(untrained)} {verb} untrained: random weights (seed {seed}) show no learned attention"
    if len(inputs.documents) < len(inputs.corpus.documents) and not spec.text.index:
        yield f"comparing on {inputs.documents[0].name}; --text, --dataset and --index choose others"


def _open_models(references: Sequence[ModelReference], texts: Iterable[str]) -> list[AttentionModel]:
    """In their order, each under a name of its own: two checkpoint folders may be called alike."""
    names = [reference.name for reference in references]
    models = []
    for place, (reference, name) in enumerate(zip(references, names, strict=True)):
        same = names[: place + 1].count(name) if names.count(name) > 1 else 0
        models.append(reference.open(texts, f"{name} ({same})" if same else name))
    return models


def _predictions(model: AttentionModel, documents: Sequence[Document], spec: ModelOptions) -> tuple[Prediction, ...]:
    """None where the model does not classify."""
    if not isinstance(model, Classifies):
        return ()
    limits = [limit for limit in (spec.max_tokens, model.max_tokens) if limit is not None]
    return tuple(model.limit_tokens(min(limits, default=None), spec.keep).classify(documents))


def _seconds(models: Sequence[AttentionModel], documents: Sequence[Document]) -> list[float]:
    """The median of several passes over the text of middle length, the models in turn; the first round is to warm up.

    Of all numbers of a comparison only these are not the same each time.
    """
    text = sorted((document.text for document in documents), key=len)[len(documents) // 2]
    rounds = [[model.seconds(text) for model in models] for _ in range(ROUNDS + 1)][1:]
    return [statistics.median(of_model) for of_model in zip(*rounds, strict=True)]
