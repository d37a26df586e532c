"""Manifests come back as they were, and what is none is told."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from attnviz.commands.batch.manifests import from_file, job_from_manifest, to_bytes
from attnviz.errors import InvalidConfig
from attnviz.store.manifest import Entry, File, Manifest, TextNumbers

SETTINGS = {"models": ["single", "multi"], "title": "猫 \x1b\u202e", "max_memory": 2.5}
ENTRY = Entry(
    "a",
    "compare",
    SETTINGS,
    "f" * 64,
    {"weights of multi:8": "1", "texts": "2"},
    (TextNumbers("z", {"entropy": [0.1, 1e-300], "a": [-0.0, 1.0]}, [1, 3], [0, "mean"]), TextNumbers("a", {})),
    ("one", "two"),
    (File("a/b.png", "0" * 64, 12345),),
)
FAILED = Entry("b", "heatmap", {}, "", {}, (), (), (), "no such thing")
MANIFEST = Manifest({"b.yaml": "1", "a.yaml": "2"}, {"torch": "2", "attnviz": "1"}, (ENTRY, FAILED))


def of_one(entry: Entry) -> Manifest:
    return Manifest({}, {}, (entry,))


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(to_bytes(MANIFEST))
    found = from_file(path)
    assert found == MANIFEST
    assert to_bytes(found) == to_bytes(MANIFEST)


def test_the_bytes(tmp_path: Path) -> None:
    written = to_bytes(MANIFEST)
    assert written.isascii()
    assert written.endswith(b"\n}\n")
    data = json.loads(written)
    assert list(data) == ["schema", "configs", "versions", "jobs"]
    assert list(data["configs"]) == ["a.yaml", "b.yaml"]
    assert list(data["jobs"][0]["inputs"]) == ["texts", "weights of multi:8"]
    turned = replace(MANIFEST, configs=dict(reversed(MANIFEST.configs.items())))
    assert to_bytes(turned) == written


def test_half_a_character_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(to_bytes(of_one(replace(FAILED, error="\ud800", settings={"text": ["\udfff"]}))))
    assert from_file(path) == of_one(replace(FAILED, error="\ufffd", settings={"text": ["\ufffd"]}))


def test_there_is_no_json_of_infinity() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_bytes(of_one(replace(ENTRY, numbers=(TextNumbers("a", {"b": [float("nan")]}),))))


GOOD = json.loads(to_bytes(MANIFEST))
ENTROPY: list[str | int] = ["jobs", 0, "numbers", 0, "values", "entropy"]


def changed(where: list[str | int], value: object) -> str:
    data = json.loads(json.dumps(GOOD))
    inner = data
    for step in where[:-1]:
        inner = inner[step]
    inner[where[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ": is not JSON in UTF-8: Expecting value: line 1"),
        ('{\n"a":', ": is not JSON in UTF-8: Expecting value: line 2 column 5"),
        (b"\xff", ": is not JSON in UTF-8: "),
        ("[" * 10**5, ": is not JSON in UTF-8: "),
        ("[]", ": the whole is not of type Manifest"),
        ("{}", ": the whole holds other names than configs, versions, jobs, schema"),
        (changed(["schema"], 1), ": schema: this attnviz reads 2, not 1; make the batch again"),
        (changed(["schema"], "x" * 1000), f": schema: this attnviz reads 2, not '{'x' * 39}; make the batch again"),
        (changed(["more"], 2), ": the whole holds other names than configs, versions, jobs, schema"),
        (changed(["jobs", 1, "more"], 2), ": jobs[1] holds other names than name, command, "),
        (changed(["jobs", 0, "files", 0, "size"], "3"), ": jobs[0].files[0].size is not of type int"),
        (changed(["jobs", 0, "files", 0], 3), ": jobs[0].files[0] is not of type File"),
        (changed(["jobs", 0, "name"], "../up"), ": '../up' cannot be a name: "),
        (changed(["jobs", 1, "name"], "A"), ": the name 'A' is there twice, whatever the case"),
        *((changed(["jobs", 0, "files", 0, "path"], path), f": {path!r} is not a path within 'a'")
          for path in ("", "a", "b/c", "/a/b", "../a/b", "a/../b", "a/./b", "a//b", "./a/b", "a\\b", "a/b\\c", "a/b:c",
                       "a/\0")),
        (changed(["jobs", 0, "files", 0, "path"], "a/" + "é" * 128), ": 'a/ééé"),
        (changed(["jobs"], {}), ": jobs is not of type tuple"),
        (changed(["jobs", 0, "inputs"], []), ": jobs[0].inputs is not of type dict"),
        (changed([*ENTROPY, 1], "x"), ": jobs[0].numbers[0].values.entropy[1] is not of type float"),
        (changed([*ENTROPY, 1], float("nan")), ": NaN is not a finite number"),
        (changed([*ENTROPY, 1], 1), ""),
        (changed(ENTROPY, [1.0]), ": the columns of numbers of 'z' are of several lengths"),
        (changed([*ENTROPY[:-2], "layer", 0], 2**63), ": jobs[0].numbers[0].layer[0] is not of type int"),
        (to_bytes(MANIFEST).decode().replace("1e-300", "1e999"), ": 1e999 is not a finite number"),
        (to_bytes(MANIFEST).decode().replace("no such", "\\ud800"), ": is not JSON in UTF-8: "),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_told(text: str | bytes, line: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if not line:
        assert from_file(path)
        return
    with pytest.raises(InvalidConfig) as caught:
        from_file(path)
    assert caught.value.lines[0].startswith(f"{path}{line}")


def test_a_job_without_what_its_command_needs_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"m\.json: a: models is missing"):
        job_from_manifest(replace(ENTRY, settings={}), Path(), "m.json")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"cannot read .*nix: No such file"):
        from_file(tmp_path / "nix")
    with pytest.raises(InvalidConfig, match=r"cannot read .*: Is a directory"):
        from_file(tmp_path)
    with (tmp_path / "long").open("wb") as file:
        file.truncate(2**27 + 1)
    with pytest.raises(InvalidConfig, match=r"long is 128 MiB long, at most 128 MiB are read"):
        from_file(tmp_path / "long")
