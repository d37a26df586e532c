"""The documentation as a site: every link leads somewhere, and a reader's browser is sent nowhere else."""

import re
import sys
from pathlib import Path

import pytest

from attnviz.commands import COMMANDS
from tests.process import ROOT, said_by

PICTURE = re.compile(r"<img\b[^>]*?\bsrc=[\"']?([^\"' >]+)")
FETCHED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)[^>]*>")


@pytest.mark.slow
def test_the_site_is_built_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    site = tmp_path / "site"
    built = said_by([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)], cwd=ROOT)
    assert built.returncode == 0, built.stdout + built.stderr
    assert [
        command.name for command in COMMANDS if not (site / "commands" / command.name / "index.html").exists()
    ] == []
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(pages) > 30
    fetched = {
        link[1] for text in pages.values() for link in FETCHED.finditer(text) if 'rel="canonical"' not in link[0]
    }
    assert fetched == set()
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert [url for style in styles for url in re.findall(r"url\(\s*[\"']?((?:https?:)?//[^)]+)\)", style)] == []
    pictures = {(path.parent / src) for path, text in pages.items() for src in PICTURE.findall(text) if src[0] != "/"}
    fonts = {site / url for url in re.findall(r"url\((fonts/\S+?)\)", (site / "site.css").read_text(encoding="utf-8"))}
    assert (len(pictures) > 40, len(fonts)) == (True, 3)
    assert [path for path in {*pictures, *fonts} if not path.exists()] == []
