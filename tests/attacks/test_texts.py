"""Texts that break programs: cut into the right tokens, and shown as they are by every renderer."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from attnviz.renderers.figure.layout import spell_maps
from tests.attacks.endings import RunHere, check_whole, document, in_svg, notes, svg, worked
from tests.made import HOSTILE
from tests.renderers.figure.reports import labelled

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
ZALGO = "Z" + "\u0351\u036b" * 50


class Text(NamedTuple):
    """A text, the characters of each of its tokens, and how each token has to look (None: as it is)."""

    text: str
    pieces: list[str]
    shown: list[str] | None = None
    has_boxes: bool = False


TEXTS = {
    "markup of rich": Text("[/] [red]x[/red]", [*"[/]", "[", "red", "]", "x", "[", "/", "red", "]"]),
    "an emoji's name": Text(":smile:", [":", "smile", ":"]),
    "mathtext": Text(r"$$ $_$ ${$ $\frac$ $5$", [*"$$$_$${$$\\", "frac", *"$$5$"]),
    "markup of the web": Text("</script> a_b &amp;", ["<", "/", "script", ">", "a_b", "&", "amp", ";"]),
    "control characters": Text(
        "\x1b[31m \x07 \x7f \x96",
        ["\x1b", "[", "31m", "\x07", "\x7f", "\x96"],
        [r"\x1b", "[", "31m", r"\x07", r"\x7f", r"\x96"],
    ),
    "bidi controls": Text("\u202eevil\u2066", ["\u202e", "evil", "\u2066"], [r"\u202e", "evil", r"\u2066"]),
    "nothing to see": Text(
        "a\u200bb\ufeff c\u00ad",
        ["a", "\u200b", "b", "\ufeff", "c", "\u00ad"],
        ["a", r"\u200b", "b", r"\ufeff", "c", r"\xad"],
    ),
    "white space between": Text("a\n\tb\u2028\u3000c\r\n", ["a", "b", "c"]),
    "Japanese": Text("ねこがすき", [*"ねこがすき"]),
    "Korean": Text("고양이 는", ["고양이", "는"]),
    "emoji": Text(f"{FAMILY} 👍🏽 🇩🇪", [FAMILY, "👍🏽", "🇩🇪"]),
    "a combining mark": Text("cafe\u0301 ne\u0301e", ["cafe\u0301", "ne\u0301e"]),
    "Zalgo": Text(f"{ZALGO} a", [ZALGO, "a"], ["Z" + "\u0351\u036b" * 3 + "…", "a"], has_boxes=True),
    "Arabic": Text("سلام عليكم", ["سلام", "عليكم"]),
    "Hebrew": Text("שלום עולם", ["שלום", "עולם"]),
    "no glyphs": Text("नमस्ते \ue000 \U0010ffff", ["नमस्ते", "\ue000", "\U0010ffff"], ["□□□□", "□", "□"], has_boxes=True),
    "a long token": Text("x" * 5000 + " y", ["x" * 5000, "y"], ["x" * 23 + "…", "y"]),
}


@pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS)
def test_tokens_where_they_stand_and_their_pictures(case: Text, run_here: RunHere, tmp_path: Path) -> None:
    """The document holds each token's own characters, its offsets lead to them, and each picture shows it."""
    run = worked(run_here("heatmap", "--text", case.text, "--model", "dot", "--json", "--format", "svg"))
    (text,) = document(run)["texts"]
    assert text["queries"]["pieces"] == text["keys"]["pieces"] == case.pieces
    assert [case.text[start:end] for start, end in text["queries"]["offsets"]] == case.pieces
    assert not any(text["queries"]["special"])
    assert not any(text["queries"]["unknown"])
    weights = np.array(text["weights"])
    assert weights.shape == (len(text["layers"]), len(text["heads"]), len(case.pieces), len(case.pieces))
    assert weights.min() >= 0
    assert np.abs(weights.sum(axis=-1) - 1).max() < 1e-5
    assert [note for note in notes(run) if "box" in note] == [] or case.has_boxes

    assert len(check_whole(tmp_path / "attention")) == 1
    drawn = svg(tmp_path / "attention/layer-0-head-0.svg")
    for label in case.shown or case.pieces:
        (written,) = spell_maps(labelled([label]))[0].rows  # a mark alone stands in quotes
        assert drawn.count(in_svg(written)) >= 2, "once beside its row, once below its column"


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("compare random:1 random:2 --theory", "table"),
        ("explain", "latex"),
        ("explain --by-hand --model random:2", "markdown"),
        ("attribute", "table"),
        ("predict", "markdown"),
    ],
)
def test_texts_are_data_in_every_command(command: str, printed: str, run_here: RunHere, tmp_path: Path) -> None:
    known = " the film was good" * 8  # of too many words that it does not know a model gives no answer
    pictures = () if command == "predict" else ("--format", "png,svg,pdf")
    worked(run_here(*command.split(), "--text", " ".join(HOSTILE) + known, *pictures, "--print", printed))
    assert check_whole(tmp_path) or command == "predict"


def test_a_hostile_title_folder_and_file_name(run_here: RunHere, tmp_path: Path) -> None:
    name = "re\x1b[31mview\u202e\n.txt"
    (tmp_path / name).write_bytes(b"a b")
    title = "[/] $\\frac$ \x1b[31m\u202e\n" + "x" * 5000
    given = ("heatmap", "--text-file", name, "--model", "dot", "--format", "png,svg,pdf")
    for more in ((), ("--title", title), ("--title", title, "--json")):
        worked(run_here(*given, *more, "--out", "a\x1b[31m\u202eb"))
