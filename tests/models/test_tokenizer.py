"""Vocabularies: deterministic, with offsets that point back into the text, and with every text taken as text."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, pre_tokenizers

import attnviz
from attnviz.errors import InvalidModel, InvalidText
from attnviz.models.predicting import cut_text
from attnviz.models.tokenizer import CLASSIFY, PADDING, UNKNOWN, load, train
from attnviz.specs import KeepKind, TokenizerKind, VocabularyOptions

EVERY = VocabularyOptions(min_frequency=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat SAT", ["The", "cat", "SAT"]),
        ("don't stop, rock’n’roll!", ["don't", "stop", ",", "rock’n’roll", "!"]),
        ("good<br /><br />bad<br>ugly", ["good", "bad", "ugly"]),
        ("猫坐在垫子上", ["猫", "坐", "在", "垫", "子", "上"]),
        ("wow 👩‍👩‍👧!", ["wow", "👩‍👩‍👧", "!"]),
        ("[PAD] <unk> [/]", ["[", "PAD", "]", "<", "unk", ">", "[", "/", "]"]),
        ("a_b 3.5", ["a_b", "3", ".", "5"]),
        ("a\u200bb\x1b", ["a", "\u200b", "b", "\x1b"]),
    ],
)
def test_pieces(text: str, expected: list[str]) -> None:
    assert [*train([text], EVERY).encode(text).tokens.pieces] == expected


# Kinds of space, and what may or may not be one grapheme with it: where that ends decides where a piece does.
COMBINING = (
    *" \t\n\r\xa0\u3000\u2028\x85\u200b\u200c\u200d\u0301\u0903\u0e33\u093f\u094d\u0915\u0600\u06dd\u200f\ufeff",
    *"\u1100\u1161\u11a8\uac00\U0001f1e6\U0001f1e7\U0001f468\U0001f3fb\ufe0f\uff9e\U000e0061\x00漢ひー",
    *("a", "b", "1", "_", "'", "’", ".", "<br />", "<br>", "<br/", ">"),
)


def in_three_steps(text: str) -> list[str]:
    """The pieces of a text by simpler expressions that take twice as long."""
    han = r"\p{Han}\p{Hiragana}\p{Katakana}"
    piece = rf"[{han}]|[[\p{{L}}\p{{N}}\p{{M}}_]&&[^{han}]]+(?:['’][[\p{{L}}\p{{N}}\p{{M}}]&&[^{han}]]+)*|\X"
    steps = [
        pre_tokenizers.Split(Regex(r"<br\s*/?>"), "removed"),
        pre_tokenizers.Split(Regex(piece), "isolated"),
        pre_tokenizers.Split(Regex(r"\s+"), "removed"),
    ]
    return [found for found, _ in pre_tokenizers.Sequence(steps).pre_tokenize_str(text)]


VOCABULARIES = (train(["a word"], EVERY), load(Path(attnviz.__file__).parent / "data/models/multi-8"))


@given(st.lists(st.sampled_from(COMBINING) | st.characters(exclude_categories=["Cs"])).map("".join))
@example(" \u0301a")
@example("\u0600 \u0301a")
def test_pieces_are_those_of_three_simpler_steps(text: str) -> None:
    for vocabulary in VOCABULARIES:
        try:
            found = vocabulary.encode(text).tokens.pieces
        except InvalidText:
            found = ()
        assert list(found) == in_three_steps(text)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(texts, st.sampled_from(["word", "bpe"]))
def test_offsets_point_back_into_the_text(text: str, kind: TokenizerKind) -> None:
    vocabulary = train([text, "one word"], VocabularyOptions(tokenizer=kind, min_frequency=1))
    try:
        tokens = vocabulary.encode(text).tokens
    except InvalidText:
        assert not text.replace("<br />", "").strip() or not any(map(str.isprintable, text))
        return
    last = 0
    for piece, (start, end) in zip(tokens.pieces, tokens.offsets, strict=True):
        assert last <= start < end
        assert piece == text[start:end]
        last = end
    assert not any(tokens.special)
    assert not any(tokens.unknown)  # the vocabulary was made from this very text


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_same_texts_same_bytes(kind: TokenizerKind) -> None:
    spec = VocabularyOptions(tokenizer=kind, min_frequency=1)
    corpus = ["the film was not bad", "not a bad film", "彼は泣いた"]
    assert train(corpus, spec).to_json() == train(corpus, spec).to_json()


def test_size_and_frequency_bound_the_vocabulary() -> None:
    specs = {"ab": VocabularyOptions(min_frequency=2), "a": VocabularyOptions(size=4, min_frequency=1)}
    for words, spec in specs.items():
        found = json.loads(train(["a a a b b c"], spec).to_json())["model"]["vocab"]
        assert found.keys() == {PADDING, UNKNOWN, CLASSIFY, *words}


def test_counts_are_counts() -> None:
    assert train(["a b"], EVERY).count(["a a b", "c"] * 300) == {"a": 600, "b": 300, UNKNOWN: 300}


def test_saved_vocabulary_is_read_by_hugging_face_and_by_us(tmp_path: Path) -> None:
    vocabulary = train(["the cat sat", "[PAD] it is"], EVERY)
    (tmp_path / "tokenizer.json").write_text(vocabulary.to_json(), encoding="utf-8")
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("the cat")
    assert theirs.ids == list(vocabulary.encode("the cat").ids)
    again = load(tmp_path)
    assert again.to_json() == vocabulary.to_json()
    assert again.encode("[PAD] it").tokens.special == (False, False, False, False)  # set after every load


def test_a_long_text_takes_no_longer_per_token() -> None:
    """With a list of the whole text made anew for each token this would not end within the hour."""
    assert train(["a b c d"], EVERY).encode("a b c d " * 50_000).n_tokens == 200_000


@pytest.mark.parametrize("text", ["", "  \n\t", "<br /><br />", "\u2003"])
def test_a_text_without_tokens_is_refused(text: str) -> None:
    with pytest.raises(InvalidText, match="no tokens in the text"):
        train(["words"], EVERY).encode(text)
    with pytest.raises(InvalidText, match="no tokens in the text"):
        train([text], EVERY)
    for words, found in (("\ud800 x", "x"), ("x", "\ud800 x")):
        with pytest.raises(InvalidText, match="half of a surrogate pair"):
            train([words], EVERY).encode(found)


@pytest.mark.parametrize("content", [b"", b"{}", b"\x80\x81", b"not json"])
def test_a_file_that_is_no_vocabulary_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(InvalidModel, match=r"tokenizer\.json"):
        load(file)
    for name in ("missing", "a\0b"):
        with pytest.raises(InvalidModel, match="cannot read"):
            load(tmp_path / name)


LETTERS = train(["a b c d e f g h"], EVERY)  # three special tokens are before them: a is 3
CLASSIFYING = train(["a b c d e f g h"], EVERY, classify=True)


def test_a_marker_is_the_first_of_the_tokens_and_no_part_of_the_text() -> None:
    encoding = CLASSIFYING.encode("a x b c", max_tokens=3)
    assert encoding.ids == (2, 3, 1)
    assert encoding.tokens.pieces == (CLASSIFY, "a", "x")
    assert encoding.tokens.offsets == ((0, 0), (0, 1), (2, 3))
    assert encoding.tokens.special == (True, False, False)
    assert encoding.tokens.unknown == (False, False, True)
    assert encoding.n_tokens == 4
    vocabulary = train(["[CLS] [PAD] a"], EVERY, classify=True)  # markers that stand in the text are text
    encoding = vocabulary.encode("[CLS] [PAD]")
    assert encoding.tokens.pieces == (CLASSIFY, "[", "CLS", "]", "[", "PAD", "]")
    assert (encoding.ids.count(2), encoding.ids.count(0)) == (1, 0)
    assert next(vocabulary.ids(["[CLS] [PAD]"])).tolist() == list(encoding.ids)


@given(st.lists(st.text("abcx ", min_size=1, max_size=12), max_size=9), st.booleans(), st.integers(1, 4))
def test_many_texts_have_the_ids_of_each(texts: list[str], classify: bool, batch: int) -> None:
    """Here a text may also be without tokens: then it has its markers or nothing."""
    vocabulary = CLASSIFYING if classify else LETTERS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnviz.models.tokenizer.BATCH", batch)
        found = [ids.tolist() for ids in vocabulary.ids(iter(texts))]
    blank = [2] if classify else []
    assert found == [list(vocabulary.encode(text).ids) if text.strip() else blank for text in texts]


@pytest.mark.parametrize("classify", [False, True])
@pytest.mark.parametrize(
    ("max_tokens", "keep", "expected"),
    [
        (None, "head-tail", "abcdefg"),
        (6, "head-tail", "abcefg"),
        (5, "head-tail", "abcfg"),
        (1, "head-tail", "a"),
        (5, "head", "abcde"),
    ],
)
def test_what_is_classified_is_shown(classify: bool, max_tokens: int | None, keep: KeepKind, expected: str) -> None:
    """A marker before the text counts as one of the tokens that are kept."""
    vocabulary, text = (CLASSIFYING if classify else LETTERS), "A b C d E f G"
    most = None if max_tokens is None else max_tokens + classify
    encoding = vocabulary.encode(text, most, keep)
    shown = encoding.tokens
    assert "".join(shown.pieces[classify:]).lower() == expected
    assert tuple(text[start:end] for start, end in shown.offsets[classify:]) == shown.pieces[classify:]
    assert cut_text(next(vocabulary.ids([text])), most, keep, int(classify)).tolist() == list(encoding.ids)
    assert encoding.n_tokens == 7


def test_a_vocabulary_that_cannot_classify_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(LETTERS.to_json(), encoding="utf-8")
    assert load(tmp_path, classify=True).encode("a").ids == (2, 3)
    assert load(tmp_path).encode("a").ids == (3,)
    (tmp_path / "tokenizer.json").write_text(LETTERS.to_json().replace(CLASSIFY, "[OTHER]"), encoding="utf-8")
    with pytest.raises(InvalidModel, match=r"tokenizer\.json lacks \[CLS\]"):
        load(tmp_path, classify=True)
    assert load(tmp_path).encode("a").ids == (3,)
