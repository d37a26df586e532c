"""The action for GitHub: what its steps say to a shell is run for real, so that it cannot rot."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema

from tests.process import ROOT, bare_environment

ACTION = ROOT / ".github" / "actions" / "attnviz"
SAMPLE = ROOT / "sample_configs" / "github-actions.yml"
INPUT = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")
CONFIG = "jobs: [{name: small, heatmap: {text: not good, heads: HEADS, dpi: 40}}]"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    return loaded


class Runner:
    """Runs an action's steps as GitHub does, but for those that use another action: these it notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary = folder / "summary.md"
        self.uploaded: dict[str, str] = {}
        self.path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(self, **given: str) -> tuple[str, int, str]:
        """The last step that ran, its exit code, and all that was said on standard error."""
        known = action()["inputs"]
        assert given.keys() <= known.keys()
        inputs = {name: given.get(name, of.get("default")) for name, of in known.items()}
        last, code, said = "", 0, ""
        for step in action()["runs"]["steps"]:
            if "uses" in step:
                assert step["if"] == "${{ !cancelled() }}"
                self.uploaded = {name: INPUT.sub(lambda of: inputs[of[1]], text) for name, text in step["with"].items()}
            elif not code and ("if" not in step or self.holds(step["if"], inputs)):
                done = self.shell(step, inputs)
                last, code, said = step["name"], done.returncode, said + done.stderr
        return last, code, said

    def holds(self, condition: str, inputs: dict[str, str]) -> bool:
        of = re.fullmatch(r"\$\{\{ inputs\.(\w+) != '' \}\}", condition)
        assert of is not None, condition
        return inputs[of[1]] != ""

    def shell(self, step: dict[str, Any], inputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "what an input says would be part of the script"
        environment = bare_environment(self.folder) | {"PATH": self.path, "GITHUB_STEP_SUMMARY": str(self.summary)}
        environment |= {"GITHUB_ACTION_PATH": str(ACTION)}
        environment |= {name: INPUT.sub(lambda of: inputs[of[1]], text) for name, text in step.get("env", {}).items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_draws_and_compares(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    (tmp_path / "a config.yaml").write_text(CONFIG.replace("HEADS", "2"), encoding="utf-8")
    assert runner.run(configs="\n  a config.yaml\n")[:2] == ("batch", 0)
    assert list(tmp_path.glob("figures/small/*.png"))
    first = runner.summary.read_text(encoding="utf-8")
    assert "small" in first
    assert runner.uploaded["path"] == "figures"
    (tmp_path / "figures").rename(tmp_path / "baseline")
    (tmp_path / "a config.yaml").write_text(CONFIG.replace("HEADS", "4"), encoding="utf-8")
    last, code, said = runner.run(configs="a config.yaml", baseline="baseline", artifact="mine")
    assert (last, code) == ("diff", 3)
    assert " differences between baseline and figures" in said
    assert "small: setting heads: 2 became 4." in runner.summary.read_text(encoding="utf-8").removeprefix(first)
    assert runner.uploaded["name"] == "mine"


def test_a_config_that_is_not_there_ends_it(tmp_path: Path) -> None:
    last, code, said = Runner(tmp_path).run(configs="$(touch harm).yaml", baseline="baseline")
    assert (last, code) == ("batch", 2)
    assert "$(touch harm).yaml" in said
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(("package", "installed"), [("", str(ROOT)), ("attnviz==1.0", "attnviz==1.0")])
def test_it_installs_the_version_that_it_belongs_to(package: str, installed: str, tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    fake = tmp_path / "bin" / "python"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >asked\n', encoding="utf-8")
    fake.chmod(0o755)
    runner.path = f"{fake.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    step = next(step for step in action()["runs"]["steps"] if step["name"] == "install")
    assert runner.shell(step, {"package": package}).returncode == 0
    *words, asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert words == ["-m", "pip", "install"]
    assert (asked if package else str(Path(asked).resolve())) == installed


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-workflows", SAMPLE.relative_to(ROOT).as_posix()),
        ("github-actions", ".github/actions/*/action.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/*.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_what_github_reads_is_of_its_schema(schema: str, pattern: str) -> None:
    files = sorted(ROOT.glob(pattern))
    assert files
    with pytest.raises(SystemExit, match=r"^0$"):
        check_jsonschema(["--builtin-schema", f"vendor.{schema}", *map(str, files)])


def test_the_sample_workflow_uses_it_as_it_is() -> None:
    jobs = yaml.safe_load(SAMPLE.read_text(encoding="utf-8"))["jobs"]
    (step,) = (step for step in jobs["figures"]["steps"] if "attnviz" in step.get("uses", ""))
    owner_and_name, _, path = step["uses"].partition("/.github/")
    assert owner_and_name == "attnviz/attnviz"
    assert (ROOT / ".github" / path.partition("@")[0] / "action.yml").is_file()
    inputs = action()["inputs"]
    assert step["with"].keys() <= inputs.keys()
    assert {name for name, of in inputs.items() if of.get("required")} <= step["with"].keys()
