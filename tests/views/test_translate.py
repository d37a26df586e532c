"""What reports say in Chinese: sentences, titles, axes, names of heads. Tokens and what programs read stay."""

import re
from dataclasses import replace

import numpy as np
import pytest

from attnviz.monitor.report import describe_frame
from attnviz.monitor.run import SIDE
from attnviz.renderers.figure.files import plan_picture
from attnviz.report import Chart, Charts, FigureStyle, HeatmapGrid, Report
from attnviz.views.translate import translate
from attnviz.words import say
from tests.attacks.endings import RunHere, worked
from tests.made import random_maps, report

pytestmark = pytest.mark.usefixtures("undrawn")
TOKENS = ("head", "layer 0, head 1", "trained · causal", "key", "猫")
# names, formulas and options
KEPT = {"multi", "exp", "softmax", "logit", "MLP", "head", "heads", "heatmap", "top", "full", "table"}
KEPT |= {"single", "JSD", "Vaswani", "log", "peak", "share", "bytes", "text", "dataset"}
SENTENCE = "the film was not good"


def test_a_form_is_known_whatever_stands_in_its_places() -> None:
    assert say("layer 12, head 3", "zh") == "第 12 层，头 3"
    assert say("trained · “head · causal” · 7 tokens", "zh") == "训练过 · “head · causal” · 7 个词元"
    assert say("previous token 0.2 95 %, 1.2 82 % and 2 more", "zh") == "前一个词 0.2 95 %, 1.2 82 %，还有 2 个"
    assert say("what 6 “很” attends to, heads of layer 1", "zh") == "6 “很” 在看什么，第 1 层的各头"
    assert say("nothing of the kind", "zh") == "nothing of the kind"


def test_a_shell_in_chinese_is_answered_so_unless_it_asks(run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_TW.UTF-8")
    command = ("compare", "single", "multi", "--text", SENTENCE)
    said = [worked(run_here(*command, *given)).stdout for given in ((), ("--lang", "en"))]
    assert ["测了什么" in each for each in said] == [True, False]


def test_notes_beside_the_results_are_said_in_chinese(run_here: RunHere) -> None:
    for command in ("heatmap --dataset sample --model random:2", "explain film --by-hand"):
        said = worked(run_here(*command.split(), "--lang", "zh")).stderr.splitlines()
        assert [line for line in said if not re.search("note: .*[^ -~]", line)] == []


def test_an_answer_that_is_a_token_is_no_label() -> None:
    sentence = "a decoder goes on with ‘positive’ (90 %)"
    assert say(sentence, "zh") == "a decoder 接着写“好评”（90 %）"
    assert say(sentence, "zh", kept=["positive"]) == "a decoder 接着写“positive”（90 %）"
    assert translate(replace(report(random_maps(TOKENS)), title=sentence, kept=("positive",)), "zh").title == (
        "a decoder 接着写“positive”（90 %）"
    )


def test_tokens_are_no_words_of_ours() -> None:
    english = report(random_maps(TOKENS))
    chinese = translate(english, "zh")
    assert translate(english, "en") is english
    grid = next(each for each in chinese.pictures if isinstance(each, HeatmapGrid))
    for one in grid.maps:
        assert one.rows == one.columns == TOKENS
        assert (one.row_axis, one.column_axis) == ("查询（在看的词）", "键（被看的词）")
    assert [one.title for one in grid.maps] == ["头 0", "头 1"]
    for before, after in zip(english.tables, chinese.tables, strict=True):
        if before.role != "heads":
            assert list(after.rows) == list(before.rows)


def test_how_small_maps_are_read_is_said_under_them() -> None:
    chinese = translate(describe_frame(0, np.ones((2, 2, SIDE**2))), "zh")
    plan = plan_picture(next(chinese.pictures), chinese, FigureStyle(lang="zh"))
    assert plan.lines[-1].text.endswith("没有标词元")


def test_a_chart_stays_what_can_be_looked_up() -> None:
    """Its groups are said in another language, and pictures find its table again by the chart itself."""
    chart = Chart("line", "title", "step", "share", ("x", "y", "group"), ((0, 1.0, "answer"),), groups=("answer",))
    english = Report("title", "", (Charts("curves", "", (chart,)),))
    (chinese,) = next(each for each in translate(english, "zh").pictures if isinstance(each, Charts)).charts
    assert len({chart, chinese}) == 2


ALIKE = "--measure peak --print markdown --text film --text"


@pytest.mark.parametrize(
    "options",
    [
        *("explain --by-hand --causal", "explain --table full", "heatmap --dpi 40"),
        *(f"compare multi --theory {ALIKE}", f"compare multi single {ALIKE}"),
    ],
)
def test_a_command_says_nothing_in_english(options: str, run_here: RunHere) -> None:
    command = (*options.split(), SENTENCE)
    said = worked(run_here(*command, "--lang", "zh")).stdout
    assert {*re.findall("[A-Za-z]{3,}", re.sub(r"\(.*png\)", "", said))} - KEPT - {*SENTENCE.split()} == set()
    assert run_here(*command, "--lang", "zh", "--json").stdout == run_here(*command, "--json").stdout
