"""Surveys as users run them: one state whatever the schedule, and numbers that a plain loop gives."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.commands.batch.diff import diff
from attnviz.commands.batch.spec import DiffSpec
from attnviz.commands.survey import facts as survey_facts
from attnviz.commands.survey import plan as survey_plan
from attnviz.commands.survey.files import MOMENTS, NAME, Survey, load_files
from attnviz.commands.survey.heads import label_heads, top_words
from attnviz.commands.survey.measure import MASS_BITS
from attnviz.commands.survey.report import survey_report
from attnviz.commands.survey.spec import parse_shard
from attnviz.commands.survey.survey import OFFSET, SUCCESSOR, WORD, HeadCost, SurveyInfo, SurveyMeasure
from attnviz.errors import InputError, InvalidModel, InvalidOption, InvalidRecord
from attnviz.measures import measure_maps
from attnviz.measures.patterns import find_own_brackets
from attnviz.measures.shares import SCORES
from attnviz.models.loading import find_model
from attnviz.models.protocols import EVERY, MEASURED, LayersAndHeads
from attnviz.options import build
from attnviz.records import AttentionMaps
from attnviz.renderers.terminal.show import Screen, lines
from attnviz.running import Progress, Result
from attnviz.specs import ModelOptions, TextOptions
from attnviz.table.numbers import Numbers
from attnviz.text import Document, load_corpus
from attnviz.text.dataset import stream_corpus
from tests.commands.survey.made import FAST, change_info, open_model, rewrite, run, survey_of
from tests.events import data, report, result
from tests.made import content, known, record, tokens
from tests.starting import merge, survey
from tests.text.corpora import write_jsonl

LENGTH = SurveyMeasure("n_tokens", "tokens", "text")
TEXTS = "texts-00000.parquet"


def merged(out: Path, parts: Sequence[Path]) -> Result:
    return result(merge(parts=tuple(map(str, parts)), out=str(out)))


def leave(out: Path, **options: Any) -> Progress:
    """A survey that is left after six of its texts: how far it said that it was."""
    events: Any = survey(out=str(out), **{**FAST, **options})
    reached: Progress = next(event for event in events if isinstance(event, Progress) and event.done >= 6)
    events.close()
    assert len(load_files(out).texts) == 6
    return reached


@pytest.fixture(scope="module")
def reviews() -> tuple[str, ...]:
    return load_corpus(TextOptions(dataset="sample", split="train[:12]")).texts


def test_shards_in_any_order_and_a_run_that_was_left_give_the_bytes_of_one_run(tmp_path: Path) -> None:
    """Files and all: the pictures too."""
    options: Any = {"split": "train[:8]", "null": ("random,shuffled",), "layers": 2, "model": "random:2", "d_model": 8}
    found = run(tmp_path / "whole", **options)
    for number in (3, 1, 2, 5, 4):  # of the four blocks none is left for the last part
        run(tmp_path / f"part-{number}", shard=f"{number}/5", **options)
    merged(tmp_path / "merged", [tmp_path / f"part-{number}" for number in (2, 3, 5, 1, 4)])
    reached = leave(tmp_path / "left", **options)
    assert reached.if_left == (f"{tmp_path}/left holds 6 of 8 texts; the same command goes on",)
    assert not load_files(tmp_path / "left").is_whole
    killed = tmp_path / "killed"  # when two of three files were written: they hold what the last does not know of
    shutil.copytree(tmp_path / "left", killed)
    for name in ("texts-00000.parquet", "moments.parquet"):
        shutil.copy(tmp_path / "whole" / name, killed / name)
    run(killed, **options)
    again = [*survey(out=str(tmp_path / "left"), **{**FAST, **options})]
    said = f"{tmp_path}/left holds 6 of 8 texts, which are not measured again; --fresh begins anew"
    assert next(event.notices for event in again if isinstance(event, Progress)) == (said,)
    whole = content(tmp_path / "whole")
    assert set(whole) == {NAME, "moments.parquet", "texts-00000.parquet", "distance.png", "atlas.png"}
    assert content(tmp_path / "merged") == whole
    assert content(tmp_path / "left") == whole
    assert content(killed) == whole
    assert report(found).title == "random:2 over sample train[:8]"


def test_numbers_are_those_of_a_plain_loop(tmp_path: Path, reviews: tuple[str, ...]) -> None:
    found = run(tmp_path, measure=("all",))
    model = open_model()
    logs = np.log([len(model.attention(text).keys) for text in reviews])
    for name in ("entropy", "distance", "to_same_word", "vendi_score"):
        per_text = np.array(
            [measure_maps(model.attention(text, choice=MEASURED), [name])[0].values.ravel() for text in reviews]
        )
        numbers = data(found)["measures"][name]["numbers"]
        np.testing.assert_allclose([of["mean"] for of in numbers], per_text.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose([of["largest"] for of in numbers], per_text.max(axis=0), atol=1e-8)
        quantiles = np.quantile(per_text, (0.05, 0.5), axis=0, method="inverted_cdf")
        found_quantiles = [[of[f"quantile {share}"] for of in numbers] for share in (0.05, 0.5)]
        np.testing.assert_allclose(found_quantiles, quantiles, atol=1e-8)
        top = numbers[0]["texts"][0]
        slope = load_files(tmp_path).tables.numbers.select(measure=name).array("slope")[0]
        assert slope == pytest.approx(np.polyfit(logs, per_text[:, 0], 1)[0], rel=1e-4, abs=1e-6)
        rest = per_text[:, 0] - slope * logs  # a text is extreme for its length
        assert (top["index"], top["value"]) == (int(rest.argmax()), pytest.approx(per_text[rest.argmax(), 0], abs=1e-8))
        assert top["name"] == f"sample train[{top['index']}]"
        assert top["tokens"] == pytest.approx(np.exp(logs[top["index"]]))
        assert reviews[top["index"]].startswith(top["words"].removesuffix("…"))
    tokens = round(np.exp(logs).sum())
    assert data(found)["texts"] == {"name": "sample train[:12]", "number": 12, "tokens": tokens}


def column_of(found: Survey, measure: str, column: str) -> list[float]:
    return [row[column] for row in found.tables.numbers.select(measure=measure).rows()]


def test_attention_by_distance_holds_the_measures_of_neighbours(tmp_path: Path) -> None:
    """Of texts of one length, the mean over all queries is that over texts."""
    found = run(tmp_path, dataset=None, split=None, text=("a b c d e", "b c a e a"))
    curves = np.array(data(found)["by_distance"])
    for offset, name in ((-1, "to_previous"), (0, "to_self"), (1, "to_next")):
        means = [of["mean"] for of in data(found)["measures"][name]["numbers"]]
        np.testing.assert_allclose(curves[:, 16 + offset], means, atol=1e-8)


def test_words_say_what_receives_more_than_its_share(surveyed: Path, reviews: tuple[str, ...]) -> None:
    words = load_files(surveyed).attended.select(kind=WORD)
    n, _, *mass = words.integers(words.values).T
    assert n.sum() == load_files(surveyed).n_queries
    np.testing.assert_allclose(np.sum(mass, axis=1) / 2**30, n.sum(), rtol=1e-6)  # rows sum to 1
    assert words.select(name=".").array("n").tolist() == [sum(text.count(".") for text in reviews)]


Attend = Callable[[list[str], float], AttentionMaps]


class Made:
    """A model of two heads whose attention a function gives: of words, and of a share that is another by chance."""

    name = revision = trained = n_layers = n_heads = d_model = n_parameters = n_attention_parameters = None

    def __init__(self, attend: Attend, share: float, by_chance: float) -> None:
        self.attend, self.share, self.by_chance = attend, share, by_chance

    def attention(self, text: str, name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        return self.attend(text.split(), self.share)

    # which nobody asks for
    encode = map_size = attend_factored = attention_of_ids = list_ids = find_max_ids = attention

    def with_first_weights(self, seed: int) -> Made:
        return Made(self.attend, self.by_chance, self.by_chance)


@pytest.fixture
def info(surveyed: Path) -> SurveyInfo:
    """What a survey of such a model says of itself."""
    return replace(load_files(surveyed).info, layer_numbers=(0,), n_heads=2, measures=(LENGTH,))


def attend_two_before(words: list[str], share: float) -> AttentionMaps:
    """Both heads attend, causally, alike to all; the second gives a share of it to the token two before."""
    attendable = np.tri(len(words), dtype=bool)
    alike = attendable / attendable.sum(axis=1, keepdims=True)
    aimed = np.where(np.arange(len(words))[:, None] > 1, np.eye(len(words), k=-2), alike)
    weights = np.stack([alike, share * aimed + (1 - share) * alike])[None]
    return record(weights, tokens(*words), attendable=attendable[None])


def test_what_is_held_against_an_equal_share_is_of_the_same_places_and_texts(tmp_path: Path, info: SurveyInfo) -> None:
    """Attention that favours no key gives each word exactly its share, the first of a causal text too."""
    texts = ["the film was long and the end was not good", "a film", "the end", *["so it was so it was"] * 3]
    documents = [Document(text, f"{n}", "a") for n, text in enumerate(texts)]
    model: Any = Made(attend_two_before, 0.8, 0.0)
    facts = survey_facts.model_facts(model, info, documents, ("random",))
    found = survey_of(tmp_path / "made", model, info, documents, facts)
    assert [*label_heads(found).values()] == ["", "2 before 53 %"]
    alike = [(word, lift) for word, lift, _ in next(top_words(found, 9, 1))]
    assert [lift for _, lift in alike] == pytest.approx([1.0] * len(alike), abs=1e-6)
    equal = [sum(1 / n for n in range(1, len(text.split()) + 1)) / len(text.split()) for text in texts]
    assert column_of(found, "to_first", "equal") == [pytest.approx(np.mean(equal), abs=1e-6)] * 2


@pytest.mark.parametrize("short_first", [False, True])
def test_random_heads_get_no_name_where_texts_are_of_unlike_lengths(
    tmp_path: Path, reviews: tuple[str, ...], short_first: bool
) -> None:
    """Shares go with 1/n: held against what longer texts give, each head of random weights had a name."""
    texts = [*reviews[:8], *(" ".join(text.split()[n : n + 4]) for n in range(5) for text in reviews)]
    found = run(
        tmp_path,
        dataset=None,
        split=None,
        text=tuple(texts[::-1] if short_first else texts),
        model="random:8",
        null=("random",),
    )
    assert [head["label"] for head in data(found)["heads"]] == [None] * 8


def test_copies_of_a_text_are_counted_and_show_no_spread(tmp_path: Path) -> None:
    """And what is measured on a few texts is of texts that differ."""
    copies = *[""] * 40, *("a good film", "a bad film") * 6  # what has no tokens is no text, and no copy of one
    found = run(tmp_path / "two", dataset=None, split=None, text=copies, ablate=("queries",), null=("shuffled",))
    assert any(note.text.endswith("10 of 12 texts repeat another.") for note in report(found).notes)
    assert known(load_files(tmp_path / "two").facts).n_texts == 2
    alone = run(tmp_path / "one", dataset=None, split=None, text=("a good film",) * 12, ablate=("queries",))
    numbers = data(alone)["measures"]["entropy"]["numbers"][0]
    assert (numbers["low"], numbers["high"]) == (None, None)
    assert data(alone)["measures"]["without_head_queries"]["n_texts"] == 0
    assert "Extreme texts by entropy (nats)" in [table.title for table in report(alone).tables]


def test_each_text_twice_tests_what_each_once_does(tmp_path: Path) -> None:
    """Labels that say nothing gave a difference beyond chance in 60 % of surveys of copies."""
    corpus = (each.split()[:12] for each in load_corpus(TextOptions(dataset="sample", split="train[:24]")).texts)
    lines = [(" ".join(text), place % 2) for place, text in enumerate(corpus)]
    found = []
    for name, written in (("once", lines), ("twice", lines * 2)):
        file = write_jsonl(tmp_path / f"{name}.jsonl", written)
        run(tmp_path / name, dataset=str(file), split=None, ablate=("zero",))
        found.append(load_files(tmp_path / name))
    once, twice = found
    assert (len(once.texts), len(twice.texts)) == (len(lines), 2 * len(lines))
    assert twice.tables.differences.table.equals(once.tables.differences.table)
    assert len(once.tables.differences) > 10
    for column in ("n_once", "error", "p_value"):
        assert twice.tables.numbers.table[column].equals(once.tables.numbers.table[column])


def test_a_screen_shows_what_tells_most_of_many_heads(tmp_path: Path) -> None:
    """Of 72 made-up heads four have a name: what names them is listed, in 30 lines."""
    run(tmp_path, model="random:12", d_model=24, layers=6, null=("random",), split="train[:4]")
    found = load_files(tmp_path)
    attended = {(row["kind"], row["name"]): row for row in found.attended.rows()}
    for head, offset, share in (("0.3", "-1", 0.6), ("3.4", "-1", 0.9), ("5.5", "2", 0.7)):
        attended[OFFSET, offset][head] = round(share * found.n_queries * 2**MASS_BITS)
    changed = Numbers.from_rows(attended.values(), found.attended.keys)
    induction, others = tuple(0.8 * (place == 50) for place in range(72)), (0.0,) * 72
    facts = replace(known(found.facts), probes={"induction on repeats": induction, SUCCESSOR: others})
    plain = {name: tuple([0.9] * 72) for name in facts.plain}
    facts = replace(facts, plain=plain, probe_chance={"induction on repeats": 0.1, SUCCESSOR: 0.1})
    whole = survey_report(replace(found, attended=changed, facts=facts), 3)
    tables = {table.name: table for table in whole.tables}
    named = {row[0]: row[1] for row in tables["patterns"].rows if row[1] != "-"}
    assert named == {"previous token": "3.4, 0.3", "2 after": "5.5", "induction on repeats": "4.2"}
    assert {row[0]: row[2] for row in tables["patterns"].rows}["previous token"] == "3.4"
    none = {"repeats": 0.0, "texts": 0.0}
    labels = (("induction on repeats", (4, 2)), ("previous token", (0, 3)))
    costs = tuple(HeadCost(kind, (head,), none, none) for kind, head in labels)
    fallen = replace(found, attended=changed, facts=replace(facts, costs=costs))
    assert len(fallen.tables.names) == 2  # nothing is lost without them
    shown = "".join(lines(whole, "answer", Screen(80)))
    assert shown.count("\n") <= 30, shown
    assert "share on" not in shown, "the share is of the very texts that chance is"
    few = "".join(lines(survey_report(replace(found, facts=replace(facts, n_texts=3)), 3), "answer", Screen(80)))
    assert re.search(r"share on[^─]*3 texts +chance\n", few)
    assert "All heads and measures, words, extreme texts: --table full" in shown
    assert "".join(lines(whole, "full", Screen(80))).count("\n") > 150
    assert [head["names"] for head in known(whole.atlas)["heads"] if head["names"]] == [
        (("previous token", "60 %"),),
        (("previous token", "90 %"),),
        (("induction on repeats", "80 %"),),
        (("2 after", "70 %"),),
    ]


def attend_to_sink(words: list[str], share: float) -> AttentionMaps:
    """The first head sends a share of its attention to a sink, and the rest alike."""
    n = len(words)
    sink = np.broadcast_to(np.array([[share], [0.1]], dtype=np.float32), (1, 2, n))
    return record(np.broadcast_to((1 - sink)[..., None] / n, (1, 2, n, n)), sink=sink)


@pytest.mark.parametrize(("by_chance", "label"), [(0.1, "sink 80 %"), (0.6, "")])
def test_a_head_that_attends_to_a_learned_sink_is_labelled_so(
    by_chance: float, label: str, tmp_path: Path, info: SurveyInfo
) -> None:
    """Where its share is as far beyond what any head gives by chance as that is beyond an equal share, 1/4 here."""
    documents = [Document("one two three", "a", "a"), Document("four five six", "b", "b")]
    model: Any = Made(attend_to_sink, 0.8, by_chance)
    facts = survey_facts.model_facts(model, info, documents, ("random",))
    found = survey_of(tmp_path / "made", model, info, documents, facts)
    assert column_of(found, "to_sink", "equal") == [pytest.approx(1 / 4)] * 2
    assert [*label_heads(found).values()] == [label, ""]


def attend_to_own_brackets(words: list[str], share: float) -> AttentionMaps:
    """Both heads attend alike to all, and the first from brackets to their own where the share is one."""
    weights = np.full((1, 2, len(words), len(words)), 1 / len(words))
    for query, key in find_own_brackets(words) if share == 1.0 else ():
        weights[0, 0, query] = np.eye(len(words))[key]
    return record(weights, tokens(*words))


def test_a_head_that_attends_to_own_brackets_is_labelled_so_over_the_texts_that_have_them(
    tmp_path: Path, info: SurveyInfo
) -> None:
    """Also where the first texts have none: others are looked for. Where fewer than ten texts have them, none is."""
    texts = ["one two three ("] * 10 + ["( a b )", "c d", "[ e ]"] * 5
    documents = [Document(text, "a", "a") for text in texts]
    few = survey_plan._choose_few(documents)
    assert [document.text for document in few] == [*texts[:8], *["( a b )", "[ e ]"] * 4]
    model: Any = Made(attend_to_own_brackets, 1.0, 0.0)
    facts = survey_facts.model_facts(model, info, few, ("random", "shuffled"))
    assert facts.plain["to_own_bracket"] == pytest.approx((1.0, (1 / 4 + 1 / 3) / 2))
    found = survey_of(tmp_path / "made", model, info, documents, facts)
    assert next(iter(label_heads(found).values())) == "own bracket 100 %"
    assert [column_of(found, f"to_{name}", "n") for name in ("own_bracket", "self")] == [[10] * 2, [25] * 2]
    assert column_of(found, "to_own_bracket", "equal") == [pytest.approx((1 / 4 + 1 / 3) / 2)] * 2
    assert column_of(found, "to_self", "equal") == [pytest.approx((15 / 4 + 5 / 2 + 5 / 3) / 25)] * 2
    said = survey_report(found, 3)
    assert "to own bracket: means over the 10 of 25 texts that have such tokens." in [note.text for note in said.notes]
    said_of: Any = said.data["measures"]
    assert (said_of["to_own_bracket"]["n_texts"], said_of["to_own_bracket"]["numbers"][0]["mean"]) == (10, 1.0)
    assert "own bracket" not in str(label_heads(survey_of(tmp_path / "rare", model, info, documents[:-1], facts)))
    without = survey_of(tmp_path / "without", model, info, documents[:1], facts)
    assert column_of(without, "to_own_bracket", "mean") == []
    assert "to own bracket: no text has such tokens." in [note.text for note in survey_report(without, 3).notes]


def test_what_was_not_asked_for_is_refused(tmp_path: Path) -> None:
    part = run(tmp_path / "1", shard="1/2")
    assert (part.report, load_files(tmp_path / "1").is_whole) == (None, False)
    run(tmp_path / "2", shard="2/2")
    run(tmp_path / "other", shard="2/2", split="train[:11]")
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch/manifest.json").write_text("{}")
    cases = {
        "no parts to merge": [],
        "batch holds no attended.parquet": [tmp_path / "1", tmp_path / "batch"],
        "manifest.json holds no attended.parquet": [tmp_path / "batch/manifest.json"],
        "6 of 12 texts are missing": [tmp_path / "1"],
        "two parts hold the same texts": [tmp_path / "1", tmp_path / "1"],
        "parts of different surveys: not alike in corpus": [tmp_path / "1", tmp_path / "other"],
    }
    for problem, parts in cases.items():
        with pytest.raises(InputError, match=problem):
            merged(tmp_path / "merged", parts)
    with pytest.raises(InvalidOption, match="is of another survey"):
        run(tmp_path / "1", split="train[:11]")
    for written in ("0/3", "4/3", "3", "a/b", "1/0"):
        with pytest.raises(InvalidOption, match="is not a part"):
            parse_shard(written)


def with_first(column: str, wrong: Any) -> Callable[[Any, Any], Any]:
    """The same table, but for the first number of a column."""

    def change(table: Any, _: Any) -> Any:
        values = [wrong, *table[column].to_pylist()[1:]]
        return table.set_column(table.column_names.index(column), table.schema.field(column), [values])

    return change


def rename_facts(table: Any, about: Any) -> Any:
    about["facts"]["plain"]["previous_token"] = about["facts"]["plain"].pop("to_same_word")
    return table


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (NAME, lambda table, _: table.drop_columns(["0.1"]), "not of its heads"),
        (NAME, lambda table, _: table.set_column(2, "n", [np.zeros(len(table), np.int64)]), "or of no query"),
        (TEXTS, lambda table, _: table.drop_columns(["entropy 0.1"]), "has no column 'entropy 0.1'"),
        (NAME, rename_facts, "its facts are of other patterns"),
        (NAME, lambda table, about: about.update(schema=4) or table, "is not of a survey of this version"),
        *((MOMENTS, with_first("keys", [key]), "is not a survey") for key in (9999, -1)),
        *((MOMENTS, with_first(*wrong), "is not a survey") for wrong in (("query", 9999), ("n_keys", 0))),
        *((MOMENTS, with_first(*wrong), "is not a survey") for wrong in (("to_first", 2.0), ("head", 7))),
    ],
)
def test_a_survey_of_something_else_is_refused_in_one_line(name: str, change: Any, said: str, surveyed: Path) -> None:
    rewrite(surveyed / name, change)
    for read in (load_files, run):
        with pytest.raises(InvalidRecord, match=said):
            read(surveyed)


def test_two_processes_give_the_bytes_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # processes know blocks as they are
    run(tmp_path / "1", split="train[:33]")
    run(tmp_path / "2", split="train[:33]", workers=2)
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_what_is_lost_without_a_head_is_tested_and_merges_too(tmp_path: Path) -> None:
    split = "train[:6]+zh[:2]"  # of Chinese the model knows no word
    options: dict[str, Any] = {"ablate": ("zero,mean,queries",), "probe": ("repeat",), "split": split}
    found = run(tmp_path / "whole", **options)
    for number in (1, 2):
        run(tmp_path / f"part-{number}", shard=f"{number}/2", **options)
    merged(tmp_path / "merged", [tmp_path / "part-2", tmp_path / "part-1"])
    assert content(tmp_path / "merged") == content(tmp_path / "whole")
    tables = {table.name: table for table in report(found).tables}
    costs = [float(str(row[2]).split(" ± ")[0]) for row in tables["ablations"].rows]
    assert costs == sorted(costs, reverse=True)
    assert sorted(row[:2] for row in tables["ablations"].rows) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    model = open_model()
    documents = list(stream_corpus(TextOptions(dataset="sample", split=split)).documents())
    means, lost = model.mean_outputs([document.text for document in documents]), []
    judged = [each for each in documents if not model.attention(each.text).queries.mostly_unknown]
    assert len(judged) == 6
    for document in judged:
        whole, without = model.ablate(document.text, document.text, ["mean"], means)
        lost.append(whole[document.label] - without["mean"][:, document.label])
    in_survey = [number["mean"] for number in data(found)["measures"]["without_head_mean"]["numbers"]]
    assert in_survey == pytest.approx(np.mean(lost, axis=0).tolist(), abs=1e-6)
    numbers = data(found)["measures"]["without_head_zero"]["numbers"]
    assert -1 <= numbers[0]["smallest"] < numbers[0]["mean"] < numbers[0]["largest"] <= 1
    assert set(data(found)["facts"]["probes"]) == {f"{name} on repeats" for name in SCORES} | {SUCCESSOR}
    with pytest.raises(InvalidModel, match="random weights and cannot classify"):
        run(tmp_path / "x", model="random:2", ablate=("zero",))


def test_queries_of_another_text_need_one_with_tokens(tmp_path: Path) -> None:
    """In the same block, of two texts here: the first stands alone, two and two others stand beside each other.

    A text without tokens is left out, and that is said.
    """
    texts = ["a good film", " ", "a bad one", "not bad at all", "the worst film", "the best"]
    file = tmp_path / "six texts.jsonl"
    file.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts), encoding="utf-8")
    found = run(tmp_path / "out", dataset=str(file), split=None, ablate=("zero,queries",))
    assert load_files(tmp_path / "out").info.dataset == f"--dataset '{file}'"
    assert data(found)["texts"]["number"] == 5
    measures = data(found)["measures"]
    assert [measures[f"without_head_{kind}"]["n_texts"] for kind in ("zero", "queries")] == [5, 4]
    said = {note.text for note in report(found).notes}
    assert all(any(words in note for note in said) for words in ("own answer", "Left out: 1 text", "by --ablate"))
    both = build(DiffSpec, before=str(tmp_path / "out"), after=str(tmp_path / "out"), measure=("all",))
    assert result(diff(both)).failure is None
    alone = run(tmp_path / "alone", dataset=str(file), split="train[:2]", ablate=("queries",))
    (table,) = (table for table in report(alone).tables if table.name == "ablations")
    assert [row[2:] for row in table.rows] == [("-",)] * 4


def test_a_finished_survey_is_never_replaced_by_another_or_by_less(surveyed: Path) -> None:
    """Whoever asks for another one in its folder, and however that ends, the file and its pictures stay."""
    before = content(surveyed)
    for options, problem in (
        ({"model": "multi:4"}, "another survey: multi:2 over sample train.:12., of multi:2 and of multi:4"),
        ({"null": ("random",)}, "not alike in on_few_texts"),
    ):
        with pytest.raises(InvalidOption, match=problem):
            run(surveyed, **options)
        assert content(surveyed) == before
    leave(surveyed, fresh=True)
    run(surveyed)
    assert content(surveyed) == before


def test_other_texts_of_the_same_file_are_another_survey(tmp_path: Path) -> None:
    def of_texts(word: str, **options: Any) -> None:
        (tmp_path / "texts.jsonl").write_text(f'{{"text": "a {word} film"}}\n' * 4, encoding="utf-8")
        run(**{"dataset": str(tmp_path / "texts.jsonl"), "split": None, **options})

    of_texts("good", out=tmp_path / "1", shard="1/2")
    of_texts("bad", out=tmp_path / "2", shard="2/2")
    with pytest.raises(InvalidOption, match="parts of different surveys: of other texts"):
        merged(tmp_path / "whole", [tmp_path / "1", tmp_path / "2"])
    with pytest.raises(InvalidOption, match="is of another survey"):
        of_texts("bad", out=tmp_path / "1", shard="1/2")


def test_the_probe_reads_random_tokens_twice_and_scores_as_transformerlens_does(surveyed: Path) -> None:
    """Its formulas, written out: means of diagonals of `pattern`, [batch, head, query, key], without markers."""
    model: Any = find_model(ModelOptions(model="multi:2", max_tokens=512)).open(())
    read: list[tuple[list[int], AttentionMaps]] = []

    class Watched(type(model)):  # type: ignore[misc]
        def attention_of_ids(self, ids: list[int], text_name: str = "ids") -> AttentionMaps:
            read.append((ids, super().attention_of_ids(ids, text_name)))
            return read[-1][1]

    watched = Watched(**vars(model))
    info = replace(load_files(surveyed).info, measures=())
    found = survey_facts.model_facts(watched, info, [], ("repeat",)).probes
    batch = np.array([ids for ids, _ in read])
    assert batch.shape == (10, 100)
    assert (batch[:, :50] == batch[:, 50:]).all()
    assert {*batch.ravel().tolist()} <= set(model.list_ids())
    assert len({*batch.ravel().tolist()}) > 450  # not words of a text, which come again and again
    assert batch.mean() == pytest.approx(np.mean(model.list_ids()), rel=0.1)
    pattern, seq_len = torch.tensor(np.stack([np.concatenate(maps.weights) for _, maps in read])), 50
    for name, offset in (("induction", 1 - seq_len), ("duplicate token", -seq_len), ("previous token", -1)):
        stripe = pattern.diagonal(dim1=-2, dim2=-1, offset=offset)
        assert found[f"{name} on repeats"] == pytest.approx(stripe.mean(dim=(0, -1)).tolist(), rel=1e-5)


def test_two_surveys_differ_by_their_means_and_by_whatever_else_they_hold(tmp_path: Path) -> None:
    options = {"null": ("random",), "split": "train[:8]"}
    one = run(tmp_path / "one", model="single", **options)
    many = run(tmp_path / "many", model="multi:2", **options)
    spec = build(DiffSpec, before=str(tmp_path / "one"), after=str(tmp_path / "many"), measure=("entropy",))
    found = result(diff(spec))
    rows = next(table for table in report(found).tables if table.name == "numbers").rows
    numbers = [data(each)["measures"]["entropy"]["numbers"] for each in (one, many)]
    for layer, row in enumerate(sorted(rows, key=lambda row: str(row[0]))):
        means = [of_heads[layer * (len(of_heads) // 2)]["mean"] for of_heads in numbers]
        assert row[:4] == (f"entropy of layer {layer}, head 0", *means, means[1] - means[0])
    assert len(rows) == 2
    assert found.failure is not None
    ends = {each["what"]: (each["before"], each["after"]) for each in data(found)["differences"]}
    assert (ends["model"], ends["n_heads"]) == (("single", "multi:2"), ("1", "2"))
    assert result(diff(replace(spec, tolerance=("99",)))).failure is not None  # whatever the means
    again = result(diff(replace(spec, after=spec.before, exact=True)))
    assert (again.failure, report(again).title) == (None, "No difference")

    add_one = lambda table, _: table.set_column(3, "equal", [np.asarray(table["equal"]) + 1])  # noqa: E731
    changes: list[tuple[Callable[[Path], None], bool]] = [
        (lambda folder: rewrite(folder / NAME, add_one), True),
        (lambda folder: change_info(folder, corpus="other texts"), False),
        (lambda folder: change_info(folder, versions={}), True),
    ]
    for change, tolerated in changes:
        shutil.rmtree(tmp_path / "many")
        shutil.copytree(tmp_path / "one", tmp_path / "many")
        change(tmp_path / "many")
        has_versions = bool(load_files(tmp_path / "many").info.versions)
        assert (result(diff(spec)).failure is None) != has_versions
        assert (result(diff(replace(spec, tolerance=("1e-9",)))).failure is None) == tolerated
    run(tmp_path / "part", model="single", shard="1/2", **options)
    with pytest.raises(InvalidRecord, match="is a part of a survey"):
        diff(replace(spec, after=str(tmp_path / "part")))


@pytest.mark.parametrize("written", ["--dataset x; touch X", "--dataset $(touch X)", "touch X", "--dataset 'x"])
def test_a_survey_prints_no_command_that_somebody_else_wrote(written: str, surveyed: Path) -> None:
    """Its note is copied into a shell: `attnviz heatmap --dataset x; touch X --index N`."""
    change_info(surveyed, dataset=written)
    with pytest.raises(InvalidRecord, match=r"its options are not those of a data set|No closing quotation"):
        load_files(surveyed)
    quoted = "--dataset 'a b; c' --split train"
    change_info(surveyed, dataset=quoted)
    assert load_files(surveyed).info.dataset == quoted
