"""Every command in the README and the documents runs as it is written."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.models import PACKAGED
from tests import pretrained
from tests.attacks.endings import RunHere, worked
from tests.made import draw_nothing
from tests.process import bare_environment, said_by
from tests.test_readme import (
    DECODER,
    DOCS,
    DRAWN,
    ENCODER,
    IMAGES,
    assert_alike,
    commands,
    commands_of_others,
    commands_of_packages,
    run_examples,
)


def _run(command: str, folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = bare_environment(home)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return said_by(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
@pytest.mark.usefixtures("few_probes")
def test_every_command_runs(run_here: RunHere, tmp_path: Path) -> None:
    """In their order, in one folder: later lines use what earlier ones wrote. The hub cannot be asked here.

    What needs a shell gets one; the others share this process, else most of the time would go into importing torch.
    """
    home = tmp_path / "home"
    home.mkdir()
    run_examples(DOCS / "everyday.md")  # it writes weights for the commands below it
    theirs = commands_of_others() + commands_of_packages()
    for command in (command for command in commands() if command not in theirs):
        if set(command) & set("|>&;"):
            done = _run(command, tmp_path, home)
            code, complaints = done.returncode, done.stderr
        else:
            program, *words = shlex.split(command)
            assert program == "attnviz"
            with pytest.MonkeyPatch.context() as patch:
                if words[0] in ("survey", "merge", "compare"):  # drawn for the gallery and for the README
                    draw_nothing(patch)
                    patch.setattr("attnviz.commands.survey.facts.N_RANDOM", 2)
                run = run_here(*words)
            code, complaints = run.exit_code, run.stderr
        if "--dataset imdb" in command:
            assert code == 2, command
            assert "--dataset" in complaints, command
        else:
            differs = command.startswith("attnviz diff one-head ")
            assert code == (3 if differs else 0), f"{command}\n{complaints}"
        assert "Traceback" not in complaints
    for expected in ("attention/overview.png", "chinese/overview.pdf", "numbers.json", "for-print/layer-0-head-3.png"):
        assert (tmp_path / expected).stat().st_size > 0
    assert sorted(path.name for path in (tmp_path / "three").iterdir()) == ["test-0", "test-1", "test-2"]


@pytest.mark.slow
def test_every_command_with_a_model_of_a_package_runs(run_here: RunHere, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason=pretrained.NEEDS)
    for plugin in PACKAGED:
        pretrained.packaged(plugin.name)
    assert len(commands_of_packages()) > 2
    for command in commands_of_packages():
        # Those run where their pictures are held, and the one explanation where its screen is.
        if command.rpartition(" --out ")[2] not in DRAWN and not command.endswith(' Mr and Mrs D"'):
            worked(run_here(*shlex.split(command)[1:]))


@pytest.mark.slow
def test_every_command_with_a_model_of_others_runs(run_here: RunHere, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason=pretrained.NEEDS)
    folders = {ENCODER: str(pretrained.minilm()), DECODER: str(pretrained.stories())}
    assert len(commands_of_others()) > 2
    for command in commands_of_others():
        for written, folder in folders.items():
            command = command.replace(written, folder)
        worked(run_here(*shlex.split(command)[1:]))
    assert_alike(tmp_path / "picked" / "overview.png", IMAGES / "third-party.png")
