"""One head of a survey as pictures for a paper: its moments as shaded text, and its attention by offset."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attnviz.commands.survey.survey import SurveyInfo
from attnviz.errors import InvalidOption
from attnviz.report import Atlas, Chart, Charts, Heatmap, HeatmapGrid, Scale

WRITTEN = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")
MAX_CARDS = 24
EQUAL = "attention that favours no key"
SCALE = Scale("lift", 1.0, 16.0, "attention, × an equal share")


def find_cards(written: Sequence[str], info: SurveyInfo) -> list[int]:
    """Return the places of the heads that `--head-card` names. Raises InvalidOption for one that is not there."""
    found = []
    for name in (part.strip() for item in written for part in item.split(",")):
        match = WRITTEN.fullmatch(name)
        head = (int(match[1]), int(match[2])) if match else None
        if head not in info.heads:
            layers = f"{info.layer_numbers[0]} to {info.layer_numbers[-1]}"
            hint = f"Write LAYER.HEAD, with layers {layers} and heads 0 to {info.n_heads - 1}."
            raise InvalidOption(f"--head-card {name[:40]!r} is not a head of {info.model}", hint=hint)
        found.append(info.heads.index(head))
    if len(found) > MAX_CARDS:
        raise InvalidOption(
            f"--head-card names {len(found)} heads", hint=f"Up to {MAX_CARDS} are drawn; the page has all."
        )
    return list(dict.fromkeys(found))


def draw_cards(atlas: Atlas, places: Sequence[int]) -> Iterator[HeatmapGrid | Charts]:
    """Draw the moments and the curve of each head."""
    for place in places:
        head = atlas["heads"][place]
        name, called = "head-{layer}-{head}".format(**head), "head {layer}.{head}".format(**head)
        found = ", ".join(map(" ".join, head["names"])) or "no single pattern"
        maps = tuple(_draw_moment(atlas, moment, f"{name}-{n}") for n, moment in enumerate(head["moments"]))
        if maps:
            yield HeatmapGrid(name, f"{called}: {found}", maps, 1, SCALE, as_text=True)
        yield Charts(f"{name}-offsets", f"{called}: {found}", (_draw_curve(called, head["curve"], atlas["equal"]),))


def _draw_moment(atlas: Atlas, moment: Mapping[str, Any], name: str) -> Heatmap:
    """Return one row of attention, named by its token."""
    text = atlas["texts"][moment["text"]]
    tokens = {at: token.strip() for at, token in zip(text["positions"], text["tokens"], strict=True)}
    columns = tuple(tokens[key] for key in moment["keys"])
    query = f"{moment['kind']}: {moment['query']} “{tokens[moment['query']]}”"
    return Heatmap(
        name=name,
        title=query,
        values=np.array([moment["weights"]], dtype=np.float32),
        allowed=np.ones((1, len(columns)), dtype=bool),
        rows=(query,),
        columns=columns,
        row_axis="",
        column_positions=tuple(moment["keys"]),
        equal=np.array([1 / moment["n_keys"]], dtype=np.float32),
    )


def _draw_curve(called: str, curve: Sequence[float], equal: Sequence[float]) -> Chart:
    reach = len(curve) // 2
    peak = int(np.argmax(curve)) - reach
    lines = {called: curve, EQUAL: equal}
    rows = tuple((float(n - reach), y, name) for name, shares in lines.items() for n, y in enumerate(shares))
    at = (float(peak), f"{peak:+d}: {curve[peak + reach]:.2f}")
    axes = "key minus query (tokens)", "share of attention"
    return Chart("line", "", *axes, ("x", "y", "group"), rows, quiet=(EQUAL,), at=at)
