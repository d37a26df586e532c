"""What is said of the measures, and that a terminal of 80 columns has room for it."""

from attnviz.commands.measures.run import measures_report
from attnviz.measures import DEFAULT_MEASURES, MEASURES
from attnviz.renderers.terminal.show import Screen, render
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


def test_notes_say_what_is_shown_and_what_needs_self_attention() -> None:
    chosen, needing = (note.text for note in measures_report().notes)
    assert chosen.endswith("Where nothing is chosen: entropy, effective_keys, distance, peak.")
    assert needing == (
        "Only of a text that attends to itself: distance, to_self, to_previous, to_next, to_first, to_same_word, "
        "to_own_bracket."
    )


def test_two_lines_a_measure_at_80_columns_and_one_where_there_is_room() -> None:
    narrow = render(measures_report(), "top", Screen(80)).splitlines()
    assert max(map(len, narrow)) <= 80
    start = narrow.index("entropy            how widely a query spreads its   nats    Clark et al. 2019")
    assert narrow[start + 1] == "                   attention"
    assert len(narrow) <= 2 * len(MEASURES) + 15  # headings, rules and notes
    wide = render(measures_report(), "top", Screen(120)).splitlines()
    assert sum(line.startswith(measure.name + " ") for line in wide for measure in MEASURES) == len(MEASURES)
    assert len(wide) == len(MEASURES) + 13  # headings, rules and notes
