"""A hub of one data set on this machine: enough of its interface for `datasets` to load from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

from tests.hub import REVISION, Answers, running

REPOSITORY = "some-org/TinyReviews"
FILES = {
    "train.jsonl": b'{"text": "one", "label": 0}\n{"text": "two", "label": 1}\n{"text": "three", "label": 1}\n',
    "test.jsonl": b'{"text": "four", "label": 1}\n',
}


class Handler(Answers):
    def respond(self, path: str) -> None:
        about = f"/api/datasets/{REPOSITORY}"
        if path in (about, f"{about}/revision/{REVISION}"):
            self.answer_about(REPOSITORY, FILES)
        elif path == f"{about}/tree/{REVISION}":
            self.answer_tree(FILES)
        elif path.startswith(f"/datasets/{REPOSITORY}/resolve/") and (held := FILES.get(path.rpartition("/")[2])):
            self.answer_file(held)
        else:
            self.refuse(404, "EntryNotFound" if REPOSITORY in path else "RepoNotFound")


@contextmanager
def hub() -> Iterator[str]:
    """The address of a hub that runs as long as the block."""
    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}"
