"""The gallery of the documentation: its commands are those of its config, and its pictures what the config makes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from attnviz.commands.batch import manifests
from attnviz.commands.batch.jobs import Job
from attnviz.commands.batch.manifests import job_from_manifest
from tests.attacks.endings import worked
from tests.commands.batch.conftest import load
from tests.process import ROOT, RunCli

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


def test_the_wall_leads_to_each_section_by_its_first_picture() -> None:
    wall, *sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    leads = re.findall(r'<a href="#(.*?)"><img src="(.*?)" width="190"', wall)
    titles = [section.splitlines()[0].lower() for section in sections]
    anchors = [re.sub(r"[^a-z0-9 -]", "", title).replace(" ", "-") for title in titles]
    assert leads == [
        (anchor, re.findall(r"!\[.*?\]\((.*?)\)", section)[0])
        for anchor, section in zip(anchors, sections, strict=True)
    ]


@pytest.mark.slow
def test_the_pictures_are_what_the_config_makes(run_cli: RunCli) -> None:
    """Within what another processor may round or pack otherwise, by the command that the page names."""
    manifest = MADE / "manifest.json"
    made = [job_from_manifest(entry, ROOT, str(manifest)) for entry in manifests.from_file(manifest).jobs]
    assert [(job.name, job.spec) for job in made] == [(job.name, job.spec) for job in load(CONFIG).jobs]
    command = re.search(r"attnviz (diff docs/gallery .*?) +#", PAGE.read_text(encoding="utf-8"))
    assert command is not None
    run = worked(run_cli(*command[1].replace("docs/gallery", str(MADE)).split(), timeout=300))
    assert "Compared: 18 jobs, " in run.stdout
    assert ", 66 files." in run.stdout
