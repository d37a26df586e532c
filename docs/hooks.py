"""Pages of the site that follow from the program: one for each command, with its help as `--help-all` shows it."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files

from attnviz.cli.help import write_command_help
from attnviz.commands import COMMANDS
from attnviz.registry import load


def on_config(config: Any) -> Any:
    """Fill the part of the navigation that is called Commands."""
    pages: list[dict[str, str]] = next(part["Commands"] for part in config.nav if "Commands" in part)
    pages[:] = [{command.name: f"commands/{command.name}.md"} for command in COMMANDS]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each command."""
    for command in COMMANDS:
        help_text = write_command_help(command.name, load(command.spec), is_full=True)
        text = f"# attnviz {command.name}\n\n{command.help}.\n\n```text\n{help_text}\n```\n"
        files.append(File.generated(config, f"commands/{command.name}.md", content=text))
    return files
