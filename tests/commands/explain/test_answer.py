"""A decoder's answer: who wrote it, why they looked there, what is left without them, and how bad requests end."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.commands.explain.answer.graph import MAX_TOKENS, draw_answer, draw_looks
from attnviz.commands.explain.answer.report import WHY
from attnviz.commands.explain.answer.why import Trial, _compare_instead, _list_written, explain_answer, find_reason
from attnviz.commands.explain.answer.words import describe_look
from attnviz.errors import InvalidOption
from attnviz.models.decomposition.stream import Stream
from attnviz.records import Tokens
from attnviz.records.attribution import KEYS, HeadName, Look, Target
from attnviz.report import Graph, GraphEdge
from attnviz.table.numbers import Numbers
from attnviz.views.answers import describe_target
from tests import pretrained
from tests.attacks.endings import RunHere, refused, worked
from tests.made import known, page_content
from tests.models.test_decomposition import take_apart
from tests.pretrained import NEEDS, WORDS, configuration, saved

pytestmark = pytest.mark.usefixtures("undrawn")
CAUSAL = "AutoModelForCausalLM"
TEXT = "the acting saved the film but it was not good"


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("of") / "tiny", "llama", auto=CAUSAL, num_hidden_layers=3)


@pytest.fixture(scope="module")
def stream(decoder: Path) -> Stream:
    found: Stream = take_apart(decoder, TEXT)
    return found


def test_the_heads_that_wrote_most_stand_with_what_their_removal_costs(stream: Stream) -> None:
    found = explain_answer(stream)
    answer, rival = np.argsort(-stream.logits)[:2]
    assert (stream.subject.answer, stream.subject.against) == (answer, rival)
    assert found.logit == pytest.approx(stream.logits[answer] - stream.logits[rival])
    chances = np.exp(stream.logits - stream.logits.max()) / np.exp(stream.logits - stream.logits.max()).sum()
    assert (found.target.probability, known(found.target.rival)[1]) == pytest.approx(chances[[answer, rival]])
    assert sum(share for _, share in found.by_kind) == pytest.approx(found.total)
    assert found.total == pytest.approx(found.logit, abs=1e-5 * abs(stream.logits[[answer, rival]]).max())
    parts = stream.split_logit(answer, rival)
    written = np.abs(parts.heads.sum(axis=2)).ravel()
    assert [abs(of[0]["written"]) for of in found.heads] == pytest.approx(np.sort(written)[::-1][:5].tolist())
    for first, *others in found.heads:
        head = HeadName(*map(int, first["head"].split(".")))
        without = stream.answer_without(head)
        assert first["removal"] == pytest.approx(without[answer] - without[rival] - found.logit)
        assert first["own"] == pytest.approx(stream.split_logit(answer, None).heads.sum(axis=2)[head])
        assert first["from_source"] * first["written"] > 0
        assert first["query"] == len(stream.subject.ids) - 1
        for look in others:
            assert (look["head"], look["query"], look["key"]) == (first["named"], first["key"], first["source"])


def test_all_writers_together_give_the_whole_lead(stream: Stream) -> None:
    head, query, key = HeadName(2, 1), 8, 3
    written = dict(_list_written(stream.split_scores(head, query), len(stream.blocks)))
    others = np.array([each for each in range(query + 1) if each != key])
    assert len(written) == 1 + 1 + 2 * 4  # the word with the first MLP, the second MLP, the heads of two layers
    scores = np.log(stream.weights_of(head, query)[: query + 1])
    leads = [given[key] - given[others].mean() for given in written.values()]
    assert sum(leads) == pytest.approx(scores[key] - scores[others].mean(), abs=1e-4)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen3", "gpt_neox"])
def test_a_model_that_was_never_trained_has_no_reasons(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers", reason=NEEDS)

    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(configuration(kind))
    monkeypatch.setattr(pretrained, "built", lambda *_, **__: model)
    saved(tmp_path / "new", kind)
    for n_words in (6, 26):
        stream = take_apart(tmp_path / "new", " ".join([*TEXT.split(), *WORDS][:n_words]))
        looks = explain_answer(stream).looks.rows()
        for *place, half in np.ndindex(2, 4, len(stream.subject.ids) // 2):
            head, query = HeadName(*place), 2 * half + 1
            looks.append(find_reason(stream, head, query, int(stream.weights_of(head, query).argmax())))
        assert [look["named"] for look in looks if look["named"]] == []


def test_a_reason_takes_half_of_the_weight_and_more_than_its_kind() -> None:
    controls = np.array([0.9] * 9 + [0.1])
    assert Trial(0.45, controls, 0.9).passes(0.9)
    assert not Trial(0.46, controls, 0.9).passes(0.9)
    assert not Trial(0.2, controls, 0.89).passes(0.9)
    assert not Trial(0.2, controls[:2], 1.0).passes(0.9)
    assert _compare_instead(0.9, 0.1, controls).without == 0.9  # any other word does as well
    assert _compare_instead(0.9, 0.1, np.array([0.2, 0.3, 0.95]))[::2] == (0.3, 2 / 3)


def test_before_layer_0_nobody_has_written(stream: Stream) -> None:
    look = find_reason(stream, HeadName(0, 1), 8, 3)
    assert (look["named"], look["n_writers"], {*look["writers"]}) == (None, 0, {"the word itself", "the place"})
    tokens = Tokens(tuple("abcdefghi"), tuple((i, i + 1) for i in range(9)), (False,) * 9)
    assert describe_look(tokens, look).endswith("): no reason, nobody has written before layer 0.")


def test_where_there_is_one_key_there_is_no_reason(stream: Stream) -> None:
    look = find_reason(stream, HeadName(1, 0), 0, 0)
    assert (look["weight"], look["writers"], look["named"]) == (1.0, [], None)
    tokens = Tokens(("a",), ((0, 1),), (False,))
    assert describe_look(tokens, look) == "1.0 looks at itself, at ‘a’: there is nothing else to look at."


@pytest.mark.parametrize(
    ("value", "rival", "said"),
    [
        (0.6, ("b", 0.3), "x goes on with ‘a’ (60 %) rather than ‘b’ (30 %)"),
        (0.59, ("b", 0.3), "x has no clear answer: ‘a’ (59 %) or ‘b’ (30 %)"),
        (0.3, ("b", 0.6), "x goes on with ‘b’ (60 %) rather than ‘a’ (30 %)"),  # asked for
        (0.6, None, "x goes on with ‘a’ (60 %)"),
    ],
)
def test_an_answer_is_clear_from_twice_its_rival_on(value: float, rival: tuple[str, float] | None, said: str) -> None:
    assert describe_target("x", Target(" a", probability=value, rival=rival)) == said


@pytest.mark.parametrize(("model", "text"), [("", TEXT), ("multi", "the film was not good"), ("multi", "a fine film")])
def test_a_heatmap_says_an_answer_as_an_explanation_does(
    model: str, text: str, decoder: Path, run_here: RunHere
) -> None:
    explained = worked(run_here("explain", "--model", model or decoder, text)).stdout
    drawn = worked(run_here("heatmap", "--model", model or decoder, "--format", "html", text)).stdout
    name = explained[explained.index("‘") : explained.index("’") + 1]
    said = "No clear answer" if "no clear answer" in explained else "Answer"
    assert f"\n{said}: {name if model == '' else name[1:-1]} " in drawn


TOKENS = Tokens(("$a$", "b", "[/]", "d"), ((0, 3), (4, 5), (6, 9), (10, 11)), (False,) * 4)


def make_look(head: str, query: int, key: int, weight: float, **more: Any) -> dict[str, Any]:
    at = {"head": head, "layer": int(head.split(".")[0]), "query": query, "key": key, "weight": weight}
    return dict.fromkeys((*WHY, "kind", "written_in")) | at | more


def writing(look: Look, written: float, from_source: float, removal: float) -> Look:
    return {**look, "written": written, "from_source": from_source, "own": 1.0, "removal": removal}


BY_HEAD = {"named": "1.2", "kind": "head", "written_in": 1, "source": 0, "weight_without": 0.1}
FIRST = make_look("4.3", 3, 1, 0.5, **BY_HEAD, weights=[0.1, 0.5, 0.3, 0.1], writers=["1.2"])
SECOND = make_look("1.2", 1, 0, 0.9, weights=[0.9, 0.1, 0.0, 0.0], writers=["2.2"])


def explained(stream: Stream, *heads: Sequence[Look], tokens: Tokens = TOKENS) -> Graph:
    rows = ({"rank": rank, **look} for rank, looks in enumerate(heads) for look in looks)
    of = replace(explain_answer(stream), looks=Numbers.from_rows(rows, KEYS[:1]))
    return draw_answer(replace(of, tokens=tokens, n_layers=6, logit=2.0))


def edges_of(graph: Graph) -> dict[tuple[str, str, str], GraphEdge]:
    return {(graph.nodes[edge.source].name, graph.nodes[edge.target].name, edge.kind): edge for edge in graph.edges}


def test_the_graph_leads_from_words_over_heads_to_the_answer(stream: Stream) -> None:
    """A head that takes part in two ways stands there once; a writer that does not look has no row of a map."""
    against = FIRST | {"head": "4.1", "key": 2, "weight": 0.3, "weight_without": 0.15}
    against |= {"named": "MLP 3", "kind": "mlp", "written_in": 3}
    graph = explained(
        stream,
        (writing(FIRST, 1.0, 0.8, -0.5), SECOND),
        [writing(against, -2.0, -1.0, 1.0)],
        [writing(SECOND, 0.5, 0.5, -0.2)],
    )
    answer = graph.nodes[0].name
    edges = {names: (edge.share, edge.knock_out) for names, edge in edges_of(graph).items()}
    assert edges == {
        ("4.3", answer, "for"): (0.5, (2.0, 1.5)),
        ("‘b’", "4.3", "for"): (0.4, ()),
        ("1.2", "4.3", "because"): (0.4, (0.5, 0.1)),
        ("4.1", answer, "against"): (1.0, (2.0, 3.0)),
        ("‘[/]’", "4.1", "against"): (0.5, ()),
        ("MLP 3", "4.1", "because"): (0.15, (0.3, 0.15)),
        ("1.2", answer, "for"): (0.25, (2.0, 1.8)),
        ("‘$a$’", "1.2", "for"): (0.25, ()),
    }
    names = [[graph.nodes[node].name for node in row] for row in graph.rows]
    assert names == [[answer], ["4.3", "4.1"], ["MLP 3"], ["1.2"]]
    weights = {node.name: (node.token, node.weights) for node in graph.nodes}
    assert (weights["4.3"], weights["1.2"]) == ((3, (0.1, 0.5, 0.3, 0.1)), (1, (0.9, 0.1, 0.0, 0.0)))
    assert weights["MLP 3"] == (2, ())
    assert (graph.tokens, [*graph.legend]) == (TOKENS.pieces, ["for", "against", "because"])


def test_one_look_is_a_graph_of_weights() -> None:
    graph = draw_looks(TOKENS, (FIRST, SECOND | {"named": "the place", "kind": "place", "written_in": 1}))
    assert {names: edge.share for names, edge in edges_of(graph).items()} == {
        ("‘b’", "4.3", "looks"): 0.5,
        ("1.2", "4.3", "because"): 0.4,
        ("‘$a$’", "1.2", "looks"): 0.9,
        ("the place", "1.2", "because"): 0.9,
    }
    assert [graph.nodes[row[0]].row for row in graph.rows] == ["layer 4", "layer 1", ""]


def test_of_a_long_text_those_that_take_part_are_drawn(stream: Stream) -> None:
    n = MAX_TOKENS + 8
    tokens = Tokens(("w",) * n, tuple((i, i + 1) for i in range(n)), (False,) * n)
    look = make_look("1.0", n - 1, 10, 0.5, weights=(np.arange(n) / 1000).tolist(), writers=["2.2"])
    graph = explained(stream, [writing(look, 1.0, 1.0, 0.0)], tokens=tokens)
    assert graph.positions == (9, 10, 11, n - 2, n - 1)
    assert graph.nodes[1].weights == tuple(np.array(graph.positions) / 1000)
    assert [node.token for node in graph.nodes] == [None, 4, 1]


# As a command


def test_an_answer_on_stdout_as_json_and_as_files(decoder: Path, run_here: RunHere, tmp_path: Path) -> None:
    asked = ("explain", "--model", decoder, TEXT, "--format", "png,svg,pdf,html")
    shown = worked(run_here(*asked))
    assert shown.stdout.startswith(worked(run_here("attribute", *asked[1:])).stdout.splitlines()[0])
    assert "wrote 4 files to explanation/ (explanation.png … attention.html)" in shown.stderr
    assert "self-repair" not in shown.stdout
    assert "self-repair" in worked(run_here(*asked, "--table", "full")).stdout
    assert page_content(tmp_path / "explanation" / "attention.html")["graph"]["nodes"]
    (found,) = json.loads(worked(run_here(*asked, "--json")).out)["texts"]
    assert found["sum_of_parts"] == pytest.approx(found["logit_difference"], abs=1e-4)
    assert len(found["heads"]) == 5
    assert {"written", "removal", "source", "looks"} <= found["heads"][0].keys()
    other = json.loads(worked(run_here(*asked, "--answer", "film", "--against", "cat", "--json")).out)["texts"][0]
    assert (other["answer"].strip(), other["against"].strip()) == ("film", "cat")
    again = json.loads(worked(run_here(*asked, "--answer", "cat", "--against", "film", "--json")).out)["texts"][0]
    assert again["logit_difference"] == pytest.approx(-other["logit_difference"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--head", "9.0"), "no layer 9. There are layers 0 to 2."),
        (("--head", "2.0", "--query", "fish"), "no token 'fish' in the text"),
        (("--head", "2.0", "--answer", "film"), "--answer is of the answer, and --head asks for one look"),
        (("--by-hand",), "cannot be worked out by hand"),
        (("--answer", "film", "--against", "film"), "--against 'film' is the answer itself"),
        (("--answer", "nowhere to be found"), "--answer 'nowhere to be found' is not one token of this model"),
    ],
)
def test_what_cannot_be_is_refused(
    asked: tuple[str, ...], said: str, decoder: Path, run_here: RunHere, tmp_path: Path
) -> None:
    refused(run_here("explain", "--model", decoder, "--text", TEXT, *asked), said)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["explanation"])


def test_a_text_is_worked_out_by_hand_or_cut_where_that_is_asked(run_here: RunHere) -> None:
    shown = worked(run_here("explain", TEXT, "--by-hand", "--query", "0")).stdout
    assert shown.startswith("Attention from token 0 the")
    cut = worked(run_here("explain", TEXT, "--max-tokens", "3")).stdout
    assert f"first 3 of {len(TEXT.split())} tokens" in cut


def test_a_model_without_an_answer_is_refused_in_a_line(run_here: RunHere, tmp_path: Path) -> None:
    said = "BertModel, which has no answer to explain. --head 2.1 --query WORD explains one look"
    refused(run_here("explain", "--model", saved(tmp_path / "other", "bert"), TEXT), said)


# In Python


def test_in_python_it_is_what_the_command_says(decoder: Path, run_here: RunHere) -> None:
    shown = attnviz.explain(str(decoder), TEXT, title="mine")
    (found,) = json.loads(worked(run_here("explain", "--model", decoder, TEXT, "--json")).out)["texts"]
    assert shown.report.data["heads"] == found["heads"]
    assert repr(shown) == "Display('mine')"
    assert shown._repr_mimebundle_()["image/png"]
    looks: Any = [attnviz.explain(str(decoder), TEXT, head="2.1", query=at).report.data["looks"] for at in (None, 4)]
    assert [each[0]["query"] for each in looks] == [len(take_apart(decoder, TEXT).subject.ids) - 1, 4]
    with pytest.raises(InvalidOption, match="random:8 has no answer to explain"):
        attnviz.explain("random:8", TEXT)
    with pytest.raises(InvalidOption, match="--answer is of the answer"):
        attnviz.explain(str(decoder), TEXT, head="2.1", answer="film")
