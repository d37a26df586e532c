"""Every number of a lesson, read in a browser, is what torch makes of the sentence with the model's own parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.models.encoder_model import EncoderModel
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies
from attnviz.specs import ModelOptions
from attnviz.text import Document
from tests.browser import Opened
from tests.commands.lesson.conftest import SENTENCE, Write

pytestmark = pytest.mark.slow
Open = Callable[..., Opened]
ROUNDED = 0.5e-3 + 2e-5  # three digits, and the model computes in 32 bits
NUMBER = re.compile(r"[−+]?\d[\d,]*(?:\.\d+)?|−∞")


def load(options: ModelOptions) -> EncoderModel:
    model = find_model(options).open((SENTENCE,))
    assert isinstance(model, EncoderModel)
    return model


def parse(written: str) -> list[float]:
    """All numbers of a text, with a real minus sign."""
    found = NUMBER.findall(written)
    return [-math.inf if each == "−∞" else float(each.replace("−", "-").replace(",", "")) for each in found]


def column(page: Opened, name: str) -> np.ndarray:
    return np.array(
        [parse(cell)[0] for cell in page.page.locator(f".hand tbody [data-column={name}]").all_inner_texts()]
    )


def choose(page: Opened, layer: int = 0, **choices: int) -> None:
    for name, value in {**choices, "layer": layer}.items():
        select = page.page.locator(f"#hand select[data-choice={name}]")
        if select.count():
            select.select_option(index=value)
        else:
            assert value == 0


class Head:
    """One head in torch: what the layer's own matrices make of what it was given in a pass over the sentence."""

    def __init__(self, model: EncoderModel, layer: int, head: int) -> None:
        seen: list[torch.Tensor] = []
        attention: Any = model.attentions[layer]
        with attention.register_forward_hook(lambda _, given, __: seen.append(given[0])):
            self.weights = model.attention(SENTENCE).weights[layer, head]
        size = model.d_model // model.n_heads
        part = slice(head * size, (head + 1) * size)
        with torch.no_grad():
            self.q, self.k, self.v = (getattr(attention, name)(seen[0])[:, part] for name in ("query", "key", "value"))
            n = len(self.q)
            by_distance = None if attention.position is None else attention.position(n, n)[head]
        self.bias = torch.zeros(n, n)
        self.has_bias = by_distance is not None
        if by_distance is not None:
            self.bias = torch.stack([by_distance[n - 1 - query : 2 * n - 1 - query] for query in range(n)])
        self.scaled = self.q @ self.k.T / math.sqrt(size) + self.bias

    def attend(self, query: int, temperature: float = 1.0, causal: bool = False) -> torch.Tensor:
        scores = self.scaled[query] / temperature
        if causal:
            scores = scores.masked_fill(torch.arange(len(scores)) > query, -torch.inf)
        return torch.softmax(scores, dim=-1)


MODELS = {
    "multi": (),
    "random": ("--model", "random:4", "--layers", "2", "--d-model", "32"),
}


def options_of(name: str, at: int) -> ModelOptions:
    if name == "random":
        return ModelOptions(model="random:4", layers=2, d_model=32)
    return ModelOptions(model=("multi", "single")[at])


# The model by its name and place on the page, the layer, the head and the query.
CASES = [
    ("multi", 0, 0, 3, 5),
    ("multi", 1, 0, 0, 10),
    ("random", 0, 1, 3, 2),
]


@pytest.mark.parametrize(("name", "at", "layer", "head", "query"), CASES)
@pytest.mark.parametrize("causal", [False, True])
def test_one_head_by_hand(
    opened: Open, write: Write, name: str, at: int, layer: int, head: int, query: int, causal: bool
) -> None:
    page, of = opened(write(*MODELS[name])), Head(load(options_of(name, at)), layer, head)
    choose(page, model=at, layer=layer, head=head, query=query)
    page.page.locator(".step").nth(3).click()
    page.page.locator("#causal").set_checked(causal)
    page.page.locator(".step").nth(6).click()
    weights = of.attend(query, causal=causal)
    if not causal:
        assert np.abs(weights.numpy() - of.weights[query]).max() < 1e-5  # the model's own
    hidden = torch.arange(len(weights)) > query if causal else torch.zeros(len(weights), dtype=torch.bool)
    masked = of.scaled[query].masked_fill(hidden, -torch.inf)
    expected = {
        "c_score": of.q[query] @ of.k.T,
        "c_scaled": of.q[query] @ of.k.T / math.sqrt(of.q.shape[1]),
        "c_masked": masked,
        "c_exp": masked.exp(),
        "c_weight": weights,
    }
    if of.has_bias:
        expected |= {"c_bias": of.bias[query], "c_sum": of.scaled[query]}
    for each, wanted in expected.items():
        shown = column(page, each)
        assert np.allclose(shown, wanted.numpy(), rtol=1e-5, atol=ROUNDED), each
    totals = page.page.locator(".hand tfoot")
    assert parse(totals.locator("[data-column=c_exp]").inner_text())[0] == pytest.approx(
        float(masked.exp().sum()), rel=1e-4, abs=ROUNDED
    )
    assert totals.locator("[data-column=c_weight]").inner_text() == "1.000"
    page.page.locator("#hand summary").click()
    page.page.wait_for_selector(".components tbody tr")
    key = int(page.page.locator(".key[aria-pressed=true]").inner_text().split()[0])
    table = [parse(row) for row in page.page.locator(".components tbody tr").all_inner_texts()]
    columns = [of.q[query], of.k[key], of.q[query] * of.k[key], of.v[key], weights[key] * of.v[key], weights @ of.v]
    wanted = torch.stack([torch.arange(float(len(of.q[0]))), *columns], dim=1).numpy()
    assert np.allclose(np.array(table), wanted, rtol=1e-5, atol=ROUNDED)
    first = page.page.locator(".written .line").nth(0).inner_text()
    assert np.allclose(parse(first), (weights @ of.v).numpy()[:4], atol=ROUNDED)


def test_a_key_is_written_out_at_every_step(opened: Open, write: Write) -> None:
    """The last number of each line is the result, and those before it lead there."""
    page, of = opened(write()), Head(load(ModelOptions(model="multi")), 0, 3)
    choose(page, model=0, head=3, query=5)
    page.page.locator(".step").nth(0).click()
    page.page.locator(".key").nth(6).click()
    weights, v = of.attend(5), of.v[6]
    score, scaled = float(of.q[5] @ of.k[6]), float(of.scaled[5, 6])
    last = {1: [score], 2: [scaled], 3: [scaled], 4: [float(weights[6])], 5: (weights[6] * v)[:4].tolist()}
    for step, wanted in last.items():
        page.page.locator(".step").nth(step).click()
        numbers = parse(page.page.locator(".written .line").inner_text())
        assert numbers[-len(wanted) :] == pytest.approx(wanted, abs=ROUNDED), step
    page.page.locator(".step").nth(6).click()
    line = page.page.locator(".written .line").nth(1).inner_text()
    order = weights.argsort(descending=True)[:4]
    shown = parse(line.partition("=")[2])
    assert shown[:8:2] == pytest.approx(weights[order].tolist(), abs=ROUNDED)
    assert shown[1:8:2] == pytest.approx(of.v[order, 0].tolist(), abs=ROUNDED)
    assert shown[-1] == pytest.approx(float(weights @ of.v[:, 0]), abs=ROUNDED)


def draw_normal(count: int, seed: int) -> np.ndarray:
    """mulberry32 and Box-Muller, as in the page."""
    state, mask = seed, 2**32 - 1

    def uniform() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & mask
        mixed = ((state ^ state >> 15) * (1 | state)) & mask
        mixed = ((mixed + ((mixed ^ mixed >> 7) * (61 | mixed) & mask)) & mask) ^ mixed
        return ((mixed ^ mixed >> 14) & mask) / 2**32

    found: list[float] = []
    while len(found) < count:
        radius, angle = math.sqrt(-2 * math.log(1 - uniform())), 2 * math.pi * uniform()
        found += [radius * math.cos(angle), radius * math.sin(angle)]
    return np.array(found[:count])


@pytest.mark.parametrize(("slider", "noise"), [(0.0, 0.0), (-2.0, 0.5), (3.0, 0.5), (0.5, 2.0)])
def test_averaging(opened: Open, write: Write, slider: float, noise: float) -> None:
    page, of = opened(write()), Head(load(ModelOptions(model="multi")), 0, 3)
    choose(page, model=0, head=3, query=5)
    for name, value in (("temperature", slider), ("noise", noise)):
        page.page.locator(f"[data-slider={name}]").fill(str(value))
    weights = of.attend(5, temperature=2**slider).double().numpy()
    v = of.v.double().numpy()
    shown = [parse(cell)[0] for cell in page.page.locator(".bars tbody td:last-child").all_inner_texts()]
    assert np.allclose(shown, weights, atol=ROUNDED)
    output, plain, top = weights @ v, v.mean(axis=0), int(weights.argmax())
    lines = page.page.locator("#blur").inner_text().splitlines()

    def numbers(words: str) -> list[float]:
        return parse(next(line for line in lines if words in line))

    slid = parse(page.page.locator(".slider").nth(0).inner_text())
    assert slid == pytest.approx([2**slider, 4 * 2**slider], abs=0.006)
    effective = math.exp(-float((weights * np.log(weights)).sum()))
    assert numbers("It looks at")[0] == pytest.approx(effective, abs=0.0051)
    found = numbers("The output lies")
    distances = [float(np.linalg.norm(each - plain)) for each in (output, v[top])]
    assert [found[0], found[-1]] == pytest.approx(distances, abs=ROUNDED)
    noises = draw_normal(200 * v.shape[1], 1).reshape(200, -1)
    noisy = output + noise * np.sqrt((v**2).mean()) * np.linalg.norm(weights) * noises
    directions = v / np.linalg.norm(v, axis=1, keepdims=True)
    nearest = (noisy @ directions.T).argmax(axis=1)
    alike = directions @ directions[top] > 1 - 1e-6
    words = SENTENCE.split()
    assert alike.sum() == words.count(words[top])  # layer 0: a word that stands there three times has one value
    right = int(alike[nearest].sum())
    found = numbers("random draws")
    assert abs(found[0] - right) <= 1  # a draw may lie on the border
    assert found[1] == 200
    assert found[-1] == round(200 * alike.sum() / len(words))


def shades(panel: Any) -> list[float]:
    """How strongly each key of the query that is chosen is coloured, in percent."""
    stops = panel.locator(".map .chosen").evaluate("row => row.style.backgroundImage")
    return [float(share) for share in re.findall(r"--heat\) ([\d.]+)%", stops)]


def test_heads_side_by_side(opened: Open, write: Write) -> None:
    page = opened(write())
    choose(page, query=5)
    models = [load(ModelOptions(model=name)) for name in ("multi", "single")]
    maps = [
        *(head for head in models[0].attention(SENTENCE).weights[0]),
        models[0].attention(SENTENCE).weights[0].mean(0),
    ]
    maps.append(models[1].attention(SENTENCE).weights[0, 0])
    panels = page.page.locator(".head").all()
    assert len(panels) == len(maps) == 10
    effective = []
    for panel, weights in zip(panels, maps, strict=True):
        row = weights[5].astype(float)
        effective.append(float(np.exp(-(row * np.log(row)).sum())))
        assert parse(panel.locator(".effective").inner_text())[0] == pytest.approx(effective[-1], abs=0.0051)
        listed = [parse(line) for line in panel.locator("li").all_inner_texts()]
        order = np.argsort(-row, kind="stable")[:3]
        assert [weight for _, weight in listed] == pytest.approx(row[order].tolist(), abs=ROUNDED)
        assert listed[0][0] == order[0]
        assert panel.locator(".map .row").count() == 11
        assert shades(panel) == pytest.approx(100 * np.clip(np.log2(row * 11) / np.log2(11), 0, 1), abs=0.1)
    text = page.page.locator("#heads").inner_text()
    assert "the strongest 11 times" in text  # all of the attention of a query with 11 keys
    tops = {int(weights[5].argmax()) for weights in maps[:8]}
    assert f"{len(tops)} different words" in text
    each, mean = np.mean(effective[:8]), effective[8]
    said = re.search(r"each looks at ([\d.]+) keys, their mean at ([\d.]+)", text)
    assert said
    assert [float(said[1]), float(said[2])] == pytest.approx([each, mean], abs=0.0051)
    assert f"{models[0].n_parameters:,} and {models[1].n_parameters:,} parameters" in text


def answer(options: ModelOptions) -> dict[str, float]:
    model = find_model(options).open((SENTENCE,))
    assert isinstance(model, Classifies)
    (prediction,) = model.classify([Document(SENTENCE, "text", "text")])
    return dict(zip(model.answers.labels, prediction.probabilities, strict=True))


@pytest.mark.parametrize(("off", "layer"), [((), 0), ((5,), 0), ((0, 1, 2, 6), 0), (tuple(range(8)), 0)])
def test_heads_turned_off(opened: Open, write: Write, off: tuple[int, ...], layer: int) -> None:
    """Against models whose output projection has no columns for these heads, as --without makes them."""
    check_absence(opened(write()), ModelOptions(model="multi"), off, layer)


@pytest.mark.parametrize(("off", "layer"), [((0,), 0), ((0, 1), 1)])
def test_heads_turned_off_in_either_of_two_layers(
    opened: Open, write: Write, two_layers: Path, off: tuple[int, ...], layer: int
) -> None:
    page = opened(write("--model", str(two_layers)))
    check_absence(page, ModelOptions(model=str(two_layers)), off, layer)


def check_absence(page: Opened, options: ModelOptions, off: tuple[int, ...], layer: int) -> None:
    if page.page.locator("#off select").count():
        page.page.locator("#off select").select_option(index=layer)
    for head in off:
        page.page.locator("#off .switch-head").nth(head).click()
    rows = page.page.locator("#off .answers tbody tr").all()
    labels = [row.locator("th").inner_text() for row in rows]
    without = replace(options, without=tuple(f"{layer}.{head}" for head in off))
    whole, now = answer(options), answer(without)
    for label, row in zip(labels, rows, strict=True):
        shown = parse(row.inner_text().removeprefix(label))
        wanted = [whole[label], now[label], now[label] - whole[label]]
        assert shown == pytest.approx(wanted, abs=0.51e-4), label
    first = labels[0]
    each = [parse(line) for line in page.page.locator("#off table").nth(1).locator("tbody tr").all_inner_texts()]
    alone = {int(head): (probability, change) for head, probability, change in each}
    for head in alone:
        probability = answer(replace(options, without=(f"{layer}.{head}",)))[first]
        wanted = [probability, probability - whole[first]]
        assert list(alone[head]) == pytest.approx(wanted, abs=0.51e-4), head
    text = page.page.locator("#off").inner_text()
    if len(off) > 1:
        said = re.search(r"change it by ([−+]?[\d.]+) in all; together by ([−+]?[\d.]+)\.", text)
        assert said
        total = sum(alone[head][1] for head in off)
        assert parse(said[1])[0] == pytest.approx(total, abs=0.51e-4 * (len(off) + 1))
        assert parse(said[2])[0] == pytest.approx(now[first] - whole[first], abs=0.51e-4)
    n_heads = page.page.locator("#off .switch-head").count()
    nothing = answer(replace(options, without=tuple(f"{layer}.{head}" for head in range(n_heads))))
    said = re.search(r"heads of this layer off, the model says (\w+), ([\d.]+):", text)
    assert said
    assert float(said[2]) == pytest.approx(max(nothing.values()), abs=0.51e-4)
    assert said[1] == max(nothing, key=lambda label: nothing[label])


def test_what_was_measured_is_on_the_page(opened: Open, write: Write) -> None:
    from attnviz.commands.lesson.measured import describe_capacity, describe_reviews

    page = opened(write())
    reviews, study = describe_reviews(), describe_capacity()
    rows = [parse(line) for line in page.page.locator("#when table").nth(0).locator("tbody tr").all_inner_texts()]
    for row, each in zip(rows, reviews, strict=True):
        assert row == pytest.approx([each["heads"], *each["accuracy"], each["loss"]], abs=0.51e-3)
    cells = [
        [parse(cell)[0] for cell in line.locator("td").all_inner_texts()]
        for line in page.page.locator("#when table").nth(1).locator("tbody tr").all()
    ]
    assert np.allclose(cells, [[each[0] for each in row] for row in study["shares"]], atol=0.51e-3)
    text = page.page.locator("#when").inner_text()
    said = re.search(r"rightly, eight heads [\d.]+: (\S+) training by training.+: (\S+) to (\S+)\)", text)
    assert said
    assert [parse(each)[0] for each in said.groups()] == pytest.approx(reviews[-1]["change"], abs=0.51e-4)
    for number in (study["halving"][0], study["halving"][-1], study["rest"]["1"]["halving"]):
        assert f"{number:.2f}" in text
    assert f"{study['rest']['1']['steps']:,.0f} steps" in text
