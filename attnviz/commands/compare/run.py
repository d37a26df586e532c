"""`attnviz compare`: the same texts through several models, measured, drawn and put into words."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from attnviz import store
from attnviz.commands.compare.comparison import ComparedModel, Comparison, MeasuredTexts
from attnviz.commands.compare.costs import theory_blocks
from attnviz.commands.compare.maps import highest, pictures_of
from attnviz.commands.compare.report import compare_report, compare_rows
from attnviz.commands.compare.spec import CompareSpec
from attnviz.errors import InvalidText
from attnviz.inputs import Inputs, leave_out_copies
from attnviz.measures import ALL, choose_measures
from attnviz.models.loading import ModelReference
from attnviz.models.protocols import EVERY, MEASURED, AttentionModel, Classifies
from attnviz.models.sizes import Work, check_memory
from attnviz.records import AttentionMaps
from attnviz.records.answers import Prediction
from attnviz.running import Events, Progress
from attnviz.running.metrics import load_model_metrics
from attnviz.running.pictures import Pictures
from attnviz.specs import ModelOptions
from attnviz.store.manifest import TextNumbers
from attnviz.text import Document
from attnviz.views.captions import describe_status, quote_text
from attnviz.views.head_pictures import choose_scale, list_scales

UNKNOWN_WORDS = "half of the tokens of each text or more are not in the vocabulary"
COPIES = 5  # of all records together, measured: 23.5 bytes for each cell of each head
# What the pictures of a comparison are called.
PICTURES = ("maps*", "difference*", "query-*", "similarity", "distributions", "attention")


def compare(spec: CompareSpec, inputs: Inputs) -> Events:
    """Compare each model with the first, while no other run writes to the folder. Raises InvalidText."""
    with store.locked(inputs.out):
        drawing = Pictures.from_options(spec.figure, PICTURES, "*.safetensors")
        corpus, (documents, copies) = inputs.corpus, leave_out_copies(inputs.documents)
        models = _open_models(inputs.models, corpus.texts)
        for document in documents:  # a text that cannot be read is refused before the first is measured
            _check_room(models, document.text, spec.model.max_memory)
        untrained = [model.name for model in models if model.trained is False]
        yield Progress(0, len(documents), "texts", notices=(*_notices(spec, inputs, untrained), *copies))
        answered = [_predictions(model, documents, spec.model) for model in models]
        reading = [pair for pair in zip(models, answered, strict=True) if _reads(*pair, documents)]
        if not reading:
            raise InvalidText(f"none of {', '.join(model.name for model in models)} reads the text: {UNKNOWN_WORDS}")
        if blind := [model.name for model in models if model.name not in {each.name for each, _ in reading}]:
            models, answered = map(list, zip(*reading, strict=True))
            yield Progress(0, len(documents), "texts", notices=(f"leaving out {', '.join(blind)}: {UNKNOWN_WORDS}",))
        names = [model.name for model in models]
        right = [_judge(model, found, len(documents)) for model, found in zip(models, answered, strict=True)]
        choice = EVERY if len(documents) == 1 else MEASURED
        measured = MeasuredTexts(names, spec.measure or (ALL,))
        for count, document in enumerate(documents, 1):
            attended = [model.attention(document.text, document.name, choice) for model in models]
            measured.add(attended, [of_model[count - 1] for of_model in right])
            yield Progress(count, len(documents), "texts", document.name)
        from attnviz.table.numbers import stack

        apart, first = measured.divergences, measured.last[0]
        whole = Comparison(
            models=tuple(map(_describe_model, models, measured.last, answered)),
            texts=documents[0].name if len(documents) == 1 else corpus.name,
            quoted=quote_text(first.provenance, first.queries) if len(documents) == 1 else "",
            numbers=stack(measured.parts),
            asked=choose_measures(measured.measures),
            merged=measured.merged,
            texts_sha256=hashlib.sha256(" ".join(measured.texts).encode()).hexdigest(),
            divergences=None if apart is None else apart / len(documents),
        )
        pictures = pictures_of(spec, whole, measured.last)
        extent = highest(pictures), len(measured.last[0].keys)
        scales = choose_scale(spec.figure.scale, *extent), *list_scales(*extent)
        n_tokens, width = round(whole.mean(names[0], "tokens")), whole.models[0].d_model
        theory = theory_blocks(n_tokens, width, spec.kernel) if spec.theory else ()
        report = compare_report(whole, pictures, scales, theory, spec)
        pairs = zip(measured.last, whole.slugs, strict=True) if len(documents) == 1 else ()
        records = {f"{slug}.safetensors": maps for maps, slug in pairs}
        drawn = yield from drawing.write(report, inputs.out, records)
        means = {measure.name: [whole.mean(name, measure.name) for name in names] for measure in whole.measures}
        yield replace(drawn, rows=tuple(compare_rows(whole)), numbers=(TextNumbers(whole.texts, means, of=names),))


def _describe_model(model: AttentionModel, maps: AttentionMaps, predictions: tuple[Prediction, ...]) -> ComparedModel:
    return ComparedModel(
        name=model.name,
        status=describe_status(maps.provenance),
        trained=model.trained,
        layer_numbers=maps.layer_numbers,
        n_heads=model.n_heads,
        d_model=model.d_model,
        n_parameters=model.n_parameters,
        n_attention_parameters=model.n_attention_parameters,
        self_attention=maps.self_attention,
        answers=model.answers if isinstance(model, Classifies) else None,
        predictions=predictions,
        tested=None if (metrics := load_model_metrics(model)) is None else metrics.tested,
    )


def _check_room(models: Sequence[AttentionModel], text: str, max_memory: float) -> None:
    """Check that one text's maps through all models fit together in memory. Raises TooLarge where they do not."""
    sizes = [model.map_size(text) for model in models]
    n_queries, n_keys = (max(of_side) for of_side in zip(*sizes, strict=True))
    cells = sum(model.n_layers * model.n_heads * math.prod(size) for model, size in zip(models, sizes, strict=True))
    n_maps = math.ceil(cells / (n_queries * n_keys))  # of the largest size
    n_parameters = sum(model.n_parameters for model in models)
    check_memory(Work(n_queries, n_keys, n_maps, 1, n_parameters=n_parameters, n_copies=COPIES), max_memory)


def _notices(spec: CompareSpec, inputs: Inputs, untrained: Sequence[str]) -> Iterator[str]:
    yield from inputs.corpus.notices
    if untrained:
        yield f"random weights (seed {spec.model.seed}) show no learned attention: {', '.join(untrained)}"
    if len(inputs.documents) < len(inputs.corpus.documents) and not spec.text.index:
        yield f"comparing on {inputs.documents[0].name}; --text, --dataset and --index choose others"


def _open_models(references: Sequence[ModelReference], texts: Iterable[str]) -> list[AttentionModel]:
    """Open the models in order, each under a name of its own: two checkpoint folders may be called alike."""
    names = [reference.name.encode("utf-8", "backslashreplace").decode() for reference in references]
    models = []
    for place, (reference, name) in enumerate(zip(references, names, strict=True)):
        same = names[: place + 1].count(name) if names.count(name) > 1 else 0
        models.append(reference.open(texts, f"{name} ({same})" if same else name))
    return models


def _predictions(model: AttentionModel, documents: Sequence[Document], spec: ModelOptions) -> tuple[Prediction, ...]:
    """Classify the texts; return no predictions where the model does not classify."""
    if not isinstance(model, Classifies):
        return ()
    limits = [limit for limit in (spec.max_tokens, model.max_tokens) if limit is not None]
    return tuple(model.limit_tokens(min(limits, default=None), spec.keep).classify(documents))


def _reads(model: AttentionModel, predictions: Sequence[Prediction], documents: Sequence[Document]) -> bool:
    """Check that the model knows half of the tokens of at least one text.

    A model that answers nothing is asked for its maps.
    """
    if predictions:
        return any(each.is_judged for each in predictions)
    return any(not model.attention(each.text, each.name).queries.mostly_unknown for each in documents)


def _judge(model: AttentionModel, predictions: Sequence[Prediction], n_texts: int) -> Sequence[float | None]:
    """Return 1 for each text that is classified rightly, else 0, None for one of unknown tokens.

    All are None without labels, and where which of the model's own they are is not known.
    """
    labels = model.answers.find_labels([each.gold for each in predictions]) if isinstance(model, Classifies) else [None]
    if None in labels:
        return [None] * n_texts
    pairs = zip(predictions, labels, strict=True)
    return [float(each.label == label) if each.is_judged else None for each, label in pairs]
