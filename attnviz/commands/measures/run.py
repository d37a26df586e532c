"""`attnviz measures`: the table of measures."""

from attnviz.commands.measures.spec import MeasuresSpec
from attnviz.measures import ALL, DEFAULT_MEASURES, MEASURES
from attnviz.report import Block, Column, Note, Report, Table
from attnviz.running import Events, Result

KINDS = {"head": "each head", "layer": "all heads of a layer"}  # by level
NAMES = {"head": "each-head", "layer": "all-heads"}  # of the tables
COLUMNS = (Column("name"), Column("what it says"), Column("unit"), Column("source"))


def measures(spec: MeasuresSpec) -> Events:
    """List what each measure says, its unit and its source."""
    yield Result(measures_report())


def measures_report() -> Report:
    """List every measure in the order of the table, those of each head before those of all heads of a layer."""
    blocks: list[Block] = []
    for level, of in KINDS.items():
        rows = tuple((each.name, each.help, each.unit, each.source) for each in MEASURES if each.level == level)
        blocks.append(Table(NAMES[level], f"of {of}", "facts", COLUMNS, rows))
    needing = ", ".join(measure.name for measure in MEASURES if measure.self_attention_only)
    default = ", ".join(DEFAULT_MEASURES)
    blocks.append(Note(f"--measure NAME chooses, --measure {ALL} takes all. Where nothing is chosen: {default}."))
    blocks.append(Note(f"Only of a text that attends to itself: {needing}."))
    listed = [
        {
            "name": measure.name,
            "says": measure.help,
            "unit": measure.unit,
            "of": KINDS[measure.level],
            "self_attention_only": measure.self_attention_only,
            "headline": measure.name in DEFAULT_MEASURES,
            "source": measure.source,
        }
        for measure in MEASURES
    ]
    title, subtitle = "measures of attention", "numbers of one text's attention weights"
    return Report(title, subtitle, tuple(blocks), data={"measures": listed})
