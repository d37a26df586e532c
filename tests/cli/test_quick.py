"""What is read at sight is what typer reads, and what cannot be is left to it."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any, Literal

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from attnviz.cli.parser import UNPARSED, parse_simple, patch_params
from tests.process import ROOT

NUMBERS = (
    "",
    "7",
    "-7",
    "+7",
    "007",
    " 7",
    "7 ",
    "1e3",
    "1.5",
    "-.5",
    ".5",
    "1_000",
    "inf",
    "nan",
    "٣",
    "0x1f",
    "9" * 30,
)
VALUES = (*NUMBERS, "true", "none", "a", "A", "b", "猫", "--", "a,b")


def outcome(words: list[str], quick: bool) -> object:
    """What a command gets of these words, or what typer says of them."""
    got: dict[str, Any] = {}
    app = typer.Typer(add_completion=False)

    @app.command()
    def command(
        whole: int = 3,
        maybe: Annotated[int | None, typer.Option()] = None,
        number: float = 0.5,
        text: str = "x",
        several: Annotated[list[str], typer.Option()] = (),  # type: ignore[assignment]
        kind: Literal["a", "b"] | None = None,
        flag: bool = False,
    ) -> None:
        got.update(locals())

    made = get_command(app)
    try:
        (patch_params(made) if quick else made).main(args=words, standalone_mode=False)
    except typer.TyperException as error:
        return error.format_message()
    return {name: (type(value), repr(value)) for name, value in got.items() if name != "got"}


@pytest.mark.parametrize("option", ["--whole", "--maybe", "--number", "--text", "--several", "--kind"])
@pytest.mark.parametrize("value", VALUES)
def test_the_same_as_typer(option: str, value: str) -> None:
    words = [f"{option}={value}", "--flag"]
    assert outcome(words, quick=True) == outcome(words, quick=False)


def test_nothing_and_several() -> None:
    for words in ([], ["--several", "a", "--several", "b"], ["--nosuch"], ["surplus"]):
        assert outcome(words, quick=True) == outcome(words, quick=False)


@given(st.text(alphabet="0123456789.-+ e_", max_size=20))
def test_a_number_read_at_sight_is_the_number(text: str) -> None:
    for kind in (int, float):
        read = parse_simple(text, kind)
        assert read is UNPARSED or (type(read) is kind and read == kind(text))


def test_pydantic_is_not_imported_to_read_options() -> None:
    """Nor to say that there is no such option; a value that cannot be read at sight costs it."""
    for words, wanted in (
        (["heatmap", "--heads", "7", "--text", "x"], False),
        (["heatmap", "--nosuch"], False),
        (["nosuch"], False),
        (["heatmap", "--heads", "many"], True),
    ):
        script = f"import sys; from attnviz.cli.app import run; run({words!r}); print('pydantic' in sys.modules)"
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
        assert run.stdout.strip() == str(wanted), words
