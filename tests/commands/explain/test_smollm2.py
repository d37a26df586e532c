"""What is known of a real decoder: its induction heads, and the heads that name the one who is given a drink.

All of it is held against SmolLM2-135M in four bits, which a package carries.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import attnviz
from attnviz.commands.explain.answer.why import explain_answer, find_reason
from attnviz.models.decomposition import Decomposable
from attnviz.models.decomposition.stream import Stream
from attnviz.records.attribution import HeadName, Question, Writer
from attnviz.renderers.terminal.show import Screen, lines
from tests.pretrained import decoder
from tests.process import ROOT

WORDS = (
    "river lemon seven window honest paper drum cloud market silver yellow pencil garden winter bottle island mirror"
)
GIVEN = "When Mary and John went to the store, John gave a drink to"
INDUCTION = (HeadName(18, 6), HeadName(17, 3), HeadName(17, 4))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def smollm2() -> Decomposable:
    model = decoder()
    assert isinstance(model, Decomposable)
    return model


@pytest.fixture(scope="module")
def repeated(smollm2: Decomposable) -> Stream:
    """Words that come twice."""
    return take_apart(smollm2, f" {WORDS} {WORDS}")


@pytest.fixture(scope="module")
def given(smollm2: Decomposable) -> Stream:
    return take_apart(smollm2, GIVEN, against=" John")


def take_apart(model: Decomposable, text: str, **question: Any) -> Stream:
    return model.take_apart(text, "text", Question(**question))


@pytest.mark.parametrize("head", INDUCTION, ids=str)
def test_induction_heads_look_for_what_one_head_wrote(repeated: Stream, head: HeadName) -> None:
    """Where words come twice, they look behind the first time, because 16.0 wrote there what stood before."""
    n_words = len(WORDS.split())
    assert len(repeated.subject.ids) == 2 * n_words
    for query in range(n_words + 4, 2 * n_words - 1, 4):
        key = query - n_words + 1
        look = find_reason(repeated, head, query, key)
        assert look["weight"] > 0.5
        assert (look["named"], look["source"]) == ("16.0", key - 1)
        assert look["weight_without"] <= 0.03
        assert len(look["controls"]) == 16 * 9 + (head.layer - 16) * 9 - 1  # the other earlier heads
        assert np.quantile(look["controls"], 0.1) > 0.8 * look["weight"]
        assert look["n_passing"] <= 3


def test_a_reason_takes_half_of_a_look_of_ordinary_text(smollm2: Decomposable, shared: Path) -> None:
    review = pq.read_table(shared / "data" / "imdb" / "test.parquet")["text"][3].as_py()
    stream, rng, found = take_apart(smollm2, " ".join(review.split()[:30])), np.random.default_rng(4), []
    for layer in range(1, len(stream.blocks), 2):
        head, query = HeadName(layer, int(rng.integers(9))), int(rng.integers(12, len(stream.subject.ids)))
        weights = stream.weights_of(head, query)
        look = find_reason(stream, head, query, int(weights.argmax()))
        if look["named"] is None:
            continue
        found.append(look["kind"])
        assert look["weight_without"] <= weights.max() / 2
        if look["kind"] != "place":
            named = Writer(look["kind"], look["written_in"], int(look["named"].partition(".")[2] or 0))
            assert stream.attend_without(head, query, [named])[0, look["key"]] <= weights.max() / 2
    assert {"word", "place"} <= {*found}


def test_the_heads_that_name_who_is_given_a_drink(given: Stream) -> None:
    found = explain_answer(given)
    assert (found.target.name, found.target.against) == (" Mary", " John")
    assert found.total == pytest.approx(found.logit, rel=1e-5)
    assert found.logit == pytest.approx(6.12, abs=0.01)
    heads = {look["head"]: look for look, *_ in found.heads}
    read = {name: look["key_token"].strip() for name, look in heads.items()}
    assert {name: read[name] for name in ("23.3", "24.4", "23.0")} == {"23.3": "John", "24.4": "Mary", "23.0": "Mary"}
    assert heads["23.3"]["from_source"] == pytest.approx(2.87, abs=0.02)
    assert heads["24.4"]["from_source"] == pytest.approx(-1.17, abs=0.02)
    assert heads["23.0"]["written"] > 0.8
    assert abs(heads["23.0"]["removal"]) < 0.1  # what it writes others make up for


def test_a_word_is_taken_with_its_space(smollm2: Decomposable, given: Stream) -> None:
    """Both are tokens; the one that the model is rather going to write is meant."""
    plain, spaced = take_apart(smollm2, GIVEN, target="Mary", against="John").subject, given.subject
    assert (plain.target, plain.answer, plain.against) == (spaced.target, spaced.answer, spaced.against)


def test_every_row_of_weights_is_the_sum_of_who_wrote_the_keys(given: Stream) -> None:
    rng = np.random.default_rng(0)
    for layer in range(len(given.blocks)):
        head, query = rng.integers(9), rng.integers(1, len(given.subject.ids))
        given.split_scores(HeadName(layer, int(head)), int(query))  # raises where it misses a weight by 5e-6
    for answer, against in rng.choice(len(given.logits), (20, 2)):
        given.split_logit(int(answer), int(against))  # or a logit by a share of 1e-5


def test_the_documents_example_is_what_is_printed() -> None:
    decoder()  # or skip
    text = (ROOT / "docs" / "explanations.md").read_text(encoding="utf-8")
    asked = re.findall(r'attnviz explain --model smollm2 "(.*)"$', text, re.MULTILINE)[0]
    screen, quote = re.findall(r"```text\n(.*?)```", text, re.DOTALL)[0], re.findall("^> (.*)", text, re.MULTILINE)
    explained = attnviz.explain("smollm2", asked).report
    assert "".join(lines(explained, "answer", Screen(80))) == screen
    assert " ".join(quote) in " ".join("".join(lines(explained, "full", Screen(80))).split())
