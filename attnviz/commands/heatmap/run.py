"""`attnviz heatmap`: from texts to pictures of who attends to what."""

from dataclasses import replace
from functools import partial

from attnviz import store
from attnviz.commands.heatmap.answer import ask_answer
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.inputs import Inputs
from attnviz.measures import choose_measures
from attnviz.measures.rows import MAX_DRAWN_WEIGHTS
from attnviz.models.plan import Needs, plan_recording
from attnviz.models.protocols import EVERY, AttentionModel, Coverable, LayersAndHeads
from attnviz.records import AttentionMaps
from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle
from attnviz.running import Events, Progress, Result
from attnviz.running.drawing import Drawing, check_factored_room
from attnviz.running.metrics import add_known_heads, find_known_heads
from attnviz.selection import select_numbers, select_pairs
from attnviz.store.manifest import PAGE, Entry, File
from attnviz.views.index_page import texts_page
from attnviz.views.translate import translate


def heatmap(spec: HeatmapSpec, inputs: Inputs) -> Events:
    """Read, attend and draw, one text after the other."""
    drawing = replace(Drawing.from_options(spec.figure, spec.printing), known_heads=inputs.model.known_heads)
    out, documents = inputs.out, inputs.documents
    yield Progress(0, len(documents), "texts", label="loading the model")
    # With --causal a classifier draws other attention than it answers by.
    is_asked = html in drawing.pictures.renderers and not spec.model.causal
    model = (inputs.model.answering() if is_asked else inputs.model).open(inputs.corpus.texts)
    drawing.check_number(model.n_layers, model.n_heads)
    # A text that cannot be drawn is refused before the first picture.
    plans = [plan_recording(model, document.text, _find_needs(model, spec)) for document in documents]
    heads, first = find_known_heads(model), list(inputs.corpus.notices)
    if model.trained is False:
        others = f". {relatives}" if (relatives := inputs.model.trained_relatives) else ""
        random = f"untrained: the weights are random (seed {spec.model.seed})"
        first.append(f"{random}, so the maps show no learned attention{others}")
    if len(documents) < (n_texts := len(inputs.corpus.documents)) and not spec.text.index:
        first.append(f"drawing text 0 of {inputs.corpus.name} ({n_texts:,} texts); --index chooses others")
    with store.locked(out):
        if html in drawing.pictures.renderers and len(documents) > 1:
            store.refuse_others(out, PAGE)
        entries = []
        for count, (document, plan) in enumerate(zip(documents, plans, strict=True)):
            yield Progress(count, len(documents), "texts", label="attention of the text")
            maps = add_known_heads(plan.record(document.text, document.name), heads)
            folder = out if len(documents) == 1 else out / document.slug
            drawing = replace(drawing, ask=partial(ask_answer, model, document.text) if is_asked else None)
            if spec.cover and isinstance(model, Coverable):
                drawing = replace(drawing, cover=partial(model.test_cover, document.text))
            drawn = yield from _number_as_in_model(model, drawing, maps).draw(maps, folder)
            notices = (*first, *plan.notices(maps), *drawn.notices)
            first = []
            if len(documents) > 1:
                # As a manifest would describe it.
                files = tuple(File(path.relative_to(out).as_posix(), "", 0) for path in drawn.files)
                settings = {key: each for key in ("layer", "head") if (each := getattr(spec.figure, key))}
                settings["model"] = maps.provenance.model
                entries.append(Entry(document.slug, "heatmap", settings, "", {}, drawn.numbers, (), files))
            yield replace(drawn, notices=notices)
        lang = spec.figure.lang
        if any(file.path.endswith(".html") for entry in entries for file in entry.files):
            ((_, page),) = html(translate(texts_page(maps, spec.figure.title, entries), lang), FigureStyle(lang=lang))
            store.write(out / PAGE, page)
            yield Result(files=(out / PAGE,))


def _number_as_in_model(model: AttentionModel, drawing: Drawing, maps: AttentionMaps) -> Drawing:
    """Write numbers from the end, such as -2, as the model counts them: a record of some layers ends elsewhere."""
    if maps.provenance.facts.n_heads_in_model is None:
        return drawing
    spec, found = drawing.spec, {}
    layers = "layer", spec.layer, model.n_layers, maps.layer_numbers
    for what, written, n_there, here in (layers, ("head", spec.head, model.n_heads, maps.head_numbers)):
        chosen = select_numbers(written, n_there, what, mean=what == "head")
        found[what] = tuple(map(str, chosen)) if written and {*chosen} <= {*here} else written
    return replace(drawing, spec=replace(spec, layer=found["layer"], head=found["head"]))


def _find_needs(model: AttentionModel, spec: HeatmapSpec) -> Needs:
    """Return what is drawn and measured, and which option needs all weights for it.

    Where not all are kept, the layers and heads are recorded that are drawn, averaged or measured.
    """
    figure = spec.figure
    layers = select_numbers(figure.layer, model.n_layers, "layer") if figure.layer else None
    heads = select_numbers(figure.head, model.n_heads, "head", mean=True) if figure.head else None
    if figure.pick:
        layers, heads = zip(*select_pairs(figure.pick, range(model.n_layers), range(model.n_heads)), strict=True)
    of_layers = any(measure.level == "layer" for measure in choose_measures(figure.measure))
    chosen = LayersAndHeads(layers, None if of_layers or model.n_heads in (heads or ()) else heads)
    options = {"--rollout": figure.rollout, "--merge": figure.merge, "--generate": spec.pretrained.generate}

    def check_room(maps: AttentionMaps) -> None:
        sizes = maps.n_layers * maps.n_heads, len(maps.queries), len(maps.keys)
        check_factored_room(sizes, maps.n_bytes, spec.model.max_memory)

    return Needs(
        choice=EVERY if figure.rollout else chosen,
        needs_weights=next((option for option, given in options.items() if given), None),
        factored=False if spec.factored is None and isinstance(model, Coverable) else spec.factored,
        max_shown=MAX_DRAWN_WEIGHTS,
        check_room=check_room,
    )
