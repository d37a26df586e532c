"""What all tests share: the environment they run in, and the program as a process."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.browser import Open, Opened, browser
from tests.process import ROOT, RunCli, run

if TYPE_CHECKING:
    from tests.attacks.endings import RunHere

# On a shared runner the same examples every time: a red build then means that the code changed.
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

ASKS_FOR_COLOUR = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PY_COLORS", "COLORTERM")
ASKS_FOR_A_TERMINAL = ("GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES", "ATTNVIZ_DEBUG")
HOME = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported, because libraries read these when they are imported."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of `make test &`: what we start would not hear Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as of `nohup make test`
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    home = tempfile.TemporaryDirectory(prefix="attnviz-tests-")
    config.add_cleanup(home.cleanup)
    config.stash[HOME] = Path(home.name)
    for name in ASKS_FOR_COLOUR + ASKS_FOR_A_TERMINAL:
        os.environ.pop(name, None)
    if not os.environ.get("ATTNVIZ_ACCELERATOR"):  # what is tested to the bit is what the CPU gives
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": f"{home.name}/huggingface", "TOKENIZERS_PARALLELISM": "false"}
    # What is converted once is converted once for all processes, which have this from the first; or once at all.
    os.environ.setdefault("ATTNVIZ_CACHE", f"{home.name}/attnviz")
    # Models here are tiny: with more threads than free cores, torch spends fifty times as long on waiting for them.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What is imported and collected stays until the end: without this, Python looks through it for garbage every few
    seconds, half a second each time. Pictures leave much that is looked through in vain, hence more of it at once.
    """
    gc.set_threshold(10_000, 10, 10)  # before `attnviz.cli.process` is imported, which takes it for the usual
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder beside the checkout that holds material too large to ship."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"no {folder.name}/ beside the checkout")
    return folder


@pytest.fixture
def run_cli(tmp_path: Path, pytestconfig: pytest.Config) -> RunCli:
    """Runs `attnviz …` as a process in `tmp_path`. The home is shared, so that the list of fonts is made only once."""
    return partial(run, home=pytestconfig.stash[HOME], cwd=tmp_path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`tmp_path`, which the test runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run_here(here: Path, capsys: pytest.CaptureFixture[str]) -> RunHere:
    """Runs `attnviz …` in `tmp_path` without a process of its own."""
    # Not above: pytest may read this file before it has set up what torch and our modules are imported under.
    from tests.attacks import endings

    return partial(endings.run_here, capsys)


@pytest.fixture
def few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For trainings of which it does not matter how much is measured of what heads look at."""
    # Not above: pytest may read this file before it has set up what torch and our modules are imported under.
    from tests.commands.train.runs import probe_little

    probe_little(monkeypatch)


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For runs that end with the same report."""
    from tests.commands.train.runs import draw_once

    draw_once(monkeypatch)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are made here: a process of its own would import everything first. What processes do is tested by itself."""
    # Not above: pytest may read this file before it has set up what torch and our modules are imported under.
    from attnviz.running.executors import open_executor

    for module in ("run", "diff"):
        monkeypatch.setattr(f"attnviz.commands.batch.{module}.open_executor", lambda *_: open_executor(1, inline=True))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of everything but pictures."""
    # Not above: pytest may read this file before it has set up what torch and our modules are imported under.
    from tests.made import draw_nothing

    draw_nothing(monkeypatch)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a process: playwright starts no second one beside it."""
    with browser() as started:
        yield started


@pytest.fixture
def opened(chromium: Any) -> Iterator[Open]:
    """Opens a file; afterwards no page may have asked for anything or complained."""
    pages: list[Opened] = []

    def start(file: Path, state: str = "", kind: type[Opened] = Opened, **settings: Any) -> Opened:
        pages.append(kind(chromium, file, state, **settings))
        return pages[-1]

    yield start
    for each in pages:
        each.close()
