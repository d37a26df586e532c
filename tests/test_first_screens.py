"""The first screen of a command holds the answer and no more: so many lines and numbers at 80 columns."""

import re

import pytest
from rich.cells import cell_len

from attnviz.models.huggingface.packaged import MINILM, SMOLLM2
from attnviz.words import say
from tests.attacks.endings import RunHere, worked

pytestmark = pytest.mark.usefixtures("undrawn")
NUMBER = re.compile(r"(?<![\w:.])[-+~]?(\d+(,\d{3})*)?\.?\d+(?![\w:])")  # none within a name such as multi:8
REVIEW = "This movie was boring but my sister loved it, and the acting (the whole cast) saved the rest of it."
LONG = " ".join([REVIEW] * 12)
VERY_LONG = " ".join([REVIEW] * 24)
UNKNOWN = " ".join(["zyx qwop blorf , snarg glimp drax"] * 36)
WIDE = " ".join(["Donaudampfschifffahrtselektrizitätenhauptbetriebswerk"] * 30)
CHINESE = "这部电影很好看但是我姐姐不喜欢，" * 40
EMOJI = "👩\u200d🚀🎬한국영화" * 20
LIMITS = {"heatmap": (25, 60), "compare": (18, 25), "explain": (20, 25), "survey": (30, 60), "predict": (15, 20)}


@pytest.mark.parametrize(
    "asked",
    [
        ("heatmap", "good"),
        ("heatmap", LONG),
        ("heatmap", VERY_LONG),
        ("heatmap", UNKNOWN),
        ("heatmap", WIDE),
        ("heatmap", CHINESE, "--model", "multi-zh"),
        ("heatmap", EMOJI),
        ("heatmap", REVIEW, "--format", "html"),  # with its answer
        ("heatmap", REVIEW, "--merge", "words", "--drop-first"),
        ("compare", "single", "multi", "--text", REVIEW),
        ("compare", "multi", "--text", REVIEW),
        ("compare", "single", "multi:2", "multi:4", "multi", "random:16", "--text", REVIEW),
        ("explain", REVIEW),
        ("explain", WIDE),
        ("explain", REVIEW, "--by-hand"),
        ("survey", "--dataset", "sample", "--split", "test[:8]"),
        ("survey", "--dataset", "sample", "--split", "test[:8]", "--ablate", "zero,mean,uniform,queries"),
        ("predict", REVIEW),
        ("predict", WIDE, "--without", "1.0,0.1"),
        ("predict", CHINESE * 10),
        ("predict", "--dataset", "sample", "--without", "0.1"),
        ("predict", "--dataset", "sample", "--split", "test"),
    ],
)
def test_lines_and_numbers_of_a_first_screen(
    run_here: RunHere, asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnviz.commands.survey.facts.N_RANDOM", 3)
    ran, (n_lines, n_numbers) = worked(run_here(*asked)), LIMITS[asked[0]]
    shown = ran.stdout
    beside = ran.stderr.splitlines() if asked[0] == "heatmap" else []  # notes on how long it takes, and what is written
    assert len(shown.splitlines() + beside) <= n_lines
    assert len(NUMBER.findall(shown)) <= n_numbers
    assert max(map(cell_len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    "asked",
    [
        ("heatmap", REVIEW),
        ("heatmap", REVIEW[:25], "--causal", "--table", "heatmap", "--pick", "0.1"),
        ("heatmap", LONG, "--causal", "--table", "full", "--pick", "0.1"),
        ("heatmap", REVIEW, "--table", "heads", "--measure", "all"),
        ("compare", "single", "multi", "--dataset", "sample", "--split", "test"),
        ("compare", "single", "multi:2", "multi:4", "multi", "random:16", "--text", REVIEW),
        ("explain", REVIEW),
    ],
)
def test_a_screen_in_chinese_says_nothing_in_english(run_here: RunHere, asked: tuple[str, ...]) -> None:
    shown = worked(run_here(*asked, "--lang", "zh")).stdout
    words = {*re.findall("[a-z]{3,}", re.sub("--.*", "", shown).lower())} - {*re.findall("[a-z]+", REVIEW.lower())}
    assert words <= {"multi", "single", "random", "sample", "test", "train", "logit", "mlp", "attnviz", "survey", "unk"}


def test_what_heads_of_a_model_are_known_to_do_is_said_in_chinese() -> None:
    for model in (MINILM, SMOLLM2):
        assert not re.search("[a-z]{3}", say(model.known_heads, "zh"))
