"""Every number of a lesson, read in a browser, is what torch makes of the sentence with the model's own parameters."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.models.encoder_model import EncoderModel
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies
from attnviz.specs import ModelOptions
from attnviz.text import Document
from tests.browser import Open, Opened
from tests.commands.lesson.conftest import SENTENCE, Write
from tests.made import known, load_encoder

pytestmark = pytest.mark.slow
ROUNDED = 0.5e-3 + 2e-5  # three digits, and the model computes in 32 bits
NUMBER = re.compile(r"[−+]?\d[\d,]*(?:\.\d+)?|−∞")


def parse(written: str) -> list[float]:
    """All numbers of a text, with a real minus sign."""
    found = NUMBER.findall(written)
    return [-math.inf if each == "−∞" else float(each.replace("−", "-").replace(",", "")) for each in found]


def column(page: Opened, name: str) -> np.ndarray:
    """The numbers of a column of the picture, a row for each key."""
    texts = page.page.locator(f"[data-column={name}] text[data-at]").all_text_contents()
    return np.array([parse(text)[0] for text in texts])


def written(page: Opened, step: int) -> list[list[float]]:
    """The numbers of each line that is written out at a step."""
    page.page.locator(".step").nth(step).click()
    return [parse(line.partition("=")[2]) for line in page.page.locator(".written .line").all_inner_texts()]


def choose(page: Opened, layer: int = 0, **choices: int) -> None:
    for name, value in {**choices, "layer": layer}.items():
        select = page.page.locator(f"#see select[data-choice={name}]")
        if select.is_visible():
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

    def attend(self, query: int, temperature: float = 1.0) -> torch.Tensor:
        return torch.softmax(self.scaled[query] / temperature, dim=-1)


# Where: the model by its place on the page, the layer, the head and the query.
@pytest.mark.parametrize(
    ("options", "model", "where"),
    [
        ((), ModelOptions(model="multi"), (0, 0, 3, 5)),
        ((), ModelOptions(model="single"), (1, 0, 0, 10)),
        (
            ("--model", "random:4", "--layers", "2", "--d-model", "32"),
            ModelOptions(model="random:4", layers=2, d_model=32),
            (0, 1, 3, 2),
        ),
    ],
)
def test_one_query_step_by_step(
    opened: Open, write: Write, options: tuple[str, ...], model: ModelOptions, where: tuple[int, ...]
) -> None:
    """The picture, and the line written out for a key: its last numbers are the result."""
    (at, layer, head, query), key = where, 1
    page, of = opened(write(*options)), Head(load_encoder(model, (SENTENCE,)), layer, head)
    choose(page, model=at, layer=layer, head=head, query=query, key=key)
    weights = of.attend(query)
    assert np.abs(weights.numpy() - of.weights[query]).max() < 1e-5  # the model's own
    assert np.allclose(column(page, "score"), of.scaled[query].numpy(), rtol=1e-5, atol=ROUNDED)
    assert np.allclose(column(page, "weight"), weights.numpy(), atol=ROUNDED)
    vectors = torch.stack([of.q[query], of.k[key], of.v[key]])[:, :3]
    assert np.allclose(written(page, 0), vectors.numpy(), atol=ROUNDED)
    product, divided = written(page, 1)
    assert product[:6] == pytest.approx(torch.stack([of.q[query], of.k[key]], 1)[:3].flatten().tolist(), abs=ROUNDED)
    assert product[-1] == pytest.approx(float(of.q[query] @ of.k[key]), abs=ROUNDED)
    assert divided[-1] == pytest.approx(float(of.scaled[query, key]), abs=ROUNDED)
    ((*_, weight),) = written(page, 2)
    assert weight == pytest.approx(float(weights[key]), abs=ROUNDED)
    value, output = written(page, 3)
    assert value == pytest.approx([float(weights[key]), *of.v[key, :3].tolist()], abs=ROUNDED)
    assert output == pytest.approx((weights @ of.v)[:3].tolist(), abs=ROUNDED)


@pytest.mark.parametrize("slider", [0.0, -2.0])
def test_averaging(opened: Open, write: Write, slider: float) -> None:
    page, of = opened(write()), Head(load_encoder(ModelOptions(model="multi")), 0, 3)
    choose(page, model=0, head=3, query=5)
    page.page.locator(".slider input").fill(str(slider))
    weights = of.attend(5, temperature=2**slider).double().numpy()
    v = of.v.double().numpy()
    assert np.allclose(column(page, "weight"), weights, atol=ROUNDED)
    assert page.page.locator("#see .warning").is_visible() == (slider != 0)
    lines = page.page.locator("#blur").inner_text().splitlines()

    def numbers(words: str) -> list[float]:
        return parse(next(line for line in lines if words in line))

    slid = parse(page.page.locator(".slider").nth(0).inner_text())
    assert slid == pytest.approx([2**slider, 4 * 2**slider], abs=0.006)
    effective = math.exp(-float((weights * np.log(weights)).sum()))
    assert numbers("exponential of the entropy")[1] == pytest.approx(effective, abs=0.0051)
    apart = float(np.linalg.norm(weights @ v - v.mean(axis=0)))
    assert numbers("The output lies") == pytest.approx([apart], abs=ROUNDED)


def shades(panel: Any) -> list[float]:
    """How strongly each key of the query that is chosen is coloured, in percent."""
    stops = panel.locator(".map .chosen").evaluate("row => row.style.backgroundImage")
    found = re.findall(r"--ramp-(\d)\) ([\d.]+)%, var\(--ramp-(\d)\)", stops)
    assert all(int(above) == int(below) + 1 for above, _, below in found)
    return [25 * int(below) + float(part) / 4 for _, part, below in found]


def test_heads_side_by_side(page: Opened) -> None:
    choose(page, query=8)
    models = [load_encoder(ModelOptions(model=name)) for name in ("multi", "single")]
    maps = [
        *(head for head in models[0].attention(SENTENCE).weights[0]),
        models[0].attention(SENTENCE).weights[0].mean(0),
    ]
    maps.append(models[1].attention(SENTENCE).weights[0, 0])
    panels = page.page.locator(".head").all()
    assert len(panels) == len(maps) == 10
    effective = []
    for panel, weights in zip(panels, maps, strict=True):
        row = weights[8].astype(float)
        effective.append(float(np.exp(-(row * np.log(row)).sum())))
        assert parse(panel.locator(".token").inner_text()) == [row.argmax()]
        assert panel.locator(".map .row").count() == 11
        assert shades(panel) == pytest.approx(100 * np.clip(np.log2(row * 11) / np.log2(11), 0, 1), abs=0.1)
    text = page.page.locator("#heads").inner_text()
    assert "at most 11 times" in text  # all of the attention of a query with 11 keys
    words = SENTENCE.split()
    tops = {int(weights[8].argmax()) for weights in maps[:8]}
    assert len(tops) == 1 + len({words[top] for top in tops}), "a word that stands there twice"
    assert f"{len(tops) - 1} of {len({*words})} different words" in text
    each, mean = np.mean(effective[:8]), effective[8]
    said = known(re.search(r"On average one looks at ([\d.]+) keys, their mean at ([\d.]+)\.", text))
    assert [float(said[1]), float(said[2])] == pytest.approx([each, mean], abs=0.0051)
    assert f"{100 * (models[0].n_parameters / models[1].n_parameters - 1):.1f} % apart" in text


def answer(options: ModelOptions) -> dict[str, float]:
    model = find_model(options).open((SENTENCE,))
    assert isinstance(model, Classifies)
    (prediction,) = model.classify([Document(SENTENCE, "text", "text")])
    return dict(zip(model.answers.labels, prediction.probabilities, strict=True))


@pytest.mark.parametrize(("off", "layer"), [((5,), 1), ((0, 1, 2, 6), 0)])
def test_heads_turned_off(opened: Open, write: Write, off: tuple[int, ...], layer: int) -> None:
    """Against models whose output projection has no columns for these heads, as --without makes them."""
    page, options = opened(write()), ModelOptions(model="multi")
    page.page.locator("#off select").select_option(index=layer)
    for head in off:
        page.page.locator("#off .switch-head").nth(head).click()
    without = replace(options, without=tuple(f"{layer}.{head}" for head in off))
    whole, now = answer(options), answer(without)
    first = max(whole, key=lambda label: whole[label])
    drawn = page.page.locator("[data-column=answer] text:not(.title)").all_text_contents()
    for label, shown in zip(drawn[::2], drawn[1::2], strict=True):
        assert float(shown) == pytest.approx(now[label], abs=0.51e-4), label
    text = page.page.locator("#off").inner_text()
    said = known(re.search(rf"Now {first} has ([\d.]+) \(([−+]?[\d.]+)\)", text))
    assert parse(" ".join(said.groups())) == pytest.approx([now[first], now[first] - whole[first]], abs=0.51e-4)
    n_heads = page.page.locator("#off .switch-head").count()
    without_one = [answer(replace(options, without=(f"{layer}.{head}",)))[first] for head in range(n_heads)]
    alone = np.array(without_one) - whole[first]
    most = known(re.search(r"Of single heads (\d+) changes it most: without it, ([\d.]+)\.", text))
    assert int(most[1]) == np.abs(alone).argmax()
    assert float(most[2]) == pytest.approx(without_one[int(most[1])], abs=0.51e-4)
    if len(off) > 1:
        said = known(re.search(r"change it by ([−+]?[\d.]+) in all\.", text))
        assert parse(said[1])[0] == pytest.approx(alone[[*off]].sum(), abs=0.51e-4)
    nothing = answer(replace(options, without=tuple(f"{layer}.{head}" for head in range(n_heads))))
    said = known(re.search(r"Without any head of this layer the model says (\w+), ([\d.]+)\.", text))
    assert float(said[2]) == pytest.approx(max(nothing.values()), abs=0.51e-4)
    assert said[1] == max(nothing, key=lambda label: nothing[label])
