"""The fixture `attention_regression` of pytest, which imports this where attnviz is installed: so nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnviz import store
from attnviz.errors import InvalidOption

if TYPE_CHECKING:
    from attnviz.records import AttentionMaps

REGEN_OPTION = "--attnviz-regen"
RECORD_PROPERTY = "attnviz record"  # a property of a test's report, which travels from workers of pytest-xdist
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
BRACKETS = {ord("["): "-", ord("]"): None}  # of a test with parameters, which alone need no more to be told apart
MAX_LENGTH = 80  # characters of a test's name in a file's


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one option."""
    text = "write the records of attention_regression anew where they moved, and let the tests pass"
    parser.getgroup("attnviz").addoption(REGEN_OPTION, action="store_true", help=text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was written, so that it is looked at before it is committed."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    properties = [each for report in reports if report.when == "call" for each in report.user_properties]
    written = [file for name, file in properties if name == RECORD_PROPERTY]
    if written:
        terminalreporter.section("records of attention")
        for file in written:
            terminalreporter.write_line(f"written: {file}")


class AttentionRegression:
    """Compares maps with records that are kept beside the test, in a folder called like its module."""

    def __init__(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self._request = request
        self._tmp_path = tmp_path
        self._used: set[str] = set()

    def check(
        self, maps: AttentionMaps | Sequence[AttentionMaps], tolerance: float = 1e-4, name: str | None = None
    ) -> None:
        """Fail where a weight is further than `tolerance` from what the record of this test holds.

        A record that is not there is written, and the test fails: a build that compares with nothing must not pass.
        With --attnviz-regen, records that moved are written anew and the test passes.

        Args:
            maps: a record, or a sequence of one.
            tolerance: of a weight (0 to 1), absolute.
            name: tells several checks of one test apart.

        Raises:
            InvalidOption: for a tolerance or a name that is none, and for two checks of one name.
            InvalidRecord: for what is no record, and for several.
        """
        __tracebackhide__ = True
        from attnviz.python.regression import describe_moved_heads  # numpy comes with it
        from attnviz.records.single import unwrap_record

        given, file = unwrap_record(maps), self._file(name)
        missing = not file.exists()
        said = "" if missing else describe_moved_heads(file, given, tolerance)
        if self._request.config.getoption(REGEN_OPTION):
            if missing or said:
                self._write(given, file)
        elif missing:
            self._write(given, file)
            pytest.fail(f"{_shorten(file)} was not there. It is written now: look at it and commit it.", pytrace=False)
        elif said:
            store.save(given, self._tmp_path / file.name)
            hint = f"What was found: attnviz diff {_shorten(file)} {self._tmp_path / file.name}"
            pytest.fail(f"{said}\n{hint}\nIf it is meant: pytest {REGEN_OPTION}", pytrace=False)

    def _file(self, name: str | None) -> Path:
        """A test's name is anything: what a file's cannot hold is told apart by its sha256."""
        if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
            raise InvalidOption(
                f"name={name!r} is not a file name", hint="A-Z a-z 0-9 . _ - only, a letter or digit first."
            )
        test = ".".join(self._request.node.nodeid.split("::")[1:])
        safe = re.sub("[^A-Za-z0-9._-]+", "-", test).strip("-")
        if test.translate(BRACKETS) != safe or len(safe) > MAX_LENGTH:
            safe = f"{safe[:MAX_LENGTH]}-{sha256(test.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
        file = f"{safe}.{name}.safetensors" if name else f"{safe}.safetensors"
        if file in self._used:
            raise InvalidOption("two checks of one test would keep one record", hint='Give each a name: name="first".')
        self._used.add(file)
        return self._request.path.with_suffix("") / file

    def _write(self, maps: AttentionMaps, file: Path) -> None:
        store.make_folder(file.parent)
        store.save(maps, file)
        self._request.node.user_properties.append((RECORD_PROPERTY, _shorten(file)))


def _shorten(file: Path) -> str:
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


@pytest.fixture
def attention_regression(request: pytest.FixtureRequest, tmp_path: Path) -> AttentionRegression:
    """Compares attention maps with a record that is kept beside the test: `attention_regression.check(maps)`."""
    return AttentionRegression(request, tmp_path)
