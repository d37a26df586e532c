"""README and documentation are true: commands run, files exist, and tables are the tables in the code.

`ATTNVIZ_WRITE_README=1 pytest tests/test_readme.py` writes the tables and pictures anew.
"""

import os
import re
import shlex
import shutil
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageSequence

from attnviz.models import PACKAGED
from attnviz.models.built_in import SHIPPED
from attnviz.registry import Plugin
from attnviz.running.metrics import load_metrics
from attnviz.store import load
from tests import animation, pretrained, study
from tests.attacks.endings import RunHere, worked
from tests.browser import Open
from tests.process import ROOT, RunCli

README, DOCS = ROOT / "README.md", ROOT / "docs"
MAP = DOCS / "how-it-works.md"
# In the order in which their commands run, in one folder. Those of the gallery have a test of their own.
FIRST = (README, DOCS / "everyday.md")
CHINESE = (ROOT / "README.zh.md", *sorted((DOCS / "zh").glob("*.md")))
DOCUMENTS = (*FIRST, *sorted({*DOCS.glob("*.md")} - {*FIRST, DOCS / "gallery.md"}), *CHINESE)
IMAGES = DOCS / "images"
ENCODER, DECODER = "path/to/encoder", "path/to/decoder"
OF_PACKAGES = re.compile(rf" ({'|'.join(plugin.name for plugin in PACKAGED)})(?= |$)")
# Commands of a package whose pictures stand in the documents: where each is written, and as what it is kept.
DRAWN = {"dickens": "worth-a-look.png", "repeat": "layer-17-head-5.png", "dursley": "explanation.png"}
TABLE = re.compile(r"<!-- table: ([\w.]+) -->\n\n(?:\|.*\n)*\n?")
MAPPED = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def blocks(language: str, document: Path) -> list[str]:
    """The code of a language in a document."""
    return re.findall(rf"```{language}\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)


def commands() -> list[str]:
    """Every line of every `sh` block, once; a line that ends in a backslash goes on."""
    whole = [re.sub(r" \\\n +", " ", block) for document in DOCUMENTS for block in blocks("sh", document)]
    lines = [line for block in whole for line in block.splitlines()]
    return [line for line in dict.fromkeys(lines) if line and not line.startswith("#")]


def commands_of_others() -> list[str]:
    """Those that need a model which does not come with attnviz."""
    return [each for each in commands() if ENCODER in each or DECODER in each]


def commands_of_packages() -> list[str]:
    """Those that need a model which another package carries."""
    return [each for each in commands() if OF_PACKAGES.search(each)]


def run_examples(document: Path) -> dict[str, Any]:
    """Run every `python` block of a document, one after the other, and give the names that they leave."""
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks("python", document)), str(document), "exec"), names)
    return names


def table(room: str) -> str:
    """The names of a room as Markdown, in the order of the code; of others, what was measured."""
    if room in MEASURED:
        return f"<!-- table: {room} -->\n\n{MEASURED[room]()}\n"
    module = import_module(room)
    tables = [value for name, value in vars(module).items() if name.isupper() and isinstance(value, tuple)]
    plugins = max((each for each in tables if all(isinstance(item, Plugin) for item in each)), key=len)
    lines = [f"| `{plugin.name}` | {plugin.help} |\n" for plugin in plugins]
    return f"<!-- table: {room} -->\n\n| name | what it is |\n|---|---|\n{''.join(lines)}\n"


def accuracies() -> str:
    lines = ["| model | masked-word loss | accuracy per seed | mean | 95 % interval |", "|---|---|---|---|---|"]
    for heads in (1, 2, 4, 8):
        name = "single" if heads == 1 else f"multi:{heads}"
        metrics = load_metrics(SHIPPED / name.replace(":", "-"))
        tested, loss = metrics.tested, f"{metrics.history.masked_word_loss:.3f}"
        assert tested is not None
        seeds = ", ".join(f"{accuracy:.4f}" for accuracy in tested.accuracies)
        lines.append(
            f"| `{name}` | {loss} | {seeds} | {tested.mean.value:.4f} | "
            f"{tested.mean.low:.4f} to {tested.mean.high:.4f}, over {'texts' if len(tested.seeds) == 1 else 'seeds'} |"
        )
    return "".join(f"{line}\n" for line in lines)


MEASURED = {
    "attnviz.data.models": accuracies,
    "capacity.heads": study.by_heads,
    "capacity.networks": study.networks,
    "capacity.layers": study.layers,
}


def test_tables_are_those_of_the_code() -> None:
    n_tables = 0
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        n_tables += len(TABLE.findall(text))
        expected = TABLE.sub(lambda found: table(found[1]), text)
        if os.environ.get("ATTNVIZ_WRITE_README") and expected != text:
            document.write_text(expected, encoding="utf-8")
        assert document.read_text(encoding="utf-8") == expected
    assert n_tables == 9


def test_what_is_said_of_the_study_of_capacity_is_in_its_tables() -> None:
    """Every share and every noise that a sentence names, in the page and in the README."""
    tables = "".join(made() for name, made in MEASURED.items() if name.startswith("capacity."))
    of_readme = README.read_text(encoding="utf-8").partition("recall 8 items")[2].partition("\n## ")[0]
    page = (DOCS / "heads.md").read_text(encoding="utf-8").partition("## Where several heads beat one")[2]
    page = page.partition("### How it was measured")[0]
    said = re.findall(r"\d+[.,]\d+", of_readme + TABLE.sub("", page))
    assert len(said) > 15
    assert {*said} - {*re.findall(r"\d+[.,]\d+", tables)} == set()


def test_every_file_in_the_map_exists() -> None:
    paths = [path for path in MAPPED.findall(MAP.read_text(encoding="utf-8")) if path != "path"]
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_module_at_the_top_and_every_room_is_in_the_map() -> None:
    entries = [path for path in (ROOT / "attnviz").iterdir() if not path.name.startswith(("__", "py.typed"))]
    missing = [path.name for path in entries if f"`attnviz/{path.name}" not in MAP.read_text(encoding="utf-8")]
    assert missing == []


@pytest.mark.parametrize("document", [README, *CHINESE], ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    """Those of other pages are followed where the site is built."""
    text = document.read_text(encoding="utf-8")
    links = [link.split("#") for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert len(links) > 3
    for path, *anchors in links:
        there = document.parent / path
        headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE) if anchors else []
        assert there.exists(), path
        assert {*anchors} <= {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_chinese_pages_say_the_numbers_of_the_study_and_of_the_example(
    opened: Open, run_here: RunHere, tmp_path: Path
) -> None:
    paths = (DOCS / "zh/student.md", README, DOCS / "student.md", DOCS / "reference.md")
    page, *english = (path.read_text(encoding="utf-8").replace(" .05 %", " 0.05 %") for path in paths)
    page += (ROOT / "README.zh.md").read_text(encoding="utf-8")
    worked(run_here("lesson", "--example", "--out", "example.html"))
    shown = opened(tmp_path / "example.html")
    sources = " ".join([*shown.page.locator("main :is(text, td)").all_text_contents(), *english])
    said = {*re.findall(r"(?<![\d.])\d\.\d+", page)}
    assert len(said) > 10
    known = {*re.findall(r"\d\.\d+", sources)}
    assert said - known - {each.rstrip("0") for each in known} == set()


@pytest.mark.parametrize(
    "document", [document for document in DOCUMENTS if blocks("python", document)], ids=lambda path: path.name
)
def test_every_example_in_python_runs(document: Path, here: Path) -> None:
    names = run_examples(document)
    if document.name == "recipes.md":
        assert load(here / "mine.safetensors").weights.shape == (2, 4, 3, 3)
        assert [names[block][0].weights.shape for block in ("written", "seen", "looked")] == [
            (2, 4, 3, 3),
            (2, 4, 10, 10),
            (1, 4, 2, 9),
        ]
        assert names["written"][0].attendable[0].tolist() == [[True, False, False], [True, True, False], [True] * 3]


def test_the_picture_is_what_the_command_draws(run_here: RunHere, tmp_path: Path) -> None:
    words = ["heatmap", "--dataset", "sample", "--index", "0", "--heads", "8", "--table", "none", "--out", "demo"]
    worked(run_here(*words))
    assert_alike(tmp_path / "demo/overview.png", IMAGES / "overview.png")


def test_the_charts_of_the_study_are_of_its_results(tmp_path: Path) -> None:
    study.study().draw_charts(study.results(), tmp_path / "capacity.png")
    assert_alike(tmp_path / "capacity.png", IMAGES / "capacity.png")


@pytest.mark.skipif(not os.environ.get("ATTNVIZ_WRITE_README"), reason="takes half a minute of 500 reviews")
def test_the_picture_of_real_reviews_is_what_the_command_draws(shared: Path, run_cli: RunCli, tmp_path: Path) -> None:
    (command,) = re.findall(r"`attnviz (compare .*--dataset path/to/imdb .*)`", (DOCS / "heads.md").read_text("utf-8"))
    data = shared / "data/imdb"
    if not data.is_dir():
        pytest.skip("needs the reviews of IMDb in ../shared/data/imdb")
    words = shlex.split(command.replace("path/to/imdb", str(data)))
    run = run_cli(*words, "--measure", "effective_keys,entropy,distance,peak", "--quiet", "--out", "heads", timeout=300)
    assert run.exit_code == 0, run.stderr
    assert_alike(tmp_path / "heads/distributions.png", IMAGES / "heads-on-imdb.png")


# What stands in a command, the page that it writes, and what of it is shown.
PAGES = {
    "survey.png": (
        "--format html --out heads$",
        "heads/attention.html",
        "view=atlas&head=0.4&find=previous+token",
    ),
    "page.png": ("--format html --out page", "page/attention.html", ""),
}


@pytest.mark.parametrize("picture", PAGES)
def test_the_picture_of_a_page_is_what_the_command_writes(
    picture: str, opened: Open, run_here: RunHere, tmp_path: Path
) -> None:
    written, file, state = PAGES[picture]
    (command,) = (command for command in commands() if re.search(written, command))
    worked(run_here(*shlex.split(command)[1:], "--quiet"))
    shown = opened(tmp_path / file, state, viewport={"width": 1000, "height": 760})
    assert_shown(shown.page.screenshot(), picture)


def test_the_picture_of_a_lesson_is_what_the_command_writes(opened: Open, run_here: RunHere, tmp_path: Path) -> None:
    (command,) = (each for each in commands() if re.search("attnviz lesson .*not good.* lesson.html$", each))
    worked(run_here(*shlex.split(command)[1:]))
    shown = opened(tmp_path / "lesson.html", viewport={"width": 1000, "height": 900})
    shown.page.locator(".step").nth(2).click()
    shown.page.mouse.move(0, 0)
    assert_shown(shown.page.locator("#see").screenshot(), "lesson.png")


def test_the_pictures_of_the_example_are_what_the_command_writes(
    opened: Open, run_here: RunHere, tmp_path: Path
) -> None:
    worked(run_here("lesson", "--example", "--lang", "zh", "--out", "example.html"))
    shown = opened(tmp_path / "example.html", viewport={"width": 1000, "height": 900})
    for step in (1, 2, 3):
        shown.page.locator(".step").nth(step).click()
        shown.page.mouse.move(0, 0)
        assert_shown(shown.page.locator(".picture").screenshot(), f"example-zh-{step}.png")


@pytest.mark.slow
def test_the_picture_of_a_real_decoder_is_what_the_command_draws(run_here: RunHere, tmp_path: Path) -> None:
    """What two of them draw of one text is drawn of one record."""
    pretrained.packaged("smollm2")
    recorded: dict[tuple[str, ...], str] = {}
    for out, name in DRAWN.items():
        (command,) = (command for command in commands_of_packages() if f"--out {out}" in command)
        _, *asked = shlex.split(command)
        of, look = tuple(asked[:4]), asked[4:]
        worked(run_here(*(("render", recorded[of]) if of in recorded else of), *look))
        recorded[of] = f"{out}/attention.safetensors"
        assert_alike(tmp_path / out / name, IMAGES / name)


def test_the_animation_is_what_the_page_shows(chromium: Any, tmp_path: Path) -> None:
    """Frame by frame, as long as each stays there, in 400 kB."""
    drawn, kept = tmp_path / animation.ANIMATION.name, animation.ANIMATION
    drawn.write_bytes(animation.draw_animation(chromium))
    if os.environ.get("ATTNVIZ_WRITE_README"):
        shutil.copy(drawn, kept)
    assert kept.stat().st_size <= 400_000
    with Image.open(drawn) as new, Image.open(kept) as old:
        for frame, known in zip(ImageSequence.Iterator(new), ImageSequence.Iterator(old), strict=True):
            assert frame.info["duration"] == known.info["duration"]
            assert share_apart(frame, known) < 0.01


def assert_shown(screenshot: bytes, name: str) -> None:
    """What a browser shows, made smaller, is nearly a picture in the documents, which has fewer colours."""
    kept = IMAGES / name
    with Image.open(BytesIO(screenshot)) as shot:
        small = shot.convert("RGB").resize((800, 800 * shot.height // shot.width), Image.Resampling.LANCZOS)
    if os.environ.get("ATTNVIZ_WRITE_README"):
        small.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(kept, optimize=True)
    with Image.open(kept) as old:
        assert share_apart(small, old) < 0.01


def assert_alike(drawn: Path, kept: Path) -> None:
    """The same size, and all but a thousandth of the pixels nearly the same: another processor may round a last bit,
    and another version draw a letter differently. What changes no more than the subtitle is 0.003 of a picture here.
    """
    if os.environ.get("ATTNVIZ_WRITE_README"):
        shutil.copy(drawn, kept)
    with Image.open(drawn) as new, Image.open(kept) as old:
        assert share_apart(new, old) < 0.001


def share_apart(new: Image.Image, old: Image.Image) -> float:
    """What share of the pixels of two pictures of one size is clearly another colour."""
    assert new.size == old.size
    apart = np.asarray(ImageChops.difference(new.convert("RGB"), old.convert("RGB"))).max(axis=-1)
    return float((apart > 32).mean())
