"""Which passages an answer needs: what is knocked out, what chance does, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from attnviz.commands.sources.passages import split_prompt
from attnviz.commands.sources.report import READ
from attnviz.words import say
from tests import pretrained as made
from tests.attacks.endings import RunHere, document, refused, worked
from tests.browser import Open, check_axe

pytest.importorskip("transformers", reason=made.NEEDS)

from attnviz.models.huggingface.generating import Continuation

CAUSAL = "AutoModelForCausalLM"
FACTS = "the cat sat on the mat\nit was a good film\nthe acting was not good\nthe film was"
MARKED = "Read:\n<doc id='1'>one\n\nand on</doc> <doc>two</doc>\n"
CODES = {"Anna": 4821, "Boris": 1937, "Clara": 7264, "David": 5510}
FACTS_OF_CODES = "\n".join(
    f"The code of {name}'s locker is {code}. The lake is frozen." for name, code in CODES.items()
)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.saved(tmp_path_factory.mktemp("of") / "llama", "llama", auto=CAUSAL, **made.ENDLESS)


def test_a_passage_is_hidden_from_what_stands_behind_the_text_alone(llama: Path) -> None:
    """Against one pass over all of it, under a mask for question and answer."""
    model = made.opened(llama)
    _, read = model.read_once(FACTS)
    start, hidden, answer = len(read.ids) - 4, [5, 6, 7], (5, 9)
    ids = torch.tensor([[*read.ids, *answer[:-1]]])
    mask = torch.full((ids.shape[1],) * 2, torch.finfo(torch.float32).min).triu(1)
    mask[start:, hidden] = torch.finfo(torch.float32).min
    with torch.inference_mode():
        logits = model.loaded.headed(ids, attention_mask=mask[None, None]).logits[0, -2:]
    expected = logits.double().log_softmax(dim=-1)[[0, 1], list(answer)].numpy()
    ahead = Continuation(model, read.ids, start)
    plain = ahead.score(answer)
    assert np.abs(ahead.score(answer, hidden) - expected).max() < 1e-5
    assert np.array_equal(ahead.score(answer), plain), "nothing is left in the cache"
    assert np.abs(plain - expected).max() > 1e-3


def test_attention_on_passages_is_that_of_the_queries_that_chose_the_answer(llama: Path) -> None:
    model = made.opened(llama)
    _, read = model.read_once(FACTS)
    answer = (5, 9)
    found = Continuation(model, read.ids, len(read.ids) - 3).look(answer, [[3, 4], [1]])
    model.loaded.headed.set_attn_implementation("eager")
    with torch.inference_mode():
        ids = torch.tensor([[*read.ids, answer[0]]])
        weights = torch.stack(model.loaded.headed(ids, output_attentions=True).attentions)
    model.loaded.headed.set_attn_implementation("sdpa")
    expected = weights[:, 0, :, -2:, [3, 4]].sum(-1).mean(-1)
    assert np.abs(found[..., 0] - expected.numpy()).max() < 1e-6


def test_a_model_that_would_end_at_once_writes_a_token(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As chat models do that are asked without their template."""
    model = made.opened(llama)
    _, read = model.read_once(FACTS)
    ahead = Continuation(model, read.ids, len(read.ids) - 3)
    first, *_ = ahead.write(3)
    monkeypatch.setattr(model.loaded.headed.generation_config, "eos_token_id", first)
    written = ahead.write(3)
    assert written
    assert first not in written


@pytest.mark.parametrize("kind", ["mistral", "mamba"])
def test_a_model_that_reads_past_its_mask_is_refused(kind: str, tmp_path: Path, run_here: RunHere) -> None:
    """One attends within a window of its own, one carries a state on."""
    made.saved(tmp_path / kind, kind, auto=CAUSAL, **made.ENDLESS)
    run = run_here("sources", "--text", FACTS, "--model", kind, "--length", "2")
    refused(run, f"{kind} does not attend as it is told")


def test_what_a_random_model_writes_has_no_source(llama: Path, run_here: RunHere) -> None:
    asked = ("sources", "--text", FACTS, "--model", llama, "--length", "3")
    found = document(worked(run_here(*asked, "--json")))
    lost = f"loses at most {max(row['loss'] for row in found['passages']):.1f} nats without one"
    assert lost in " ".join(worked(run_here(*asked)).stdout.split())
    for row, losses in zip(found["passages"], np.transpose(found["losses"]), strict=True):
        assert row["loss"] == pytest.approx(losses.sum())
        assert row["needed"] == (row["random"] is not None and row["loss"] >= row["random"] + 1)


def test_who_looks_at_many_passages_finds_none_by_chance(
    llama: Path, run_here: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is one more knock-out like those that it is held against: of 30, two or three lose more than 11 others."""
    rng, score = np.random.default_rng(0), Continuation.score

    def noisy(self: Continuation, answer: tuple[int, ...], hidden: tuple[int, ...] | None = ()) -> np.ndarray:
        return score(self, answer, hidden) + (rng.normal() * 9 if hidden else 0)

    monkeypatch.setattr(Continuation, "score", noisy)
    asked = ("sources", "--text", "the " + "film\n" * 31, "--model", llama, "--length", "2", "--json")
    found = document(worked(run_here(*asked)))
    beyond = [row["random"] is not None and row["loss"] >= row["random"] + 1 for row in found["passages"]]
    assert (len(beyond), sum(beyond) > 1) == (30, True)
    assert not any(row["needed"] for row in found["passages"])
    rng = np.random.default_rng(0)  # the same run again
    assert "No passage stands out from as many" in " ".join(worked(run_here(*asked[:-1])).stdout.split())


def test_the_one_passage_that_says_it_is_found_and_none_where_none_does(run_here: RunHere) -> None:
    made.packaged("smollm2")
    asked = ("sources", "--text", FACTS_OF_CODES, "--draws", "3", "--json", "--question")
    question = "Question: What is the code of Clara's locker? Answer: The code of Clara's locker is"
    found = document(worked(run_here(*asked, question, "--length", "6")))
    written = "".join(found["answer"])
    said = [number for number, code in enumerate(CODES.values()) if str(code) in written]
    assert [row["passage"] for row in found["passages"] if row["needed"]] == said
    assert said, "even where it is the wrong one, it is one of the prompt's"
    found = document(worked(run_here(*asked, "The capital of France is", "--answer", "Paris")))
    assert [row["passage"] for row in found["passages"] if row["needed"]] == []
    of_one_letter = ("sources", "--text", "a\nb\nc", "--chat", "--lang", "zh")
    assert "没有哪一段突出：其余段落太短" in worked(run_here(*of_one_letter)).stdout


def test_a_space_that_ends_a_prompt_is_said(llama: Path, run_here: RunHere) -> None:
    asked = ("sources", FACTS, "--length", "1", "--question")
    runs = (*asked, "a film"), (*asked, "a film "), *((name, "a film ") for name in ("heatmap", "explain", "attribute"))
    said = [worked(run_here(*run, "--model", llama)).stderr.count("a text ends in a space") for run in runs]
    assert said == [0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "no prompt"),
        (("--text", "one line"), "the prompt has 1 passage"),
        (("--text", "a", "--text", "b", "--passages", "lines"), "--passages lines of 2 texts"),
        (("--text", MARKED, "--passages", "marked"), "nothing is asked behind the passages"),
        (("--text", FACTS, "--draws", "1"), "--draws: write a whole number that is at least 2"),
        (("--text", FACTS, "--model", "multi"), "reads texts and writes none"),
        (("--text", FACTS, "--answer", ""), "--answer is empty"),
        (("--text", FACTS, "--question", " "), "--question is empty"),
        (("--text", FACTS, "--question", "the film was"), "--question is the last passage, too"),
        (("--text", FACTS, "--max-tokens", "5"), "of which --max-tokens leaves 3"),
    ],
)
def test_what_cannot_be_asked(options: tuple[str, ...], said: str, llama: Path, run_here: RunHere) -> None:
    model = () if "--model" in options else ("--model", str(llama))
    refused(run_here("sources", *options, *model), said)


def test_passages_are_paragraphs_where_there_are_some_else_lines_or_texts() -> None:
    text = "\n\na b\nc\n\n  d e \n\nwhat?\n"
    assert [text[first:last] for first, last in split_prompt([text], "auto", None).passages] == ["a b\nc", "d e"]
    assert len(split_prompt([text], "lines", None).passages) == 3
    prompt = split_prompt(["a\n", "", "b"], "auto", "what?")
    assert [prompt.text[first:last] for first, last in prompt.passages] == ["a", "b"]
    assert prompt.text.endswith("b\n\nwhat?")
    prompt = split_prompt([MARKED + "What?"], "marked", None)
    assert [prompt.text[first:last] for first, last in prompt.passages] == ["one\n\nand on", "two"]
    assert prompt.text == MARKED + "What?"


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1440])
def test_a_word_of_the_answer_shades_each_passage(width: int, llama: Path, run_here: RunHere, opened: Open) -> None:
    asked = ("sources", "--text", FACTS, "--model", llama, "--answer", "cat sat")
    losses = np.array(document(worked(run_here(*asked, "--format", "html", "--json")))["losses"])
    page = opened(Path("sources/attention.html").absolute(), viewport={"width": width, "height": 900})
    answer, passages = page.page.locator(".passage").all()
    texts = FACTS.splitlines()[:-1]
    assert passages.locator(".word").all_inner_texts() == [f"{n}: {text}" for n, text in enumerate(texts)]
    assert passages.locator(".whole").first.bounding_box()["x"] >= passages.bounding_box()["x"] + 2, "room for a frame"
    answer.locator(".word").last.press("Enter")
    shades = passages.locator(".word").evaluate_all("(all) => all.map((each) => each.style.backgroundColor)")
    assert len({*shades} - {""}) == len(texts)
    most = losses[-1, np.abs(losses[-1]).argmax()]
    assert float(page.page.locator(".listed .number").first.inner_text()) == pytest.approx(most, rel=5e-3)
    check_axe(page, "sources")


def test_all_but_texts_is_said_in_chinese(llama: Path, run_here: RunHere) -> None:
    asked = ("sources", "--text", FACTS, "--model", llama, "--length", "3", "--lang", "zh")
    said = worked(run_here(*asked)).stdout
    for text in FACTS.splitlines():
        said = said.replace(text, "")
    assert re.findall("[a-z]{2,} [a-z]{2,}", re.sub("“.*?”", "", said, flags=re.DOTALL)) == []
    assert say(READ, "zh") != READ
    title = "gpt2 answers “by my cat”, from\xa0passage\xa01, passage\xa02 and 3 more"
    assert say(title, "zh") == "gpt2 回答“by my cat”，出自段落 1、段落 2，还有 3 个"
