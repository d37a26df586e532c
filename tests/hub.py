"""A hub of one repository on this machine: enough of its interface for the libraries to fetch from it."""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, Literal

from tests.process import ROOT, said_by

REVISION = "0123456789abcdef0123456789abcdef01234567"
GATED = "some-org/gated"


class Hub(ThreadingHTTPServer):
    """`asked` are the files that were fetched."""

    def __init__(self, kind: Literal["models", "datasets"], repository: str, files: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.about, self.repository, self.files = f"/api/{kind}/{repository}", repository, files
        self.held = f"/{'' if kind == 'models' else 'datasets/'}{repository}/resolve/"
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Asked for the head only, it sends no more."""

    server: Hub

    def do_GET(self) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        files, name = hub.files, path.removeprefix(hub.held).partition("/")[2]
        if path in (hub.about, *(f"{hub.about}/revision/{revision}" for revision in ("main", REVISION))):
            siblings = [{"rfilename": name, "size": len(held)} for name, held in files.items()]
            told = {"id": hub.repository, "sha": REVISION, "private": False, "tags": [], "siblings": siblings}
            self.answer(json.dumps(told).encode())
        elif path.startswith(f"{hub.about}/tree/"):
            tree = [{"type": "file", "path": name, "size": len(held), "oid": oid(held)} for name, held in files.items()]
            self.answer(json.dumps(tree).encode())
        elif path.startswith(hub.held) and name in files:
            if self.command == "GET":
                hub.asked.append(name)
            self.answer(files[name], 200, {"ETag": f'"{oid(files[name])}"', "X-Repo-Commit": REVISION})
        elif GATED in path:
            self.refuse(403, "GatedRepo")
        else:
            known = path.startswith((f"{hub.held}{REVISION}/", f"{hub.held}main/"))
            missing = "EntryNotFound" if known else "RevisionNotFound"
            self.refuse(404, missing if hub.repository in path else "RepoNotFound")

    do_HEAD = do_GET  # noqa: N815

    def answer(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        usual = {"Content-Length": str(len(body)), "Content-Type": "application/json"}
        for name, value in (usual | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        body = json.dumps({"error": code}).encode()
        self.answer(body, status, {"X-Error-Code": code, "X-Repo-Commit": REVISION})

    def log_message(self, format: str, *args: object) -> None:
        """The tests' output stays their own."""


def oid(content: bytes) -> str:
    """git's name of a file."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()


def ask(script: str, questions: Sequence[object], home: Path, **environment: str) -> list[Any]:
    """What a script prints of each of its questions, as JSON, in a process of its own that knows only `environment`.

    The libraries read their settings when they are imported.
    """
    kept = {name: value for name, value in os.environ.items() if not re.match("HF_|.*_proxy$", name, re.I)}
    command = [sys.executable, "-c", script, json.dumps(questions)]
    done = said_by(command, cwd=ROOT, env=kept | {"HF_HOME": str(home)} | environment)
    assert (done.returncode, done.stderr) == (0, "")
    return [SimpleNamespace(**json.loads(line)) for line in done.stdout.splitlines()]


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    """A hub that answers as long as the block runs."""
    with hub:
        Thread(target=hub.serve_forever).start()
        try:
            yield hub
        finally:
            hub.shutdown()
