"""`attnviz diff` on the command line: exit codes, and which stream holds what."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from attnviz.options import replace_values
from tests.attacks.endings import RunHere
from tests.commands.batch import batches


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch of two jobs. Not to be changed."""
    folder = tmp_path_factory.mktemp("batch") / "made"
    batches.batch(
        folder, replace_values(batches.SPEC, format=("png",)), replace_values(batches.SPEC, format=("png",), seed=1)
    )
    return folder


@pytest.fixture
def pair(made: Path, tmp_path: Path) -> Path:
    for name in ("baseline", "figures"):
        shutil.copytree(made, tmp_path / name)
    return tmp_path


def spoil(pair: Path) -> None:
    batches.change(pair / "figures", "first", lambda entry: batches.shifted(entry, "entropy", 0, 1, 0.25))
    (pair / "figures" / "second" / "overview.png").unlink()


DIFF = ("diff", "baseline", "figures")


def test_the_same_is_0(pair: Path, attnviz: RunHere) -> None:
    run = attnviz(*DIFF)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.startswith("No difference\n")
    assert attnviz(*DIFF, "-q").stdout == ""


def test_a_difference_is_3_and_told(pair: Path, attnviz: RunHere) -> None:
    spoil(pair)
    run = attnviz(*DIFF)
    assert run.exit_code == 3
    assert run.stdout.startswith("2 differences\nBEFORE baseline · AFTER figures\n")
    assert "second: overview.png in AFTER is gone." in run.stdout
    assert run.stderr == "error: 2 differences between baseline and figures\n"


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        (("a.npy", "b.npy"), 3, "weight of layer 0, head 1: 0.25 became 0.5 (query 2 2, key 0 0)."),
        (("a.npy", "b.npy", "--tolerance", "0.3"), 0, "Other bytes that say the same: 1 file."),
        (
            ("a.npy", "b.npy", "--tolerance", "1,jsd=0.01", "--measure", "peak"),
            3,
            "jsd of layer 0, head 1: 0 became",
        ),
        (("a.npz", "b.npz"), 3, "2 weights of heads differ by up to 0.25: weight of layer 0, head 1."),  # two layers
        (("b.npz", "c.npz"), 3, "array: x,y became x,z."),
        (("a.csv", "b.csv"), 3, "weight of layer 0, head 0: 0.25 became 0.5 (query 2 2, key 0 0)."),
        (("a.png", "a.png", "--exact"), 0, "No difference"),
        (("a.png", "b.png"), 3, "b.png: 1 pixel, by 1 of 255 (root mean square)."),
        (("a.png", "b.png", "--pixels", "1"), 0, "Other bytes that say the same: 1 file."),
        (("a.png", "c.png", "--pixels", "255"), 3, "c.png: 2 × 2 pixels became 2 × 1 pixels."),
        (("a.npy", "a.png"), 2, "are not of one kind"),
        (("a.npy", "objects.npy"), 2, "Python objects, which only a pickle can hold"),
        (("a.npy", "b.npy", "--pixels", "1"), 2, "--pixels is of pictures"),
        (("a.npy", "b.npy", "--max-memory", "0.1"), 2, "the weights need"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_diff_of_weights_and_pictures(
    tmp_path: Path, attnviz: RunHere, names: tuple[str, ...], code: int, said: str
) -> None:
    before = np.full((1, 2, 4, 4), 0.25, np.float32)
    after = before.copy()
    after[0, 1, 2] = [0.5, 0.25, 0.25, 0]
    for name, weights in (("a", before), ("b", after)):
        np.save(tmp_path / f"{name}.npy", weights)
        np.savez(tmp_path / f"{name}.npz", x=weights[0], y=weights[0])
        np.savetxt(tmp_path / f"{name}.csv", weights[0, 1])
    np.savez(tmp_path / "c.npz", x=after[0], z=after[0])
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    image = Image.new("RGB", (2, 2))
    image.save(tmp_path / "a.png")
    image.crop((0, 0, 2, 1)).save(tmp_path / "c.png")
    image.putpixel((1, 1), (4, 0, 0))
    image.save(tmp_path / "b.png")
    run = attnviz("diff", *names)
    assert run.exit_code == code
    assert said in (run.stderr if code == 2 else " ".join(run.stdout.split()))
