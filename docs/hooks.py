"""What the site takes from the program: a page for each command, from its own help, and the figures' typeface."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from attnviz.cli.help import write_command_help
from attnviz.commands import COMMANDS
from attnviz.registry import load
from attnviz.renderers.page.fonts import subset_font

FONTS = Path(__file__).parents[1] / "attnviz/data/fonts"
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
    """Lead pictures that are written in HTML out of the page's folder, as MkDocs does with those of Markdown."""
    return markdown if page.file.name == "index" else re.sub(r'(<img [^>]*src=")(?=\w+/)', r"\1../", markdown)
