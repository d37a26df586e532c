"""What `import attnviz` offers: texts and weights as records, and records as pages, figures and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

import numpy as np

from attnviz import store
from attnviz.display import escape_for_display
from attnviz.errors import InvalidOption
from attnviz.images import Photo
from attnviz.measures import ALL, measure_heads, measure_maps
from attnviz.models.attentions.attentions import from_attentions
from attnviz.models.loading import find_model
from attnviz.models.plan import Needs, plan_recording
from attnviz.models.protocols import LayersAndHeads
from attnviz.options import TYPE_NAMES, FlatOption, InvalidValue, build, check_option, list_options
from attnviz.python.notebook import Display
from attnviz.python.options import AttentionSettings, FigureSettings
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.grid import Grid
from attnviz.records.single import is_record, unwrap_record
from attnviz.registry import suggest_name
from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle
from attnviz.running.metrics import add_known_heads, find_known_heads
from attnviz.running.pictures import Pictures
from attnviz.selection import select_numbers
from attnviz.specs import FigureOptions, PretrainedOptions, TextOptions
from attnviz.table.numbers import Numbers
from attnviz.text import Corpus, Document, load_corpus
from attnviz.text.files import is_image
from attnviz.views.heatmap import make_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Settings = TypeVar("Settings")


def attention(  # noqa: PLR0913 - each is an option of its own
    text: str,
    model: str = "multi",
    *,
    question: str = "",
    generate: int | None = None,
    factored: bool = False,
    layer: str | int | None = None,
    head: str | int | None = None,
    **settings: Any,
) -> AttentionMaps:
    """Attend over one text, as `attnviz heatmap --text TEXT --model MODEL` does.

    Args:
        text: any text with at least one token; of a model that reads images the path of one.
        model: a packaged model (`single`, `multi`, `multi:4`), a folder, or a name on the hub.
        question: what is asked about an image.
        generate: let the model write up to so many tokens, and record them, too.
        factored: keep q, k and the log-sum-exp of each row instead of the weights, which are worked out from them a
            block of rows at a time: for texts whose weights are too many. Of built-in models that have q and k, and of
            third-party models that attend through `scaled_dot_product_attention`.
        layer: record only some, as "0,2-4", by the model's own numbers; negative ones count from the last.
        head: the same of heads, in every layer. Of others nothing is kept.
        **settings: `heads`, `seed`, `max_tokens` and the other options of the model.

    Returns:
        The record, with float32 weights [layer, head, query, key], each row a distribution.

    Raises:
        InvalidModel: for a model that there is not, or whose files cannot be read.
        InvalidText: for a text without tokens.
        InvalidOption: for a setting that the model does not have, and for a value of another type.
        InvalidSelection: for a layer or head that the model does not have.
        InvalidSource: for an image that cannot be read.

    Examples:
        >>> import attnviz
        >>> maps = attnviz.attention("the acting saved the film", model="multi:2")
        >>> maps.weights.shape  # layer, head, query, key
        (2, 2, 5, 5)
    """
    spec = parse_settings(AttentionSettings, text=text, model=model, layer=layer, head=head, **settings)
    reference = find_model(spec.model, PretrainedOptions(generate=generate))
    reference.check()
    corpus = load_corpus(TextOptions(text=(spec.text,)))
    if is_image(text) and reference.reads_images:
        photo = Photo.open(Path(text), question)
        corpus = Corpus(photo, [Document(photo, str(photo), "image")])
    elif question:
        raise InvalidOption(f"a question is asked about an image, and {spec.model.model} is given a text")
    opened = reference.open(corpus.texts)
    (document,) = corpus.documents
    layers = select_numbers(spec.figure.layer, opened.n_layers, "layer") if spec.figure.layer else None
    heads = select_numbers(spec.figure.head, opened.n_heads, "head") if spec.figure.head else None
    needs = Needs(choice=LayersAndHeads(layers, heads), only_choice=True, factored=factored)
    plan = plan_recording(opened, document.text, needs)
    return add_known_heads(plan.record(document.text, document.name), find_known_heads(opened))


def measure(maps: AttentionMaps | Sequence[AttentionMaps], name: str) -> Measurement:
    """Measure every head: one number each, a mean over the queries.

    Args:
        maps: a record.
        name: one of those that `attnviz measures` lists, such as "entropy" (nats), "distance" (tokens), "peak" (share).

    Returns:
        The measurement, with `values` [layer, head] (of all heads of a layer together: [layer]), `unit` and `bounds`.

    Raises:
        InvalidOption: for a measure that there is not, or that these maps do not have.

    Examples:
        >>> import attnviz
        >>> uniform = attnviz.from_attentions([[[[0.5, 0.5], [0.5, 0.5]]]])
        >>> attnviz.measure(uniform, "effective_keys").values.round(3).tolist()
        [[2.0]]
    """
    found = measure_maps(unwrap_record(maps), [str(name)])
    if len(found) != 1:
        raise InvalidOption(f"{name!r} names {len(found)} measures", hint="Ask for one at a time.")
    return found[0]


def numbers(maps: AttentionMaps | Sequence[AttentionMaps], name: str = ALL) -> Numbers:
    """Measure every head as a table with a row for each head and a column for each measure.

    Measures of all heads of a layer together stand in rows of the layer alone, whose `head` is missing.

    Args:
        maps: a record.
        name: one or more of those that `attnviz measures` lists, with commas; all of them unless said.

    Returns:
        The table, with the keys `layer` and `head`: `.to_pandas()`, `.rows()`, and `.table` of Arrow.

    Raises:
        InvalidOption: for a measure that there is not, or that these maps do not have.

    Examples:
        >>> import attnviz
        >>> maps = attnviz.from_attentions([[[[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0, 1]]]])
        >>> attnviz.numbers(maps, "effective_keys,to_self").to_pandas().round(3).values.tolist()
        [[0.0, 0.0, 2.0, 0.5], [0.0, 1.0, 1.0, 1.0]]
    """
    return Numbers.from_rows(measure_heads(unwrap_record(maps), [str(name)]), ("layer", "head"))


def heatmap(maps: AttentionMaps | Sequence[AttentionMaps], *, ax: Axes | None = None, **settings: Any) -> Figure:
    """Draw maps as a figure of matplotlib: the heads side by side on one scale, or one head on axes of yours.

    Args:
        maps: a record.
        ax: axes to draw one head on, in their fonts and sizes; without them the figure is attnviz's own.
        **settings: `pick` ("0.3,1.mean": layer.head), `layer`, `head`, `query`, `scale` ("lift": multiples of an equal
            share, "fixed", "shared", "log"), `title`, `theme`, `width` and the other options of figures.

    Returns:
        The figure, which is yours to change and to save; of `ax` the one that they belong to.

    Raises:
        InvalidSelection: for a layer, head or token that the record does not have.
        InvalidOption: for a setting that there is not, a value of another type, and for several heads on `ax`.
        TooLarge: for more heads than a figure holds.

    Examples:
        >>> import attnviz
        >>> maps = attnviz.attention("the acting saved the film")
        >>> figure = attnviz.heatmap(maps, pick="0.5,0.7", scale="shared")
        >>> figure.savefig("two-heads.pdf")
    """
    from attnviz.renderers.figure.python import draw_on, figure  # matplotlib comes with it

    spec = parse_settings(FigureSettings, **settings).figure
    look = Pictures.from_options(spec, (), "").look
    report = make_report(unwrap_record(maps), spec)
    return figure(report, look) if ax is None else draw_on(ax, report, spec.cmap)


def show(
    maps: Any,
    tokens: Sequence[str] | None = None,
    *,
    keys: Sequence[str] | Grid | None = None,
    row: int | None = None,
    attention_mask: Any = None,
    **settings: Any,
) -> Display:
    """Show maps at the end of a notebook's cell, or in the middle of one within `display(…)`.

    Args:
        maps: a record, or weights in any form that `attnviz.from_attentions` takes.
        tokens: of weights, as `attnviz.from_attentions` has them; so are the next three.
        keys: a record may be given an `attnviz.Grid`, such as one with an image.
        row: which text of a batch.
        attention_mask: 1 for a token and 0 for padding.
        **settings: as of `attnviz.heatmap`.

    Returns:
        What a notebook shows as a page, and where it shows no HTML as a PNG.

    Raises:
        InvalidRecord: for weights that are not attention, and names that do not fit.
        InvalidSelection: for a layer, head or token that the record does not have.
        InvalidOption: for a setting that there is not, and for a value of another type.

    Examples:
        >>> import attnviz, numpy as np
        >>> attnviz.show(np.array([[0.9, 0.1], [0.4, 0.6]]), ["the", "cat"], title="by hand")
        Display('by hand')
    """
    if not is_record(maps):
        maps = from_attentions(maps, tokens, keys=keys, row=row, attention_mask=attention_mask)
    elif any(each is not None for each in (tokens, row, attention_mask)) or not isinstance(keys, Grid | None):
        raise InvalidOption("a record has its tokens", hint="Leave out tokens, keys, row and attention_mask.")
    elif keys is not None:
        keys.names(len(unwrap_record(maps).keys))  # raises where it does not fit
        maps = replace(unwrap_record(maps), grid=keys)
    spec = parse_settings(FigureSettings, **settings).figure
    return Display(make_report(unwrap_record(maps), spec), Pictures.from_options(spec, (), "").look)


def save(maps: AttentionMaps | Sequence[AttentionMaps], path: str | Path) -> None:
    """Write a record, or its page where the path ends in .html.

    Args:
        maps: a record, or a sequence of one.
        path: a file; what was there is replaced.

    Raises:
        InvalidRecord: for what is no record, and for several.
        InvalidOption: for a path that is none, and for the ending of a picture or of numbers.
        OutputError: where it cannot be written.

    Examples:
        >>> import attnviz
        >>> attnviz.save(attnviz.attention("a fine film"), "attention.html")  # doctest: +SKIP
    """
    if str(path).lower().endswith(".html"):
        ((_, page),) = html(make_report(unwrap_record(maps), FigureOptions()), FigureStyle())
        store.write(Path(path), page)
    else:
        store.save(maps, path)


def parse_settings(spec: type[Settings], /, **settings: Any) -> Settings:
    """Make a spec of values by the names of its options; None where an option is a list is none of it.

    Raises InvalidOption for an option that there is not, and for a value that it does not take.
    """
    options = {each.name: each for each in list_options(spec)}
    for name in settings:
        if name not in options:
            raise InvalidOption(f"no setting {name!r}", hint=suggest_name(name, list(options)))
    given = {
        name: parse_setting(options[name], value)
        for name, value in settings.items()
        if value is not None or get_origin(options[name].type) is not tuple
    }
    return build(spec, **given)


def parse_setting(option: FlatOption, value: object) -> Any:
    """Parse the value of an option.

    Numbers may be numpy's, and stand for a text only where it counts something: `layer=0`, and not `title=0`.
    """
    if isinstance(value, np.generic):
        value = value.item()
    counts = "N" in (option.option.metavar or "").split("|")
    try:
        if not counts and str in (option.type, *get_args(option.type)) and isinstance(value, int):
            raise InvalidValue(TYPE_NAMES[str], value)
        return check_option(option, value)
    except InvalidValue as error:
        problem = f"{option.name}={escape_for_display(repr(value), 40)}: write {error.wanted}{error.note()}"
        raise InvalidOption(problem, hint="" if error.note() else option.option.write_config_help()) from error
