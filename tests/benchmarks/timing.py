"""What benchmarks share: how one is asked, and what a piece of work takes."""

import argparse
import inspect
import time
from collections.abc import Callable
from pathlib import Path


def read_options(doc: str | None, **options: int) -> argparse.Namespace:
    """Read a benchmark's command line: options with their defaults."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in options.items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        else:
            parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def run_command(doc: str | None, *commands: Callable[..., None]) -> None:
    """Run the command that a command line names: a function that is given paths."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = parser.add_subparsers(required=True)
    for command in commands:
        one = choices.add_parser(command.__name__)
        one.set_defaults(command=command)
        for name in inspect.signature(command).parameters:
            one.add_argument(name, type=Path)
    given = vars(parser.parse_args())
    given.pop("command")(**given)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds that `work` takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun
