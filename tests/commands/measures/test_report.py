"""What is said of the measures, and that a terminal of 80 columns has room for it."""

from attnviz.commands.measures.run import measures_report
from attnviz.measures import DEFAULT_MEASURES, MEASURES
from attnviz.report import Column


def test_every_measure_has_one_row_in_the_order_of_the_table() -> None:
    each_head, all_heads = measures_report().tables
    assert [row[0] for row in (*each_head.rows, *all_heads.rows)] == [measure.name for measure in MEASURES]
    assert (each_head.title, all_heads.title) == ("of each head", "of all heads of a layer")
    assert each_head.rows[0] == ("entropy", "how widely a query spreads its attention", "nats", "Clark et al. 2019")
    assert each_head.columns == (Column("name"), Column("what it says"), Column("unit"), Column("source"))


def test_data_says_all_of_every_measure() -> None:
    measures = measures_report().data["measures"]
    assert isinstance(measures, list)
    by_name = {measure["name"]: measure for measure in measures}
    assert list(by_name) == [measure.name for measure in MEASURES]
    assert by_name["distance"] == {
        "name": "distance",
        "says": "how far away a query attends",
        "unit": "tokens",
        "of": "each head",
        "self_attention_only": True,
        "headline": True,
        "source": "Vig & Belinkov 2019",
    }
    assert by_name["vendi_score"]["of"] == "all heads of a layer"
    assert {name for name, measure in by_name.items() if measure["headline"]} == set(DEFAULT_MEASURES)
