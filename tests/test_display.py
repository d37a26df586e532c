"""A label hides nothing, cuts no grapheme and stays as it is when labelled again."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.display import escape_for_display, format_count, list_first, pluralize

NUMBER_SIGNS = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")  # format, yet visible
FAMILY = "👨\u200d👩\u200d👧\u200d👦"
COUPLE = "👩🏽\u200d❤\ufe0f\u200d💋\u200d👨🏿"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"

# What likes to hide, what may join and ordinary letters, so that Hypothesis finds their combinations.
AWKWARD = st.text(
    st.sampled_from(" \n\t\x00\x1b\x7f\x85\xa0\xad\u034f\u0301\u200b\u200c\u200d\u202e\u2066\u3000\ufe0e\ufe0f\ufeff")
    | st.sampled_from(
        "ab1#é猫한❤👩👨🏽🇩🇪\U0001f3f4\U000e0067\U000e007f\U000e0100\ud800\ue000\uffff\u1112\u1161\u11ab\u0645\u06cc\u0915\u094d…\\◌"
    )
    | st.characters()
)

# What scripts and emoji need.
NEEDED = (
    *("e\u0301", "1\ufe0f\u20e3", "❤\ufe0f", "🇩🇪🇫🇷", FAMILY, COUPLE, SCOTLAND),
    *("\u1112\u1161\u11ab", "می\u200cخواهم", "क\u094d\u200dष", "葛\U000e0100", "\u06dd"),
)


@pytest.mark.parametrize(
    ("piece", "label"),
    [
        ("film", "film"),
        ("", "∅"),
        (" ", "␣"),
        (" the", "␣the"),
        ("\n", "⏎"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\u202eevil", r"\u202eevil"),
        ("\u3164", r"\u3164"),
        ("\U000e0041", r"\U000e0041"),
        ("\xa0", r"\xa0"),
        ("Quoi\xa0?", "Quoi\xa0?"),
        ("[red]$$:smile:", "[red]$$:smile:"),
        *((kept, kept) for kept in NEEDED),
        # joiners, selectors and marks without a base
        ("\u200d", r"\u200d"),
        ("👩\u200da", r"👩\u200da"),
        ("a\ufe0f", r"a\ufe0f"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f" + r"\ufe0f"),
        ("\U0001f3f4\U000e0067", "\U0001f3f4" + r"\U000e0067"),
        (" \u0301", "␣◌\u0301"),
        ("Z" + "\u0351" * 100, "Z" + "\u0351" * 6 + "…"),
    ],
)
def test_by_example(piece: str, label: str) -> None:
    assert escape_for_display(piece) == label


def test_long_pieces_are_cut_between_graphemes() -> None:
    assert escape_for_display("x" * 24) == "x" * 24
    assert escape_for_display("x" * 25) == "x" * 23 + "…"
    assert escape_for_display("e\u0301" * 25) == "e\u0301" * 23 + "…"
    assert escape_for_display(FAMILY * 25) == FAMILY * 23 + "…"
    assert escape_for_display("\x1b" * 25) == r"\x1b" * 5 + "…"
    assert escape_for_display("x" * 300, max_width=200) == "x" * 199 + "…"
    assert escape_for_display("\u202eab", max_width=3) == "…"
    assert len(escape_for_display(("Z" + "\u0351" * 100) * 100)) < 24 * 8
    assert len(escape_for_display("\u200d".join("👩" * 1000))) < 100


@given(AWKWARD, st.integers(1, 40))
def test_nothing_hidden_is_left(piece: str, longest: int) -> None:
    label = escape_for_display(piece, longest)
    assert label
    for before, character in zip(" " + label, label, strict=False):
        category = unicodedata.category(character)
        assert category not in {"Cc", "Cs", "Zl", "Zp"}
        if category == "Cf":  # a joiner within a word or an emoji, the tail of a flag, an Arabic number sign
            assert character in "\u200c\u200d" or 0xE0020 <= ord(character) <= 0xE007F or character in NUMBER_SIGNS
            assert character in NUMBER_SIGNS or before not in " ␣\\"
    assert label == label.strip()
    assert not {"\u202e", "\u2066", "\u200b", "\ufeff", "\xad"} & set(label)


@given(AWKWARD)
def test_a_label_is_its_own_label(piece: str) -> None:
    assert escape_for_display(escape_for_display(piece)) == escape_for_display(piece)


def test_things_are_counted_in_words() -> None:
    assert [format_count(number, "queries") for number in (0, 1, 1024)] == ["0 queries", "1 query", "1,024 queries"]
    assert [pluralize(number, "entries") for number in (0, 1, 21)] == ["entries", "entry", "entries"]
    assert pluralize(1, "tokens") == "token"


@pytest.mark.parametrize(("n_items", "listed"), [(0, ""), (1, "a"), (2, "a; b"), (3, "a; b and 1 more")])
def test_of_a_long_list_the_first_are_written(n_items: int, listed: str) -> None:
    written: list[str] = []

    def write(item: str) -> str:
        written.append(item)
        return item.lower()

    assert list_first("ABC"[:n_items], 2, write, "; ") == listed
    assert written == list("AB"[:n_items])  # and none beyond
