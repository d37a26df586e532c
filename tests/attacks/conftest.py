"""What attacks share."""

from tests.commands.train.conftest import run

__all__ = ["run"]
