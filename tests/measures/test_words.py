"""Which tokens are one word, by hand and against our own tokenizer, and attention from word to word."""

from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from attnviz.errors import InvalidOption
from attnviz.measures import words
from attnviz.measures.words import find_words, merge_words
from attnviz.models.tokenizer import _PIECE
from attnviz.records import AttentionMaps, Tokens
from tests.made import cross_maps, random_maps, record, tokens

FAMILY = "👨\u200d👩\u200d👧"
OWN = pre_tokenizers.Split(Regex(_PIECE), behavior="isolated")
CHUNKS = ["a", "B", "é", "e\u0301", "7", "'", "’", "-", ".", ",", " ", "\n", "猫", "ね", "カ", "々", "고", "س"]
CHUNKS += [FAMILY, "👍🏽", "❤️", "1️⃣", "🇩🇪", "🏴\U000e0067\U000e0062\U000e007f", "€"]


def cut(*pieces: str) -> Tokens:
    """The pieces one right after the other; those in brackets are markers."""
    return tokens(*pieces, special=[piece for piece in pieces if piece.startswith("[")], gap=0)


def found(*pieces: str) -> list[str]:
    """The words of these pieces."""
    return ["|".join(pieces[position] for position in unit) for unit in find_words(cut(*pieces))]


@pytest.mark.parametrize(
    "said",
    [
        ["play|ing", " with", " un|believ|able"],
        ["don|'|t", " stop"],
        ["it|’s", " the", " dogs", "'", " turn"],  # an apostrophe joins only what is a word on both sides
        ["e|\u0301|te|\u0301", "."],
        ["猫", "坐", "在", "垫子", "上", "，", "好"],
        ["ね", "こ", "カ", "ー", "テ|\u3099", "film"],
        ["می|\u200c|خواهم"],
        ["[CLS]", "a|b", "[SEP]", "c|d", "[SEP]"],
        ["the", "\n", "cat", "\n\n", "  ", "sat"],
        ["the", " |cat", " |(", "  ", "sat", " "],  # a single space belongs to what comes right after it
        ["a", " |1|\ufe0f|\u20e3", "."],  # the key of a digit
        ["ok", "🏳|️|\u200d|🌈", "a", " |👨|\u200d|👩|\u200d|👧"],
    ],
)
def test_words_by_hand(said: list[str]) -> None:
    assert found(*(piece for word in said for piece in word.split("|"))) == said


def test_bytes_of_one_character_are_one_word() -> None:
    spans = ((0, 1), (1, 2), (1, 2), (1, 2), (2, 3))
    assert find_words(Tokens(("a", "猫", "猫", "猫", "子"), spans, (False,) * 5)) == ((0,), (1, 2, 3), (4,))
    assert find_words(Tokens(("猫", "猫子", "子"), ((0, 1), (0, 2), (1, 2)), (False,) * 3)) == ((0, 1, 2),)


def test_characters_that_no_token_covers_are_a_border() -> None:
    assert find_words(Tokens(("play", "ing"), ((0, 4), (5, 8)), (False,) * 2)) == ((0,), (1,))


def test_a_second_text_begins_anew() -> None:
    """Its offsets count from 0 again, with a marker between the two or without."""
    one, other = ("ab", "c"), ("d", "ef")
    marked = Tokens(
        (*one, "[SEP]", *other), ((0, 2), (2, 3), (3, 3), (0, 1), (1, 3)), (False, False, True, False, False)
    )
    assert find_words(marked) == ((0, 1), (2,), (3, 4))
    bare = Tokens((*one, *other), ((0, 2), (2, 3), (0, 1), (1, 3)), (False,) * 4)
    assert find_words(bare) == ((0, 1), (2, 3))


def test_a_piece_that_is_not_as_long_as_what_it_stands_for_is_known_by_its_ends() -> None:
    assert find_words(Tokens(("x…y", "z", "."), ((0, 50), (50, 51), (51, 52)), (False,) * 3)) == ((0, 1), (2,))
    assert find_words(Tokens(("", "z"), ((0, 50), (50, 51)), (False,) * 2)) == ((0,), (1,))


@given(st.lists(st.sampled_from(CHUNKS), max_size=12))
def test_characters_become_the_words_of_our_own_tokenizer(chunks: list[str]) -> None:
    text = "".join(chunks)
    own = [piece for piece, _ in OWN.pre_tokenize_str(text) if not piece.isspace()]
    joined = ["".join(text[position] for position in unit) for unit in find_words(cut(*text))]
    assert [word.removeprefix(" ") for word in joined if not word.isspace()] == own


@given(st.lists(st.text(st.characters(), max_size=6), min_size=1, max_size=8))
def test_any_pieces_become_words_in_their_order(pieces: list[str]) -> None:
    units = find_words(cut(*pieces))
    assert [position for unit in units for position in unit] == list(range(len(pieces)))


def test_the_words_of_two_texts() -> None:
    rows = np.array([[0.5, 0.25, 0.25], [0.125, 0.625, 0.25]])
    joined = merge_words(record(rows[None, None], cut("do", "gs"), cut("the", " ca", "t")))
    assert not joined.self_attention
    assert joined.queries.pieces == ("dogs",)
    assert joined.keys.pieces == ("the", " cat")
    assert joined.weights[0, 0].tolist() == [[0.3125, 0.6875]]
    settings = (("merge", "words"), ("queries_before_merging", 2), ("keys_before_merging", 3))
    assert joined.provenance.settings == settings


@pytest.mark.parametrize("maps", [random_maps(), cross_maps()])
def test_words_that_are_whole_stay_as_they_are(maps: AttentionMaps) -> None:
    joined = merge_words(maps)
    assert joined.weights.tobytes() == maps.weights.tobytes()
    assert (joined.queries, joined.keys) == (maps.queries, maps.keys)


def find_phrases(text: str) -> list[str]:
    """The phrases of a text whose tokens are its characters."""
    return ["".join(text[position] for position in unit) for unit in find_words(cut(*text), "phrases")]


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("今天天气很好，我们去公园散步吧。", "今天 天气 很 好 ， 我们 去 公园 散步 吧 。"),
        ("這部電影不好看，但是演員", "這 部 電影 不 好 看 ， 但是 演員"),
        ("今日は天気がとても良い。", "今日は 天気が とても 良い 。"),
        ("วันนี้อากาศดีมาก", "วัน นี้ อากาศ ดี มาก"),
        ("film好看。the end", "film 好 看 。 the end"),
    ],
)
def test_phrases_of_languages_without_spaces(text: str, phrases: str) -> None:
    pytest.importorskip("budoux")
    found = find_phrases(text)
    assert "".join(found) == text
    assert [each.strip() for each in found] == phrases.split()


def test_phrases_of_other_languages_are_words() -> None:
    pytest.importorskip("budoux")
    said = "don't stop, it's un-believ-able 고양이"
    assert find_phrases(said) == ["".join(said[at] for at in unit) for unit in find_words(cut(*said))]


def test_a_token_of_several_characters_is_never_cut() -> None:
    pytest.importorskip("budoux")
    assert find_words(cut("今", "天天", "气", "很好"), "phrases") == ((0, 1, 2), (3,))


def test_the_segmenter_is_kept_with_the_record() -> None:
    pytest.importorskip("budoux")
    maps = record(np.full((1, 1, 4, 4), 0.25), cut("今", "天", "很", "好"))
    settings = dict(merge_words(maps, "phrases").provenance.settings)
    assert settings["merge"] == "phrases"
    assert settings["segmenter"] == f"budoux {version('budoux')}"


def test_phrases_without_their_package_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "find_spec", lambda name: None)
    with pytest.raises(InvalidOption, match=r"--merge phrases needs budoux.*pip install 'attnviz\[phrases\]'"):
        merge_words(random_maps(), "phrases")
