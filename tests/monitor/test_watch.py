"""What a watch sees of a model in training, and that it changes nothing there."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

import attnviz
from attnviz import store
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.monitor.alarms import Alarm
from attnviz.monitor.run import MEASURES, SIDE, WatchedRun
from tests.attacks.endings import RunHere

N_TOKENS, N_HEADS = 12, 2
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


class Attention(nn.Module):
    """Self-attention of two heads whose weights are made in a way that is given."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project, self.attend = nn.Linear(8, 24), attend

    def forward(self, states: Tensor) -> Tensor:
        split = (side.unflatten(-1, (N_HEADS, -1)).transpose(1, 2) for side in self.project(states).chunk(3, dim=-1))
        return self.attend(*split).transpose(1, 2).flatten(2)


def by_hand(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = (query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])).masked_fill(~causal(), -1e9)
    return functional.dropout(scores.softmax(dim=-1), 0.1) @ value


def causal() -> Tensor:
    return torch.ones(N_TOKENS, N_TOKENS, dtype=torch.bool).tril()


def fused(**options: Any) -> Attend:
    return lambda *sides: functional.scaled_dot_product_attention(*sides, **options)


def values_of(attend: Attend, **settings: Any) -> np.ndarray:
    """[head, measure] of one step of training on two texts of 12 tokens."""
    model = Attention(attend)
    watch = attnviz.watch(model, **settings)
    torch.manual_seed(1)
    with watch.step():
        model(3 * torch.randn(2, N_TOKENS, 8)).sum().backward()
    return watch.numbers().matrix(MEASURES)


@pytest.mark.parametrize(
    "attend",
    [
        by_hand,
        fused(attn_mask=causal()),
        fused(attn_mask=torch.zeros(1, 1, N_TOKENS, N_TOKENS).masked_fill(~causal(), -torch.inf)),
        fused(is_causal=True, dropout_p=0.1),
    ],
)
def test_numbers_are_the_same_however_attention_is_written(attend: Attend) -> None:
    assert values_of(attend) == pytest.approx(values_of(fused(is_causal=True)), abs=1e-5)


def test_a_bias_on_the_scores_counts() -> None:
    bias = torch.randn(N_TOKENS, N_TOKENS, generator=torch.Generator().manual_seed(0))
    written = values_of(lambda q, k, v: (q @ k.transpose(-1, -2) / 2 + bias).softmax(dim=-1) @ v)
    assert values_of(fused(attn_mask=bias)) == pytest.approx(written, abs=1e-5)


def test_numbers_are_those_of_the_weights() -> None:
    model = Attention(fused(is_causal=True))
    torch.manual_seed(1)
    with attnviz.record() as maps:
        model.eval()(3 * torch.randn(2, N_TOKENS, 8))
    weights, at = maps[0].weights[0], np.arange(3, N_TOKENS)  # behind the first quarter
    rows = weights[:, at]
    entropy = -(rows * np.log(np.maximum(rows, 1e-30))).sum(axis=-1) / np.log(at + 1)
    shares = entropy.mean(axis=-1), rows[..., 0].mean(axis=-1), weights[:, at, at - 1].mean(axis=-1)
    assert values_of(fused(is_causal=True))[:, 1:] == pytest.approx(np.stack(shares, axis=-1), abs=1e-5)


def test_padding_counts_for_nothing() -> None:
    real = torch.tensor([[False] * 2 + [True] * 8 + [False] * 2])
    value = values_of(lambda q, k, v: fused(attn_mask=real[:, None, None])(0 * q, k, v))
    assert value == pytest.approx(np.array([[0, 1, 1 / 8, 1 / 8]] * N_HEADS), abs=1e-6)


def test_a_text_that_is_all_padding_is_skipped_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    real = torch.tensor([[False], [True]]).expand(2, N_TOKENS)
    assert values_of(fused(attn_mask=real[:, None, None])).shape == (0, len(MEASURES))
    assert "attention at step 0: skipped, the first text of the batch is all padding" in capsys.readouterr().err


@pytest.mark.parametrize("attend", [fused(), lambda q, k, v: (q @ k.transpose(-1, -2)).softmax(-1) @ v])
def test_a_batch_without_texts_or_tokens_is_skipped(attend: Attend, capsys: pytest.CaptureFixture[str]) -> None:
    model = Attention(attend)
    watch = attnviz.watch(model, every=1)
    for shape in ((2, 5), (0, 5), (2, 0)):
        with watch.step():
            model(torch.randn(*shape, 8)).sum().backward()
    assert {*watch.numbers().integers(("step",)).ravel().tolist()} == {0}
    assert capsys.readouterr().err.count("skipped, the batch is empty") == 2


def test_every_tenth_step_is_looked_at_and_training_stays_as_it_is(tmp_path: Path) -> None:
    found = []
    for out in (None, tmp_path / "run"):
        model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        for number, parameter in enumerate(model.parameters()):
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(number))
        optimizer, watch = torch.optim.SGD(model.parameters(), 0.01), attnviz.watch(model, out, every=10)
        torch.manual_seed(0)
        for _ in range(21):
            with watch.step() if out else torch.enable_grad():
                for _ in range(2):  # gradients of two passes, of which the first is looked at
                    model(torch.randn(2, 6, 8)).square().sum().backward()
                optimizer.step()
        found.append(model.linear1.weight.detach())
    assert torch.equal(*found)
    assert watch.numbers().list_keys() == [(step, 0, head) for step in (0, 10, 20) for head in (0, 1)]
    assert WatchedRun.load(tmp_path / "run").numbers().rows() == watch.numbers().rows()
    with pytest.raises(InvalidOption, match="holds a watched run"):
        attnviz.watch(model, tmp_path / "run")


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (lambda watch, at: watch.on_step_begin(None, at, None, model=None), lambda watch: watch.on_step_end(0, 0, 0)),
        (lambda watch, at: watch.on_train_batch_start(at, None, [], 0), lambda watch: watch.on_train_batch_end(0, 0)),
    ],
    ids=["transformers", "lightning"],
)
def test_a_trainer_calls_it_by_names_of_its_own(
    begin: Callable[..., None], end: Callable[..., None], tmp_path: Path
) -> None:
    model = Attention(fused())
    watch = attnviz.watch(model, tmp_path)
    watch.on_train_begin(None, None, control=None)
    for step in (0, 0, 9, 10):  # Lightning counts what the optimizer did: of gradients that are added up, once
        begin(watch, SimpleNamespace(global_step=step))
        model(torch.zeros(1, N_TOKENS, 8))
        end(watch)
    assert (watch.state_dict(), list(WatchedRun.load(tmp_path).looks)) == (None, [0, 10])


def test_alarms_name_step_and_head_once() -> None:
    run, frame = WatchedRun(), np.zeros((1, 2, SIDE**2))
    steps = [(9, 0.5), (10, 0.5), (11, 0.5), (29, 0.01), (31, 0.02), (90, 0.01), (np.nan, np.nan)]
    for step, (score, entropy) in enumerate(steps):
        run.add(step, np.array([[[np.nan] * 4, [score, entropy, 0, 0]]]), frame)  # of a layer with one head
    assert run.alarms == [
        Alarm(4, 0, 1, "entropy collapsed", "0.020 of the most possible; fixed limit 0.030"),
        Alarm(5, 0, 1, "scores explode", "from 11.0 to 90; fixed limit 30"),
        Alarm(6, 0, 1, "not finite", "its scores or weights are NaN or infinite"),
    ]


def test_alarms_are_held_against_a_healthy_run_where_one_is_named(tmp_path: Path) -> None:
    healthy, frame = WatchedRun(tmp_path), np.zeros((1, 1, SIDE**2))
    for step, (score, entropy) in enumerate([(5, 0.5), (40, 0.2), (8, 0.4)]):
        healthy.add(step, np.array([[[score, entropy, 0, 0]]]), frame)
    watch = attnviz.watch(nn.Linear(1, 1), healthy=tmp_path)
    for step, (score, entropy) in enumerate([(79, 0.01), (9, 0.5), (9, 0.5), (9, 0.5), (81, 0.11), (81, 0.09)]):
        watch._run.add(step, np.array([[[score, entropy, 0, 0]]]), frame)
    assert watch.alarms == [
        Alarm(4, 0, 0, "scores explode", f"from 9.0 to 81; limit by {tmp_path} 80"),
        Alarm(5, 0, 0, "entropy collapsed", f"0.090 of the most possible; limit by {tmp_path} 0.100"),
    ]


def test_a_long_run_keeps_fewer_and_fewer_maps(tmp_path: Path) -> None:
    run = WatchedRun(tmp_path)
    for step in range(150):
        run.add(step, np.zeros((1, 1, 4)), np.full((1, 1, SIDE**2), step / 100))
    loaded = WatchedRun.load(tmp_path)
    assert list(loaded.looks) == list(range(150))
    assert {step: maps[0, 0, -1] for step, maps in loaded.maps.items()} == {
        step: step / 100 for step in (*range(64), *range(64, 128, 2), *range(128, 150, 4))
    }


def test_what_cannot_be_watched_is_said() -> None:
    with pytest.raises(InvalidOption, match=r"model is int"):
        attnviz.watch(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="every=0"):
        attnviz.watch(nn.Linear(1, 1), every=0)
    watch = attnviz.watch(nn.Linear(1, 1))
    with pytest.raises(InvalidRecord, match="step 0: no attention in Linear"), watch.step():
        assert watch.numbers().rows() == []


def test_a_run_is_drawn_as_curves_and_as_a_film(run_here: RunHere, tmp_path: Path) -> None:
    watched = WatchedRun(tmp_path)
    for step, score in enumerate((9, 10, 11, 90)):
        watched.add(step, np.array([[[score, 0.5, 0, 0]]]), np.full((1, 1, SIDE**2), 2.0**step))
    done = run_here("render", tmp_path, "--out", tmp_path / "drawn", "--title", "mine")
    assert done.exit_code == 0
    title, *_, said = done.stdout.splitlines()[:4]
    assert (title, said) == ("mine", "First alarm, step 3: head 0.0: scores explode (from 10.0 to 90; fixed limit 30).")
    with Image.open(tmp_path / "drawn" / "film.gif") as film:
        assert (film.width, getattr(film, "n_frames", 1)) == (800, 4)
    chinese = run_here("render", tmp_path, "--out", tmp_path / "chinese", "--lang", "zh", "--table", "full")
    assert {*re.findall("[A-Za-z]{3,}", chinese.stdout)} <= {"logit"}
    assert "在它读的文本上" in (tmp_path / "chinese" / "film.html").read_text(encoding="utf-8")
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == {"curves.png", "film.gif", "film.html"}
    assert "\n3,0,0,90.0,0.5,0.0,0.0" in run_here("render", tmp_path, "--out", tmp_path / "a", "--print", "csv").stdout
    for option in ("--words", "--layer"):
        refused = run_here("render", tmp_path, option, "0")
        assert (refused.exit_code, f"{option} does nothing for a watched run" in refused.stderr) == (2, True)
    store.write(tmp_path / "attention-000000009.parquet", b"PAR1")
    assert run_here("render", tmp_path).exit_code == 2
