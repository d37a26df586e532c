"""Texts that a vocabulary does not hold: every command says so, and from half of the tokens on none gives a verdict."""

from pathlib import Path

import pytest

from attnviz.errors import InvalidText
from attnviz.report import Report
from attnviz.running import Progress, Result
from tests.events import data, report, result
from tests.made import notes
from tests.starting import attribute, compare, heatmap, predict, survey

pytestmark = pytest.mark.usefixtures("undrawn")
STRANGE = "这部电影 太好看了"  # 8 tokens, none of them known
HALF, LESS = "这 a 部 film", "a 这 good film"


def test_a_text_of_unknown_words_has_no_label() -> None:
    found = data(predict_texts(STRANGE, HALF, LESS, "a good film"))["predictions"]
    assert [each["label"] for each in found] == [None, None, "positive", "positive"]
    assert [each["probability"] is None for each in found] == [True, True, False, False]
    assert [each["tokens_unknown"] for each in found] == [8, 2, 1, 0]
    shown = report(predict_texts(STRANGE, HALF, LESS, "a good film"))
    (table,) = (table for table in shown.tables if table.name == "predictions")
    assert [row[1] for row in table.rows] == ["-", "-", "positive", "positive"]
    assert "11 of 19 tokens, in 3 of 4 texts" in notes(shown)
    assert "Not judged: 2 of 4 texts" in notes(shown)
    assert "attnviz train" in notes(shown)
    assert "UNK" not in notes(report(predict_texts("a good film")))


def predict_texts(*texts: str) -> Result:
    return result(predict(text=texts))


def test_what_is_not_judged_counts_for_no_accuracy(tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    file.write_text("text,label\na good film,1\n这部电影,0\na bad film,0\n", encoding="utf-8")
    predicted = result(predict(dataset=str(file)))
    found = data(predicted)
    assert (found["scored"], found["texts"]) == (2, 3)
    assert "Not judged: 1 of 3 texts" in notes(report(predicted))
    compared = result(compare(models=("single", "multi"), dataset=str(file), out=str(tmp_path)))
    assert data(compared)["models"][0]["accuracy"] == 1.0
    assert " of 2 judged (others: half unknown) and single" in notes(report(compared))


def test_models_that_all_know_no_word_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(InvalidText, match="none of single, multi:8 reads the text"):
        compare_text(STRANGE, tmp_path / "1")
    said = notes(compare_text("a bland but pleasant film", tmp_path / "2"))  # in the words of an explanation
    assert "single has no clear answer: ‘negative’ (52 %) or ‘positive’ (48 %) · multi:8 has no clear answer: " in said


def test_a_model_that_knows_no_word_is_not_compared(tmp_path: Path) -> None:
    """Its maps of 8 [UNK] stood beside those of a model that reads Chinese, and the heads of both were called alike."""
    events = list(compare(models=("single", "multi-zh"), text=(STRANGE,), out=str(tmp_path)))
    found = result(iter(events))
    assert [each["name"] for each in data(found)["models"]] == ["multi-zh"]
    assert not (tmp_path / "single.safetensors").exists()
    (told,) = (said for event in events if isinstance(event, Progress) for said in event.notices if "leaving" in said)
    assert told == "leaving out single: half of the tokens of each text or more are not in the vocabulary"


def compare_text(text: str, out: Path) -> Report:
    return report(result(compare(models=("single", "multi"), text=(text,), out=str(out))))


def test_an_answer_to_unknown_words_is_not_explained(tmp_path: Path) -> None:
    with pytest.raises(InvalidText, match=r"8 of 8 tokens of .* are not in the model's vocabulary"):
        list(attribute(text=(STRANGE,), out=str(tmp_path)))
    card = result(attribute(text=(STRANGE, "good", "a good film", "a bad film"), card=True))
    assert [notice.partition(":")[0] for notice in card.notices[:2]] == ["leaving out 1 of 4 texts"] * 2
    with pytest.raises(InvalidText, match="nothing is left"):
        list(attribute(text=(STRANGE,), card=True))


def test_heads_get_no_names_from_unknown_words(tmp_path: Path) -> None:
    for text, names in ((STRANGE, {"-"}), (LESS, None)):
        found = report(result(heatmap(text=(text,), out=str(tmp_path / "maps"))))
        (table,) = (table for table in found.tables if table.role == "heads")
        looks = {row[[column.header for column in table.columns].index("looks at")] for row in table.rows}
        assert looks == names if names else "-" not in looks
        assert ("heads get no names" in notes(found)) == bool(names)
    for text, is_labelled in ((STRANGE, False), ("a good film about the sea", True)):
        surveyed = result(survey(text=(text,) * 12, model="multi:8", out=str(tmp_path / text[:3])))
        labels = [head["label"] for head in data(surveyed)["heads"]]
        assert any(labels) == is_labelled
