"""The minimal pairs are forty, each of two texts, and no model was trained on one of them."""

import pytest

from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from tests.benchmarks.pairs import load_pairs


@pytest.mark.parametrize("data", ["sample", "imdb"])
def test_no_pair_is_among_the_texts_that_models_learn_from(data: str, request: pytest.FixtureRequest) -> None:
    source = f"{request.getfixturevalue('shared')}/data/imdb" if data == "imdb" else data
    pairs = load_pairs()
    sentences = {pair[side].casefold() for pair in pairs for side in ("positive", "negative")}
    assert len(pairs) == 40
    assert len(sentences) == 80
    texts = {text.strip().casefold() for text in load_corpus(TextOptions(dataset=source, split="train")).texts}
    assert not sentences & texts
