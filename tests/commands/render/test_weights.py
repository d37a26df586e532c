"""`attnviz render` of weights that other programs have written: names, notes, the record, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from attnviz import store
from tests.attacks.endings import RunHere, refused, worked

CROSS = np.full((2, 4, 5, 7), 1 / 7, dtype=np.float32)
SQUARE = np.eye(5, dtype=np.float32)
DRAWN = ("--dpi", "40", "--table", "none")


@pytest.fixture(autouse=True)
def files(here: Path) -> None:
    np.save("cross.npy", CROSS)
    np.save("square.npy", SQUARE)
    torch.save(torch.tensor(SQUARE), "square.pt")
    Path("tokens.txt").write_text("the\ncat\n sat\r\non\nmat\n", encoding="utf-8")
    Path("keys.txt").write_text("t u v  w x y z\n", encoding="utf-8")
    Path("names.json").write_text('["the", "cat", "sat", "on", "mat"]', encoding="utf-8")


def test_names_come_from_files_and_how_they_are_read_is_said(run_here: RunHere) -> None:
    run = worked(run_here("render", "cross.npy", "--tokens-file", "tokens.txt", "--keys-file", "keys.txt", *DRAWN))
    assert "note: tokens.txt: 5 tokens, one a line" in run.stderr
    assert "note: keys.txt: 7 tokens, separated by blanks in its only line" in run.stderr
    maps = store.load("attention/attention.safetensors")  # written, too
    assert maps.queries.pieces == ("the", "cat", " sat", "on", "mat")
    assert maps.keys.pieces == tuple("tuvwxyz")
    np.testing.assert_array_equal(maps.weights, CROSS)
    assert (maps.provenance.model, maps.provenance.text_name) == ("cross.npy", "“t u v w x y z”")


@pytest.mark.parametrize("names", [("--words", "the cat  sat on mat"), ("--tokens-file", "names.json"), ()])
def test_one_matrix_is_drawn_with_its_words(names: tuple[str, ...], run_here: RunHere) -> None:
    shown = json.loads(worked(run_here("render", "square.pt", *names, "--dpi", "40", "--json")).stdout)
    expected = ["the", "cat", "sat", "on", "mat"] if names else ["0", "1", "2", "3", "4"]
    assert shown["texts"][0]["queries"]["pieces"] == expected
    unnamed = "Tokens are called by their positions: no names were given." in json.dumps(shown)
    assert unnamed == (not names)


def test_axes_that_are_a_guess_are_said_and_row_decides(run_here: RunHere) -> None:
    guess = "taken for layers (2), heads (4), queries (5), keys (7); --axes would say otherwise."
    assert guess in " ".join(worked(run_here("render", "cross.npy", "--dpi", "40")).stdout.split())
    worked(run_here("render", "cross.npy", "--row", "1", *DRAWN, "--out", "second"))
    assert store.load("second/attention.safetensors").weights.shape == (1, 4, 5, 7)


def test_keys_are_patches_of_an_image(run_here: RunHere) -> None:
    Image.new("RGB", (30, 20), "red").save("photo.png")
    worked(run_here("render", "cross.npy", "--grid", "2x3", "--image", "photo.png", "--table", "none"))
    maps = store.load("attention/attention.safetensors")
    assert maps.keys.pieces == ("token 0", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2")
    assert maps.grid is not None
    assert maps.grid.pixels is not None
    for options, said in (
        (("--grid", "3x3"), "3 × 3 patches do not fit 7 keys"),
        (("--grid", "six"), "--grid 'six' does not give rows and columns"),
        (("--image", "photo.png"), "--image lies under a grid"),
        (("--grid", "2x3", "--keys-file", "keys.txt"), "--grid and --keys-file exclude each other"),
        (("--grid", "2x3", "--image", "none.png"), "no file none.png"),
    ):
        refused(run_here("render", "cross.npy", *options, "--out", "other"), said)


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (
            {"tokens": np.array(list("abcde"), dtype=object)},
            "beside.npz: not read: tokens, Python objects, which only a",
        ),
        ({"src": np.array(list("abcde")), "tgt": np.array(["x"])}, "tgt, texts not called tokens or keys"),
        ({"tokens": np.array(list("abcde"))}, ""),
    ],
)
def test_what_lies_beside_weights_and_is_not_read_is_said(beside: dict[str, Any], said: str, run_here: RunHere) -> None:
    np.savez("beside.npz", weights=SQUARE, **beside)
    shown = worked(run_here("render", "beside.npz", *DRAWN)).stderr
    assert said in shown
    assert bool(said) == ("not read" in shown)


WRONG = {
    "names that fit nothing": (
        ("square.npy", "--tokens-file", "keys.txt"),
        "7 names in tokens, but the attention in weights of 5 queries and 5 keys is of 5. Name each token once",
    ),
    "no names": (("square.npy", "--tokens-file", "no.txt"), "no file no.txt"),
    "no text": (("square.npy", "--tokens-file", "square.npy"), "bytes are not UTF-8. Save the file as UTF-8."),
    "no list": (("square.npy", "--tokens-file", "no.json"), "no.json is not a list of texts"),
    "twice": (("square.npy", "--tokens-file", "tokens.txt", "--words", "a b"), "--words and --tokens-file exclude"),
    "memory": (("cross.npy", "--max-memory", "0.01"), "5 tokens × 4 heads × 2 layers need"),
    "scores": (("scores.npy",), "look like scores before softmax"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses_end_in_one_line_and_write_nothing(name: str, run_here: RunHere) -> None:
    np.save("scores.npy", -SQUARE)
    Path("no.json").write_text("{}", encoding="utf-8")
    words, said = WRONG[name]
    refused(run_here("render", *words), said)
    assert not Path("attention").exists()


def test_a_record_has_its_names(run_here: RunHere) -> None:
    worked(run_here("render", "square.npy", *DRAWN))
    for record in ("attention", "attention/attention.safetensors"):
        refused(run_here("render", record, "--words", "a b c d e"), "--words is of weights, and this is a record")
