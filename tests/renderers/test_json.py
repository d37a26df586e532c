"""The JSON document: every parser takes it, and float32 comes back as it was."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from attnviz.renderers.documents.json import chunks
from attnviz.report import Report
from tests.made import HOSTILE, random_maps, report


def of(**data: object) -> Report:
    return Report("title", "subtitle", (), data=data)


def parsed(*reports: Report) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document = json.loads("".join(chunks(reports)), parse_constant=refuse)
    assert isinstance(document, dict)
    return document


def only(**data: object) -> Any:
    (text,) = parsed(of(**data))["texts"]
    return text


def test_one_document_with_a_list_of_texts() -> None:
    assert parsed(of(a=1)) == {"schema": 1, "texts": [{"a": 1}]}
    assert parsed(of(a=1), of(a=2)) == {"schema": 1, "texts": [{"a": 1}, {"a": 2}]}
    assert parsed() == {"schema": 1, "texts": []}
    assert "".join(chunks([of(a=1)])).endswith("}\n")


@given(stn.arrays(np.float32, (3, 4), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_any_float32_comes_back_exactly(array: np.ndarray) -> None:
    assert np.array_equal(np.array(only(array=array)["array"], dtype=np.float32), array)


def test_float32_takes_no_more_digits_than_it_needs() -> None:
    assert "[0.1, 1.0, 1e-05]" in chunks([of(array=np.array([0.1, 1, 1e-5], dtype=np.float32))])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_json_does_not_have_is_refused(dtype: type, value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        list(chunks([of(array=np.array([value], dtype=dtype))]))
    with pytest.raises(ValueError, match="JSON"):
        list(chunks([of(number=value)]))


def test_arrays_of_every_shape() -> None:
    assert only(a=np.arange(6).reshape(1, 2, 3)) == {"a": [[[0, 1, 2], [3, 4, 5]]]}
    assert only(a=np.array([[True, False]])) == {"a": [[True, False]]}
    assert only(a=np.zeros((0, 3), dtype=np.float32), b=np.zeros((2, 0))) == {"a": [], "b": [[], []]}


@given(st.text(st.characters()) | st.sampled_from(HOSTILE))
def test_any_text_is_plain_ascii_and_comes_back(text: str) -> None:
    written = "".join(chunks([of(text=text, key=[text], inner={text: 1})]))
    assert not [sign for sign in written if sign > "~" or (sign < " " and sign != "\n")]
    clean = "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)
    assert json.loads(written)["texts"] == [{"text": clean, "key": [clean], "inner": {clean: 1}}]
    json.loads(written)["texts"][0]["text"].encode("utf-8")  # no surrogate is left for a strict parser to refuse


def test_no_chunk_is_longer_than_a_row() -> None:
    assert max(map(len, chunks([report(), report(random_maps(seed=1))]))) < 1000
