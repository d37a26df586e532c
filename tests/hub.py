"""What a hub answers, for those that tests run on this machine: descriptions of a repository, files, and refusals."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TypeVar

REVISION = "0123456789abcdef0123456789abcdef01234567"

Server = TypeVar("Server", bound=ThreadingHTTPServer)


class Answers(BaseHTTPRequestHandler):
    """A hub says in `respond` what stands at a path; asked for the head only, it sends no more."""

    def respond(self, path: str) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.respond(self.path.partition("?")[0])

    do_HEAD = do_GET  # noqa: N815

    def answer(self, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"Content-Length": str(len(raw)), "Content-Type": "application/json"}
        self.send_response(status)
        for name, value in (usual | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def answer_about(self, repository: str, files: Mapping[str, bytes]) -> None:
        siblings = [{"rfilename": name, "size": len(held)} for name, held in files.items()]
        self.answer({"id": repository, "sha": REVISION, "private": False, "tags": [], "siblings": siblings})

    def answer_tree(self, files: Mapping[str, bytes]) -> None:
        self.answer(
            [{"type": "file", "path": name, "size": len(held), "oid": oid(held)} for name, held in files.items()]
        )

    def answer_file(self, held: bytes) -> None:
        self.answer(held, 200, {"ETag": f'"{oid(held)}"', "X-Repo-Commit": REVISION})

    def refuse(self, status: int, code: str) -> None:
        self.answer({"error": code}, status, {"X-Error-Code": code, "X-Repo-Commit": REVISION})

    def log_message(self, format: str, *args: object) -> None:
        """The tests' output stays their own."""


def oid(content: bytes) -> str:
    """git's name of a file."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """A server that answers as long as the block runs."""
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
