"""Every command in the README and the documents runs as it is written."""

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests import pretrained, test_readme
from tests.attacks.endings import RunHere, worked
from tests.made import draw_nothing
from tests.process import bare_environment, said_by


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
@pytest.mark.usefixtures("few_probes")
def test_every_command_runs(run_here: RunHere, tmp_path: Path) -> None:
    """In their order, in one folder: later lines use what earlier ones wrote. The hub cannot be asked here.

    What needs a shell gets one; the others share this process, else most of the time would go into importing torch.
    """
    home = tmp_path / "home"
    home.mkdir()
    environment = bare_environment(home)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    test_readme.run_examples(test_readme.DOCS / "everyday.md")  # it writes weights for the commands below it
    theirs = test_readme.commands_of_others() + test_readme.commands_of_packages()
    assert min(len(test_readme.commands_of_others()), len(OF_PACKAGES_HERE)) > 2
    assert any(command.endswith(OUT_OF_PICTURE) for command in test_readme.commands_of_others())
    for command in (command for command in test_readme.commands() if command not in theirs):
        if set(command) & set("|>&;"):
            done = said_by(["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, env=environment)
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


OUT_OF_PICTURE = " --out picked"  # ends the command whose picture is in the documents

# Those whose pictures are held run where they are, and the one explanation where its screen is.
OF_PACKAGES_HERE = [
    command
    for command in test_readme.commands_of_packages()
    if command.rpartition(" --out ")[2] not in test_readme.DRAWN and not command.endswith(' Mr and Mrs D"')
]


@pytest.mark.slow
@pytest.mark.parametrize("command", OF_PACKAGES_HERE)
def test_a_command_with_a_model_of_a_package_runs(command: str, run_here: RunHere) -> None:
    pytest.importorskip("transformers", reason=pretrained.NEEDS)
    pretrained.packaged(shlex.split(command.partition(" --model ")[2])[0])
    worked(run_here(*shlex.split(command)[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("command", test_readme.commands_of_others())
def test_a_command_with_a_model_of_others_runs(command: str, run_here: RunHere, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason=pretrained.NEEDS)
    command = command.replace(test_readme.ENCODER, str(pretrained.minilm())).replace(
        test_readme.DECODER, str(pretrained.stories())
    )
    worked(run_here(*shlex.split(command)[1:]))
    if command.endswith(OUT_OF_PICTURE):
        test_readme.assert_alike(tmp_path / "picked" / "overview.png", test_readme.IMAGES / "third-party.png")
