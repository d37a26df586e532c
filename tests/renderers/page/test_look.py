"""How the page looks: one ramp for map and text on either ground, headings that stand once, and where it zooms."""

from typing import Any

import numpy as np
import pytest

from attnviz.report import Report
from tests.browser import AREA, Open, Opened
from tests.commands.explain import test_report as steps
from tests.made import random_maps, record, report, tokens
from tests.views import test_batch_page as batch

pytestmark = pytest.mark.slow
NARROW = {"viewport": {"width": 390, "height": 844}}


def uneven() -> Report:
    """Four words; each gives 0.7 to one of them, which is 2.8 equal shares."""
    weights = np.full((1, 1, 4, 4), 0.1, dtype=np.float32)
    weights[0, 0, range(4), [3, 2, 1, 0]] = 0.7
    return report(record(weights, tokens("a", "b", "c", "d")))


def test_on_a_dark_ground_the_ramp_begins_dark_and_words_have_it(shown: Open) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        page = shown(uneven(), "view=matrix", color_scheme=scheme)
        seen[scheme] = [page.colour(0, 0, 4, 4), page.colour(1, 2, 4, 4)]
        page.page.locator(".word").nth(1).hover()
        styles = "word => [getComputedStyle(word)].flatMap((style) => [style.backgroundColor, style.color])"
        ground, ink = page.page.locator(".word").nth(2).evaluate(styles)
        assert ground == f"rgb({', '.join(map(str, seen[scheme][1]))})"
        assert ink in ("rgb(255, 255, 255)", "rgb(0, 0, 0)")
    light, dark = (np.mean(seen[scheme], axis=-1) for scheme in ("light", "dark"))
    assert light[0] > 250 > light[1]
    assert dark[0] < 30 < dark[1]


def test_a_print_of_a_dark_page_is_on_paper(shown: Open) -> None:
    page = shown(uneven(), "view=matrix", color_scheme="dark")
    page.page.emulate_media(media="print", color_scheme="dark")
    page.page.wait_for_timeout(100)
    assert page.colour(0, 0, 4, 4) == [255, 255, 255]
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(253, 253, 251)"
    assert not page.page.is_visible("#views")
    assert not page.page.is_visible("#readout")  # which says how to point


@pytest.mark.parametrize(("width", "media"), [(1024, "screen"), (700, "print")])
def test_all_of_a_calculation_is_seen_at_once(width: int, media: str, shown: Open) -> None:
    page = shown(steps.of_tokens(11, d_head=16)[0], viewport={"width": width, "height": 800}).page
    page.emulate_media(media=media)
    assert page.locator(".wide:has(> img)").evaluate("frame => frame.scrollWidth <= frame.clientWidth")
    page.emulate_media(media="screen")  # for who has the tab next


def test_the_button_zooms_about_the_chosen_cell(shown: Open) -> None:
    page = shown(report(random_maps(["t"] * 60, n_heads=1)), "view=matrix&query=50&key=55")
    for _ in range(3):
        page.page.get_by_role("button", name="zoom in").click()
    page.page.wait_for_timeout(50)
    assert "55 t" in page.painted_texts
    assert "0 t" not in page.painted_texts


def test_a_token_without_a_name_is_its_position(shown: Open) -> None:
    page = shown(report(random_maps([*"0123"])), "view=matrix")
    assert [*"0123"] * 2 == page.painted_texts


@pytest.mark.parametrize(("names", "is_flat"), [(("not", "bad"), True), (("not", "uncharacteristically"), False)])
def test_names_above_a_map_lie_flat_where_they_fit(names: tuple[str, ...], is_flat: bool, shown: Open) -> None:
    page = shown(report(random_maps(names, n_heads=1)), "view=matrix").page
    above = page.evaluate(AREA)[1] - page.locator("canvas.matrix").bounding_box()["y"]
    assert (above < 20) == is_flat


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_of_a_batch_is_as_wide_as_its_screen(width: int, shown: Open) -> None:
    numbers = [batch.of("“The film was…”", entropy=[1.0], effective_keys=[3.0], distance=[3.0], peak=[0.6])]
    settings: dict[str, Any] = {"text": "the film was good " * 20, "pick": [f"{number}.0" for number in range(40)]}
    jobs = (batch.entry(name, numbers, **settings) for name in ("heads-of-many-layers", "b"))
    page = shown(batch.page(*jobs), viewport={"width": width, "height": 844}).page
    assert not page.is_visible("#views")  # there is one view
    hidden = page.locator(".wide").evaluate_all("all => all.map((each) => each.scrollWidth - each.clientWidth)")
    assert hidden == [0, 0]


@pytest.mark.parametrize("n", [3, 11, 64])
def test_a_phone_shows_at_once_what_heads_look_at_and_numbers_beyond(n: int, shown: Open) -> None:
    page = shown(report(random_maps(["saved", "acting"] * n)), "view=table", **NARROW).page
    ends = page.locator("th").evaluate_all("all => all.map((x) => [x.innerText, x.getBoundingClientRect().right])")
    assert [said.split()[0] for said, _ in ends[:5]] == ["layer", "head", "looks", "strongest", "weight"]
    assert ends[4][1] <= 390


def small_maps(page: Opened) -> list[np.ndarray]:
    """The pixels of each small map, [row, column, red green blue]."""
    told = page.page.locator(".map canvas").evaluate_all("""(all) => all.map((canvas) => {
      const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return [width, height, [...data]];
    })""")
    return [np.array(data).reshape(height, width, 4)[2:-2, 2:-2, :3] for width, height, data in told]


def test_small_maps_show_means_of_multiples_and_the_strongest_of_plain_weights(shown: Open) -> None:
    """Noise is pale where nearly each block has a large cell; a head that looks at the token before is a dark line."""
    n = 300
    noise = np.exp(2 * np.random.default_rng(0).normal(size=(n, n)))
    before = np.eye(n, k=-1) + 1e-6
    single = np.full((n, n), 1e-6)
    single[:, 150] = 1 - 1e-6 * (n - 1)
    heads = np.stack([each / each.sum(axis=-1, keepdims=True) for each in (noise, before, single)])
    page = shown(report(record(heads[None])), "view=overview", **NARROW)
    of_noise, of_before, _ = small_maps(page)
    dark = of_before.mean(axis=-1) < 60
    assert not (dark[1:, 1:] & dark[1:, :-1] & dark[:-1, 1:] & dark[:-1, :-1]).any(), "no pixel is drawn twice"
    assert of_noise.shape[0] < n / 2  # pixels
    assert (of_noise.mean(axis=-1) < 200).mean() < 0.2  # of maxima 0.6
    darkest = of_before.mean(axis=-1).argmin(axis=1)
    assert np.abs(darkest - np.arange(len(darkest))).max() <= 2
    page.go("view=overview&scale=fixed")
    assert (np.abs(small_maps(page)[2].astype(int) - (253, 231, 36)).max(axis=-1) < 8).any(axis=1).all()
