"""Batches as processes, and the gallery, whose commands and pictures are those of its config."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnviz.commands.batch import manifests
from attnviz.commands.batch.jobs import Job
from attnviz.commands.batch.manifests import job_from_manifest
from tests.attacks.endings import RunHere, worked
from tests.commands.batch.conftest import load
from tests.made import known
from tests.process import ROOT, RunCli

CONFIGS = sorted((ROOT / "sample_configs").glob("*.yaml"))
SMALL = "jobs:\n  - name: a\n    heatmap: {text: one two, model: dot, dpi: 40}\n"


@pytest.mark.usefixtures("in_this_process")
def test_a_job_that_fails_is_told_and_the_exit_code_is_1(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "figures.yaml").write_text(SMALL + "  - name: b\n    heatmap: {text: ''}\n", encoding="utf-8")
    run = run_here("batch", "figures.yaml", "--workers", "1", "--out", "as-markdown", "--print", "markdown")
    assert run.exit_code == 1
    assert run.stdout.startswith("# 2 jobs, 1 failed\n")
    assert "| b | heatmap | failed | 0 | no tokens in " in run.stdout
    run = run_here("batch", "figures.yaml", "--workers", "1")
    assert run.exit_code == 1
    assert run.stdout == "made a (3 files)\n"
    assert "error: b: no tokens in " in run.stderr
    assert run.stderr.splitlines()[-1].startswith("error: 1 of 2 jobs failed.")


def test_each_problem_of_a_config_is_a_line(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "c\n.yaml").write_text('jobs: [heatmap: {heads: x, "a\\e[31m": 1}, {explain: , name: ../../x}]')
    run = run_here("batch", "c\n.yaml")
    assert (run.exit_code, run.stdout) == (2, "")
    first, second, third = run.stderr.splitlines()
    assert first == "error: c⏎.yaml:1:25: jobs[0].heatmap.heads: write a whole number, not 'x'"
    assert "x1b[31m" in second
    assert third.startswith("error: c⏎.yaml:1:61: jobs[1].name: '../../x' cannot be a name: ")


def test_a_dry_run_lists_jobs(run_here: RunHere, tmp_path: Path) -> None:
    config = str(ROOT / "sample_configs/matrix.yaml")
    run = worked(run_here("batch", config, "--dry-run"))
    assert len(run.stdout.splitlines()) == 12
    assert "grid-heads-8-index-2: heatmap " in run.stdout
    assert not list(tmp_path.iterdir())
    jobs = json.loads(worked(run_here("batch", config, "--dry-run", "--json")).stdout)["jobs"]
    assert len(jobs) == 12
    listed = worked(run_here("batch", config, "--dry-run", "--print", "csv")).stdout
    assert all(listed.count(f"{job['job']},") == 1 for job in jobs)
    assert {job["settings"]["heads"] for job in jobs} >= {8}


@pytest.mark.slow
@pytest.mark.usefixtures("few_probes", "in_this_process", "undrawn")
def test_all_that_need_no_network_are_made(run_here: RunHere) -> None:
    offline = [config for config in CONFIGS if config.name not in ("imdb.yaml", "gallery.yaml")]
    run = worked(run_here("batch", *offline, "--out", "all"))
    assert run.stderr.splitlines()[-1] == "note: 26 made; wrote all/manifest.json and all/index.html"


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_every_sample_is_a_plan(config: Path) -> None:
    assert load(config).jobs


# --- The gallery of the documentation: its commands are those of its config, and its pictures what the config makes ---


CONFIG, PAGE, MADE = ROOT / "sample_configs/gallery.yaml", ROOT / "docs/gallery.md", ROOT / "docs/gallery"


def words(job: Job) -> Iterator[str]:
    """The command line that asks for what a job asks for."""
    yield from ("attnviz", job.command)
    for name, value in sorted(job.settings.items(), key=lambda setting: setting[0] not in ("models", "text")):
        several = tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)
        if name == "models" or (name == "text" and job.command == "heatmap"):
            yield from several
        elif value is True:
            yield f"--{name.replace('_', '-')}"
        else:
            yield from (f"--{name.replace('_', '-')}", ",".join(several))


def test_each_command_is_one_of_the_config_and_each_picture_of_the_manifest() -> None:
    page = PAGE.read_text(encoding="utf-8").replace(" \\\n  ", " ")
    commands = re.findall(r"^attnviz .*$", page, re.MULTILINE)
    assert [shlex.split(command) for command in commands] == [list(words(job)) for job in load(CONFIG).jobs]
    pictures = re.findall(r"\]\(gallery/(.*?)\)", page)
    made = {file.path for entry in manifests.from_file(MADE / "manifest.json").jobs for file in entry.files}
    assert (len(pictures), set(pictures) - made) == (20, set())


@pytest.mark.slow
def test_the_pictures_are_what_the_config_makes(run_cli: RunCli) -> None:
    """Within what another processor may round or pack otherwise, by the command that the page names."""
    manifest = MADE / "manifest.json"
    made = [job_from_manifest(entry, ROOT, str(manifest)) for entry in manifests.from_file(manifest).jobs]
    assert [(job.name, job.spec) for job in made] == [(job.name, job.spec) for job in load(CONFIG).jobs]
    command = known(re.search(r"attnviz (diff docs/gallery .*?) +#", PAGE.read_text(encoding="utf-8")))
    run = worked(run_cli(*command[1].replace("docs/gallery", str(MADE)).split(), timeout=300))
    assert "Compared: 18 jobs, " in run.stdout
    assert ", 65 files." in run.stdout
