"""What a config asks for: jobs, each a command with its settings. Knows the registry of commands and no files."""

from dataclasses import dataclass, field
from typing import Any

from attnviz.commands import COMMANDS
from attnviz.options import find_changed
from attnviz.registry import load

# What each command that a config may name is asked: of every command that says what it reads.
JOBS: dict[str, type[Any]] = {command.name: load(command.spec) for command in COMMANDS if command.inputs}
# What a flag can say and a config cannot: where things go, who makes them and what the terminal shows is the batch's.
NOT_IN_CONFIGS = frozenset({"out", "json", "open", "table", "quiet", "print", "inline_text", "resume", "fresh"})
NOT_IN_CONFIGS |= {"workers", "shard", "scheduler", "scheduler_file"}


@dataclass(frozen=True)
class Job:
    """One thing to make. `name` is its folder."""

    name: str
    command: str
    spec: Any
    # Paths as the config writes them. The spec has them from the current folder, which must not show in a manifest.
    written: dict[str, object] = field(default_factory=dict, hash=False)

    @property
    def settings(self) -> dict[str, object]:
        """Return the chosen settings: each that a config can say and that is not at its default."""
        return {
            name: self.written.get(name, value)
            for name, value in find_changed(self.spec).items()
            if name not in NOT_IN_CONFIGS
        }


@dataclass(frozen=True)
class BatchPlan:
    """All that configs ask for. `out` is None where none says it; `configs` are file names with sha256 of the bytes."""

    jobs: tuple[Job, ...]
    out: str | None
    configs: dict[str, str]
