"""A hub of one data set on this machine: enough of its interface for `datasets` to load from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

REPOSITORY = "some-org/TinyReviews"
REVISION = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "train.jsonl": b'{"text": "one", "label": 0}\n{"text": "two", "label": 1}\n{"text": "three", "label": 1}\n',
    "test.jsonl": b'{"text": "four", "label": 1}\n',
}


class Hub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        about = f"/api/datasets/{REPOSITORY}"
        if path in (about, f"{about}/revision/{REVISION}"):
            files = [{"rfilename": name} for name in FILES]
            self.answer({"id": REPOSITORY, "sha": REVISION, "private": False, "tags": [], "siblings": files})
        elif path == f"{about}/tree/{REVISION}":
            sizes = [{"path": name, "size": len(held), "oid": git_name(held)} for name, held in FILES.items()]
            self.answer([{"type": "file", **size} for size in sizes])
        elif path.startswith(f"/datasets/{REPOSITORY}/resolve/") and (held := FILES.get(path.rpartition("/")[2])):
            self.answer(held, 200, {"ETag": f'"{git_name(held)}"', "X-Repo-Commit": REVISION})
        else:
            kind = "EntryNotFound" if REPOSITORY in path else "RepoNotFound"
            self.answer({"error": kind}, 404, {"X-Error-Code": kind, "X-Repo-Commit": REVISION})

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


def git_name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()


@contextmanager
def hub() -> Iterator[str]:
    """The address of a hub that runs as long as the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
