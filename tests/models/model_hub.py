"""A hub of one model on this machine: enough of its interface for `huggingface_hub` to fetch from it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from http.server import ThreadingHTTPServer
from pathlib import Path

from tests.hub import REVISION as REVISION
from tests.hub import Answers, running

REPOSITORY = "some-org/tiny-bert"
GATED = "some-org/gated"
EXTRA = {"pytorch_model.bin": b"not to be fetched", "modeling.py": b"raise SystemExit", "onnx/model.onnx": b"no"}


class Hub(ThreadingHTTPServer):
    """`asked` are the files that were fetched."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())} | EXTRA
        self.asked: list[str] = []


class Handler(Answers):
    server: Hub

    def respond(self, path: str) -> None:
        about, name = f"/api/models/{REPOSITORY}", path.partition(f"/resolve/{REVISION}/")[2]
        if path in (about, f"{about}/revision/main", f"{about}/revision/{REVISION}"):
            self.answer_about(REPOSITORY, self.server.files)
        elif path.startswith(f"{about}/tree/"):
            self.answer_tree(self.server.files)
        elif path.startswith(f"/{REPOSITORY}/resolve/") and (held := self.server.files.get(name)):
            if self.command == "GET":
                self.server.asked.append(name)
            self.answer_file(held)
        elif GATED in path:
            self.refuse(403, "GatedRepo")
        else:
            self.refuse(404, "RevisionNotFound" if REPOSITORY in path else "RepoNotFound")


def hub(folder: Path) -> AbstractContextManager[Hub]:
    """A hub with the files of a folder, and others beside them, that runs as long as the block."""
    return running(Hub(folder))
