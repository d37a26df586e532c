"""A hub of one model on this machine: enough of its interface for `huggingface_hub` to fetch from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

REPOSITORY = "some-org/tiny-bert"
GATED = "some-org/gated"
REVISION = "0123456789abcdef0123456789abcdef01234567"
EXTRA = {"pytorch_model.bin": b"not to be fetched", "modeling.py": b"raise SystemExit", "onnx/model.onnx": b"no"}


class Hub(ThreadingHTTPServer):
    """`asked` are the files that were fetched."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())} | EXTRA
        self.asked: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        about, name = f"/api/models/{REPOSITORY}", path.partition(f"/resolve/{REVISION}/")[2]
        if path in (about, f"{about}/revision/main", f"{about}/revision/{REVISION}"):
            files = [{"rfilename": name, "size": len(held)} for name, held in self.server.files.items()]
            self.answer({"id": REPOSITORY, "sha": REVISION, "private": False, "tags": [], "siblings": files})
        elif path.startswith(f"{about}/tree/"):
            sizes = [{"path": name, "size": len(held), "oid": oid(held)} for name, held in self.server.files.items()]
            self.answer([{"type": "file", **size} for size in sizes])
        elif path.startswith(f"/{REPOSITORY}/resolve/") and (held := self.server.files.get(name)):
            if self.command == "GET":
                self.server.asked.append(name)
            self.answer(held, 200, {"ETag": f'"{oid(held)}"', "X-Repo-Commit": REVISION})
        elif GATED in path:
            self.answer({"error": "gated"}, 403, {"X-Error-Code": "GatedRepo"})
        else:
            kind = "RevisionNotFound" if REPOSITORY in path else "RepoNotFound"
            self.answer({"error": kind}, 404, {"X-Error-Code": kind})

    do_HEAD = do_GET  # noqa: N815

    def answer(self, body: object, status: int = 200, headers: dict[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"Content-Length": str(len(raw)), "Content-Type": "application/json"}
        self.send_response(status)
        for name, value in (usual | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """The tests' output stays their own."""


def oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()


@contextmanager
def hub(folder: Path) -> Iterator[Hub]:
    """A hub with the files of a folder, and others beside them, that runs as long as the block."""
    server = Hub(folder)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
