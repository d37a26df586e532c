"""The kinds of what is tried, each a folder that was good with one thing in it changed, and a command line."""

import gzip
import importlib.util
import json
import os
import shutil
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import BytesIO, StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from attnviz import store
from attnviz.cli import app
from attnviz.commands.train.spec import TrainSpec
from attnviz.options import build
from tests.commands.train.runs import stopped
from tests.fuzz.inputs import OUTPUTS, SPECS, bombs, changed, command_lines, configs, damaged, numbers, tensors
from tests.fuzz.laws import MAX_MEMORY, breaches, contents, run
from tests.made import random_maps
from tests.text.corpora import write_parquet
from tests.text.test_as_people_have_it import OF_PEOPLE, write_gz, write_tar, write_zip
from tests.text.test_markup import CHATS, FILES

GOOD = """
jobs:
  - {name: a, heatmap: {text: the cat sat, model: "multi:2", dpi: 30, format: [png, html]}}
  - {name: b, explain: {text: the cat sat}}
  - {name: c, compare: {models: [dot, single], text: the cat sat, dpi: 30}}
"""
TABLES = ("table.parquet", "table.csv", *OF_PEOPLE, "table.csv.gz", "tables.zip", "tables.tar.gz")
TRAIN = "train --dataset table.csv --epochs 1 --d-model 8 --heads 2 --size 60 --max-tokens 16"
WRITERS = {name for name, options in SPECS.items() if any(option.name == "out" for option in options)} - {"batch"}
HF = importlib.util.find_spec("transformers") is not None


@dataclass(frozen=True)
class Attempt:
    """A file of the good folder with other bytes ("" for none), a command line, and what it may write to."""

    file: str
    data: bytes | Callable[[], bytes]
    args: tuple[str, ...]
    outputs: tuple[str, ...]


class Arena:
    """A folder to run in, one beside it that must stay as it is, and one for home and temporary files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.here, self.victim, self.room = (folder / "arena" / name for name in ("here", "victim", "room"))
        self.good = folder / "good"
        for place in (self.good, self.victim, self.room):
            place.mkdir(parents=True)
        (self.victim / "secret.txt").write_text("secret", encoding="utf-8")
        (self.victim / "layer-0-head-0.png").write_text("a picture", encoding="utf-8")
        _fill(self.good, self.room)
        self._before: dict[str, str] = {}
        self.attempted = 0

    def file(self, name: str) -> bytes:
        return (self.good / name).read_bytes()

    def broken(self, attempt: Attempt) -> list[str]:
        """The laws that an attempt breaks."""
        self.attempted += 1
        beside = self.here.parent
        if not self._before or contents(beside) != self._before:
            shutil.rmtree(self.here, ignore_errors=True)
            shutil.copytree(self.good, self.here, symlinks=True)
            os.mkfifo(self.here / "fifo")
            self._before = contents(beside)
        if attempt.file:
            (self.here / attempt.file).write_bytes(attempt.data() if callable(attempt.data) else attempt.data)
        before = contents(beside)
        ending = run(attempt.args, self.here, self.room)
        outputs = [os.path.normpath(f"here/{name}") for name in attempt.outputs]
        after = contents(beside)
        for path in (self.victim, self.room):
            for new in [path for path in path.iterdir() if str(path.relative_to(beside)) not in self._before]:
                shutil.rmtree(new) if new.is_dir() else new.unlink()
        return list(breaches(ending, before, after, outputs))


def _fill(good: Path, room: Path) -> None:
    (good / "text.txt").write_text("the cat sat on the mat", encoding="utf-8")
    rows = [f"{'good' if number % 2 else 'bad'} film number {number},{number % 2}" for number in range(20)]
    (good / "table.csv").write_text("text,label\n" + "\n".join(rows), encoding="utf-8")
    (good / "good.yaml").write_text(GOOD, encoding="utf-8")
    (good / "empty").mkdir()
    (good / "loop").symlink_to("loop")
    (good / "record").mkdir()
    store.save(random_maps(("the", "cat", "sat", "."), n_layers=2, n_heads=2), good / "record/attention.safetensors")
    surveyed = "survey --model multi:2 --dataset table.csv --null shuffled --probe repeat --out survey"
    for words in ("batch good.yaml --out batch", f"{TRAIN} --out model", surveyed):
        ending = run(words.split(), good, room)
        assert ending.code == 0, ending.err
    with chdir(good), redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # fonts and kernels, for all forks
        assert (
            app.run(["render", "record/attention.safetensors", "--out", "drawn", "--format", "png,svg,pdf,html"]) == 0
        )
    shutil.rmtree(good / "drawn")
    write_parquet(good / "table.parquet", [("good film", 1), ("bad film", 0)] * 10)
    for name, content in OF_PEOPLE.items():
        (good / name).write_bytes(content)
    table = (good / "table.csv").read_bytes()
    write_gz(good / "table.csv.gz", {"table.csv": table})
    write_zip(good / "tables.zip", {"train.csv": table})
    write_tar(good / "tables.tar.gz", {"in/test.csv": table})
    (good / "weights").mkdir()
    maps, arrays = np.eye(4, dtype=np.float32)[None], np.array(["a", "b", "c", "d"])
    np.save(good / "weights/a.npy", maps)
    np.savez(good / "weights/a.npz", layer_0=maps, layer_1=maps, tokens=arrays)
    torch.save({"attentions": (torch.tensor(maps),), "tokens": arrays.tolist()}, good / "weights/a.pt")
    np.savetxt(good / "weights/a.csv", maps[0], delimiter=",", header=",".join(arrays), comments="")
    (good / "weights/a.json").write_text(json.dumps({"tokens": arrays.tolist(), "weights": maps.tolist()}))
    _fork(_stop_training, good)
    shutil.copytree(good / "batch", good / "other")
    if HF:
        from tests.pretrained import saved

        _fork(saved, good / "folder", "bert")  # its progress bar begins a thread, which may hold a lock that forks copy
    else:
        (good / "folder").mkdir()


def _fork(work: Callable[..., object], *args: object) -> None:
    """Have something done by a process of its own."""
    process = get_context("fork").Process(target=work, args=args)
    process.start()
    process.join()
    assert process.exitcode == 0


def _stop_training(good: Path) -> None:
    """Leave a run after its first steps, with the state that --resume goes on from."""
    with chdir(good), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        spec = build(TrainSpec, dataset="table.csv", epochs=1, d_model=8, heads=2, size=60, max_tokens=16)
        stopped(spec, "stopped", 1)
    os._exit(0 if (good / "stopped/training.safetensors").exists() else 1)  # as quickly as it was forked


Kind = Callable[[Arena], st.SearchStrategy[Attempt]]


def lines(_: Arena) -> st.SearchStrategy[Attempt]:
    """Command lines alone."""

    def attempt(args: list[str], out: str) -> Attempt:
        if args[0] in WRITERS or (args[0] == "batch" and "--out" not in args):
            args = [*args, "--out", out]
        places = (out, out.split("/")[0]) if out not in ("text.txt", "fifo", "loop") else ()
        return Attempt("", b"", tuple(args), places)

    return st.builds(attempt, command_lines(), st.sampled_from(OUTPUTS))


def _of(arena: Arena, file: str, change: Callable[[bytes], Any], *commands: list[str]) -> st.SearchStrategy[Attempt]:
    """One file changed, and a command that reads it with a few options."""

    def attempt(data: bytes, args: list[str]) -> Attempt:
        args = [*args, "--out", "out"] if args[0] in WRITERS and "--out" not in args else args
        out = args[args.index("--out") + 1] if "--out" in args else "out"
        return Attempt(file, data, tuple(args), (out,))

    words = st.one_of([command_lines(*command) | st.just(list(command)) for command in commands])
    return st.builds(attempt, change(arena.file(file)), words)


def records(arena: Arena) -> st.SearchStrategy[Attempt]:
    file = "record/attention.safetensors"
    return _of(arena, file, tensors, ["render", file], ["diff", "record", "record"]) | _of(
        arena, "batch/a/attention.safetensors", tensors, ["diff", "other", "batch"]
    )


def surveys(arena: Arena) -> st.SearchStrategy[Attempt]:
    files = ("attended.parquet", "moments.parquet", "texts-00000.parquet")
    again = ["survey", "--model", "multi:2", "--dataset", "table.csv", "--null", "shuffled", "--probe", "repeat"]
    commands = [["merge", "survey"], ["diff", "survey", "survey"], again]
    return st.one_of([_of(arena, f"survey/{file}", numbers, *commands) for file in files])


def manifests(arena: Arena) -> st.SearchStrategy[Attempt]:
    made = ["batch", "good.yaml", "--out", "batch"]
    compared = [["diff", "batch", "--again"], ["diff", "other", "batch"], ["diff", "batch", "other"]]
    return _of(arena, "batch/manifest.json", changed, made, *compared)


def checkpoints(arena: Arena) -> st.SearchStrategy[Attempt]:
    said = ["--model", "model", "--text", "good film", "--dpi", "30"]
    bounded = ["--max-memory", str(MAX_MEMORY)]
    commands = [["heatmap", *said, *bounded], ["predict", *said, *bounded], ["explain", *said[:-2], *bounded]]
    commands.append(["compare", "model", "dot", *said[2:], *bounded])
    changes = {"config.json": changed, "tokenizer.json": changed, "metrics.json": changed, "model.safetensors": tensors}
    return st.one_of([_of(arena, f"model/{name}", change, *commands) for name, change in changes.items()])


def folders(arena: Arena) -> st.SearchStrategy[Attempt]:
    command = ["heatmap", "--model", "folder", "--text", "the cat", "--dpi", "30", "--max-memory", "1"]
    changes = {"config.json": changed, "tokenizer.json": changed, "tokenizer_config.json": changed}
    changes["model.safetensors"] = tensors
    return st.one_of([_of(arena, f"folder/{name}", change, command) for name, change in changes.items()])


def tables(arena: Arena) -> st.SearchStrategy[Attempt]:
    bounded = ["--model", "model", "--max-memory", str(MAX_MEMORY)]
    return st.one_of([_of(arena, name, damaged, ["predict", "--dataset", name, *bounded]) for name in TABLES])


def packed(arena: Arena) -> st.SearchStrategy[Attempt]:
    """Files for each door, damaged or with a part of them repeated, and packed small where their names say so."""
    files = {"a.csv.gz": "table.csv", "a.json.gz": "array.json", "b.tar.gz": "tables.tar.gz", "b.zip": "table.csv"}
    data = {name: arena.file(of) for name, of in files.items()} | {"a.jsonl.gz": b'{"text": "a film", "label": 1}\n'}
    data["b.tar.gz"] = gzip.decompress(data["b.tar.gz"])
    data |= {f"w{path.suffix}": path.read_bytes() for path in sorted((arena.good / "weights").iterdir())}
    data |= {name: content.encode() for name, content in {**{name: text for name, text, *_ in FILES}, **CHATS}.items()}

    def pack(name: str, make: Callable[[], bytes]) -> bytes:
        file = BytesIO()
        if name == "b.zip":
            write_zip(file, {"train.csv": make()})
        return file.getvalue() or (gzip.compress(make(), 1) if name.endswith(".gz") else make())

    def attempt(of: tuple[str, Callable[[], bytes]], more: list[str]) -> Attempt:
        door = ["render", of[0]] if of[0].startswith("w.") else ["heatmap", of[0], "--max-tokens", "16", *more]
        bounded = ("--dpi", "30", "--max-memory", str(MAX_MEMORY), "--out", "out")
        return Attempt(of[0], partial(pack, *of), (*door, *bounded), ("out",))

    of_files = st.one_of([st.tuples(st.just(name), bombs(content)) for name, content in data.items()])
    more = st.sampled_from([[], ["--keep-markup"], ["--index", "0"], ["--index", "-1"]])
    return st.builds(attempt, of_files, more)


def training_states(arena: Arena) -> st.SearchStrategy[Attempt]:
    again = [*TRAIN.split(), "--out", "stopped", "--resume"]
    return _of(arena, "stopped/training.safetensors", tensors, again)


def written_configs(arena: Arena) -> st.SearchStrategy[Attempt]:
    made = ["batch", "good.yaml", "--out", "out"]
    return _of(arena, "good.yaml", lambda data: configs() | damaged(data), made)


KINDS: dict[str, Kind] = {
    "command lines": lines,
    "configs": written_configs,
    "manifests": manifests,
    "records": records,
    "surveys": surveys,
    "checkpoints": checkpoints,
    "tables": tables,
    "packed": packed,
    "training states": training_states,
    **({"model folders": folders} if HF else {}),
}
