"""What the site takes from the program: a page for each command, lessons to open at once, and the figures' typeface."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.structure.files import File, Files

from attnviz.cli import app
from attnviz.cli.help import write_command_help
from attnviz.commands import COMMANDS
from attnviz.registry import load
from attnviz.renderers.page.fonts import subset_font

FONTS = Path(__file__).parents[1] / "attnviz/data/fonts"
LESSONS = {  # a class needs no installation for them
    "en": ("the film was not good but the acting saved the film",),
    "zh": ("酒店的服务不好，房间很干净", "--model", "multi-zh", "--lang", "zh"),
    "example-en": ("--example",),
    "example-zh": ("--example", "--lang", "zh"),
}
LINKS = {  # by page, in the place of a comment
    "student.md": "Open it now: [this sentence](lessons/en.html), [three words on paper](lessons/example-en.html).",
    "zh/student.md": "现在就打开：[这句话](../lessons/zh.html)、[纸上的三个词](../lessons/example-zh.html)。",
}
LATIN_GREEK_SIGNS = {*range(0x20, 0x180), *range(0x391, 0x3CA), *range(0x2000, 0x2200)}


def on_config(config: Any) -> Any:
    """Fill the part of the navigation that is called Commands."""
    pages: list[dict[str, str]] = next(part["Commands"] for part in config.nav if "Commands" in part)
    pages[:] = [{command.name: f"commands/{command.name}.md"} for command in COMMANDS]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each command, and the fonts with their licences."""
    for command in COMMANDS:
        help_text = write_command_help(command.name, load(command.spec), is_full=True)
        text = f"# attnviz {command.name}\n\n{command.help}.\n\n```text\n{help_text}\n```\n"
        files.append(File.generated(config, f"commands/{command.name}.md", content=text))
    with TemporaryDirectory() as folder:
        for name, options in LESSONS.items():
            page = Path(folder) / f"{name}.html"
            if app.run(["lesson", *options, "--out", str(page)]):
                raise RuntimeError(f"no lesson {name}")
            files.append(File.generated(config, f"lessons/{name}.html", content=page.read_text(encoding="utf-8")))
    written = {ord(character) for page in files.documentation_pages() for character in page.content_string}
    for name, characters in {
        "": LATIN_GREEK_SIGNS,
        "SemiBold": LATIN_GREEK_SIGNS,
        "CJK": written - LATIN_GREEK_SIGNS,
    }.items():
        font = f"AttnvizSans{name}"
        files.append(
            File.generated(config, f"fonts/{font}.woff", content=subset_font(FONTS / f"{font}.ttf", characters))
        )
        files.append(File.generated(config, f"fonts/OFL-{font}.txt", abs_src_path=str(FONTS / f"OFL-{font}.txt")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Link to lessons, and lead pictures that are written in HTML out of the page's folder, as MkDocs does itself."""
    markdown = markdown.replace("<!-- lessons -->", LINKS.get(page.file.src_uri, ""))
    return markdown if page.file.name == "index" else re.sub(r'(<img [^>]*src=")(?=\w+/)', r"\1../", markdown)
