"""The documentation as a site: every link leads somewhere, and a reader's browser is sent nowhere else."""

import re
from pathlib import Path

import pytest

from attnviz.commands import COMMANDS
from tests.process import ROOT

PICTURE = re.compile(r"<img\b[^>]*?\bsrc=[\"']?([^\"' >]+)")
FETCHED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)[^>]*>")


@pytest.mark.slow
def test_the_site_is_built_strictly_and_fetches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdocs = pytest.importorskip("mkdocs.__main__", reason="needs the extra docs")
    monkeypatch.chdir(ROOT)
    mkdocs.cli(["build", "--strict", "--site-dir", str(tmp_path)], standalone_mode=False)
    assert [
        command.name for command in COMMANDS if not (tmp_path / "commands" / command.name / "index.html").exists()
    ] == []
    pages = {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")}
    assert len(pages) > 30
    fetched = {
        link[1] for text in pages.values() for link in FETCHED.finditer(text) if 'rel="canonical"' not in link[0]
    }
    assert fetched == set()
    styles = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.css")]
    assert [url for style in styles for url in re.findall(r"url\(\s*[\"']?((?:https?:)?//[^)]+)\)", style)] == []
    pictures = {(path.parent / src) for path, text in pages.items() for src in PICTURE.findall(text) if src[0] != "/"}
    css = (tmp_path / "site.css").read_text(encoding="utf-8")
    fonts = {tmp_path / url for url in re.findall(r"url\((fonts/\S+?)\)", css)}
    assert (len(pictures) > 40, len(fonts)) == (True, 3)
    assert [path for path in {*pictures, *fonts} if not path.exists()] == []
