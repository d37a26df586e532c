"""`attnviz.compare`: two records of one text side by side, in Python and notebooks."""

from collections.abc import Sequence

from attnviz.commands.compare.comparison import align
from attnviz.commands.compare.maps import choose_query, find_shared_layers, highest, map_pictures
from attnviz.display import escape_for_display, name_measure
from attnviz.errors import InvalidOption
from attnviz.measures import ALL, measure_maps
from attnviz.python.api import parse_settings
from attnviz.python.notebook import Display
from attnviz.python.options import FigureSettings
from attnviz.records import AttentionMaps
from attnviz.records.single import unwrap_record
from attnviz.report import Column, Report, Row, Table
from attnviz.specs import ScaleKind
from attnviz.views.captions import quote_text
from attnviz.views.head_pictures import choose_scale, list_scales


def compare(
    first: AttentionMaps | Sequence[AttentionMaps],
    second: AttentionMaps | Sequence[AttentionMaps],
    *,
    layer: str | int | None = None,
    query: str | int | None = None,
    scale: ScaleKind = "lift",
) -> Display:
    """Compare two records of one text: their maps on one scale, the difference, one query in every head, the measures.

    Args:
        first: a record, with which the other is compared.
        second: one of the same text. Tokens that are cut differently are joined to common units.
        layer: which of the layers that both have; all of them unless said.
        query: a word or a position; the one on which heads differ most unless said.
        scale: as of `attnviz.heatmap`.

    Returns:
        What a notebook shows as a page, and where it shows no HTML as a PNG.

    Raises:
        InvalidOption: for records of different texts, of a model that knows less than half of the tokens, and for a
            scale that there is not.
        InvalidSelection: for a layer or query that is not there.

    Examples:
        >>> import attnviz
        >>> text = "the acting saved the film"
        >>> attnviz.compare(attnviz.attention(text, model="single"), attnviz.attention(text, model="multi:2"))
        Display('single and multi:2 on “the acting saved the film”')
    """
    settings = parse_settings(FigureSettings, layer=layer, query=query, scale=scale).figure
    records = [unwrap_record(first), unwrap_record(second)]
    if len({each.provenance.text_sha256 for each in records}) > 1:
        raise InvalidOption("these are records of different texts", hint="Compare two models on one text.")
    names = [escape_for_display(each.provenance.model, 40) for each in records]
    for name, each in zip(names, records, strict=True):
        if each.queries.mostly_unknown:
            raise InvalidOption(f"{name} reads half of the tokens or more as [UNK]", hint="Compare others.")
    names = [f"{name} ({place})" for place, name in enumerate(names, 1)] if len(set(names)) == 1 else names
    aligned, *_ = align(records)
    layers = find_shared_layers(settings.layer, aligned)
    query_at = choose_query(settings.query, aligned, layers[-1])
    pictures = map_pictures(aligned, names, ("first", "second"), layers, query_at, scale)
    extent = highest(pictures), len(aligned[0].keys)
    text = quote_text(records[0].provenance, records[0].queries)
    one, other = ({each.name: each for each in measure_maps(maps, [ALL])} for maps in aligned)
    rows: list[Row] = []
    for name in (name for name in one if name in other):
        means = [float(of[name].values.mean()) for of in (one, other)]
        rows.append((name_measure(name), one[name].unit, *means, means[1] - means[0]))
    columns = (Column("measure"), Column("unit"), *map(Column, names), Column("difference"))
    report = Report(
        title=f"{names[0]} and {names[1]} on {text}",
        subtitle="difference: second minus first",
        blocks=(*pictures, Table("measures", "means over heads", "compared", columns, rows)),
        scale=choose_scale(scale, *extent),
        scales=list_scales(*extent),
    )
    return Display(report)
