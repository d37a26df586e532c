"""What a config may say: YAML as plain data with places, the settings of the specs, and the JSON Schema of both."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from attnviz.cli.parser import make_function
from attnviz.commands import COMMANDS
from attnviz.commands.batch import configs, reading
from attnviz.commands.batch.jobs import JOBS, NOT_IN_CONFIGS
from attnviz.commands.batch.reading import SourceFile
from attnviz.options import list_options
from tests.attacks.endings import RunHere, worked
from tests.commands.batch.conftest import Problems, Write

WHOLE = configs.json_schema()


def fits(value: Any, part: dict[str, Any]) -> bool:
    """Whether `value` is what `part` of the schema asks for, as an editor checks it."""
    return bool(Draft202012Validator({**part, "$defs": WHOLE["$defs"]}).is_valid(value))


def settings(command: str, part: str = "") -> dict[str, Any]:
    properties: dict[str, Any] = WHOLE["$defs"][command]["properties"][part or command]["properties"]
    return properties


@pytest.mark.parametrize("command", JOBS)
def test_flags_and_configs_have_the_same_settings(command: str) -> None:
    """A setting cannot exist in one and not in the other."""
    of_spec = [option.name for option in list_options(JOBS[command])]
    flags = make_function(next(each for each in COMMANDS if each.name == command)).__annotations__
    assert list(flags) == of_spec
    assert list(settings(command)) == [name for name in of_spec if name not in NOT_IN_CONFIGS]
    assert list(settings(command, "matrix")) == list(settings(command))
    of_all = WHOLE["properties"]["defaults"]["properties"]
    assert set(settings(command)) <= of_all.keys()
    assert all("default" not in setting for setting in of_all.values())  # commands differ in them


@pytest.mark.parametrize("command", JOBS)
def test_defaults_and_choices_are_those_of_the_spec(command: str) -> None:
    for field in list_options(JOBS[command]):
        if field.name in NOT_IN_CONFIGS:
            continue
        said = settings(command)[field.name]
        if "default" in said:
            assert said["default"] == (list(field.default) if isinstance(field.default, tuple) else field.default)
            assert fits(said["default"], said)
        else:
            assert field.name in ("models", "record", "base", "tuned") or field.default == ()
        for choice in get_args(field.type):
            if isinstance(choice, str):
                assert fits(choice, said)
                assert not fits(f"{choice}x", said)


@pytest.mark.parametrize(
    "config",
    [
        "{jobs: [{heatmap: null}]}", "{jobs: [{heatmap: {}}], out: x, defaults: null}", "{jobs: []}", "{}", "[]",
        "{jobs: 3}", "{jobs: [{}]}", "{jobs: [{heatmap: {}, explain: {}}]}", "{jobs: [{heatmpa: {}}]}",
        "{jobs: [{heatmap: {}, x: 1}]}", "{jobs: [{heatmap: {heads: 8}}]}", "{jobs: [{heatmap: {heads: x}}]}",
        "{jobs: [{heatmap: {heads: null}}]}", "{jobs: [{heatmap: {heads: true}}]}",
        "{jobs: [{heatmap: {heads: 1.5}}]}", "{jobs: [{heatmap: {dpi: null}}]}", "{jobs: [{heatmap: {dpi: 30}}]}",
        "{jobs: [{heatmap: {dpi: 29}}]}", "{jobs: [{train: {dropout: 1}}]}",
        "{jobs: [{heatmap: {causal: true}}]}", "{jobs: [{heatmap: {causal: 'no'}}]}",
        "{jobs: [{heatmap: {causal: 1}}]}", "{jobs: [{heatmap: {index: 3}}]}",
        "{jobs: [{heatmap: {index: [0, '1-3']}}]}", "{jobs: [{heatmap: {index: []}}]}",
        "{jobs: [{heatmap: {index: [true]}}]}", "{jobs: [{heatmap: {index: 1.5}}]}",
        "{jobs: [{heatmap: {index: null}}]}", "{jobs: [{heatmap: {scale: log}}]}",
        "{jobs: [{heatmap: {scale: big}}]}", "{jobs: [{heatmap: {json: true}}]}",
        "{jobs: [{heatmap: {max_memory: 2}}]}", "{jobs: [{heatmap: {max_memory: 2.5}}]}",
        "{jobs: [{heatmap: {title: 3}}]}", "{jobs: [{heatmap: {title: null}}]}", "{jobs: [{heatmap: {title: true}}]}",
        "{jobs: [{compare: {models: [single, multi]}}]}",
        "{jobs: [{heatmap: {}, name: a}]}", "{jobs: [{heatmap: {}, name: 3}]}", "{jobs: [{heatmap: {}, name: ../x}]}",
        "{jobs: [{heatmap: {}, matrix: {heads: [1, 2]}}]}", "{jobs: [{heatmap: {}, matrix: {heads: 1}}]}",
        "{jobs: [{heatmap: {}, matrix: {heads: []}}]}", "{jobs: [{heatmap: {}, matrix: {kernel: [1]}}]}",
        "{jobs: [{heatmap: {}, matrix: null}]}", "{jobs: [{heatmap: {}, matrix: {index: [0, [1, 2]]}}]}",
        "{jobs: [{heatmap: {}}], defaults: {dpi: 3}}", "{jobs: [{heatmap: {}}], defaults: {dpi: x}}",
        "{jobs: [{heatmap: {}}], defaults: {hads: 3}}", "{jobs: [{heatmap: {}}], out: ''}",
        "{jobs: [{heatmap: {}}], x: 1}",
    ],
)  # fmt: skip
def test_the_schema_takes_what_is_taken(config: str, problems: Problems) -> None:
    assert fits(yaml.safe_load(config), WHOLE) == (problems(config) == [])


def test_editors_can_read_the_schema(run_here: RunHere) -> None:
    printed = worked(run_here("batch", "--schema")).stdout
    assert printed.isascii()
    assert json.loads(printed) == WHOLE
    Draft202012Validator.check_schema(WHOLE)


# --- YAML as plain data with places: what is taken, and what is told of the rest ---


@pytest.fixture
def read(write: Write) -> Any:
    return lambda content: reading.read(write(content))


def told(document: SourceFile) -> list[str]:
    return list(map(str, document.problems.values()))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("off", "off"), ("y", "y"), ("NO", "NO"),
        ("true", True), ("False", False), ("tRUE", "tRUE"),
        ("1:30", "1:30"), ("2024-01-01", "2024-01-01"), ("010", "010"), ("0o10", "0o10"), ("0x1F", "0x1F"),
        ("0b1", "0b1"), ("1_000", "1_000"), ("1_0.5", "1_0.5"), ("0-4", "0-4"), ("0-4,7", "0-4,7"), ("=", "="),
        ("12", 12), ("-3", -3), ("+3", 3), ("0", 0), ("-0", 0), ("1.5", 1.5), (".5", 0.5), ("1.", 1.0),
        ("1e3", 1000.0), ("1.5E-3", 0.0015), ("e3", "e3"), ("1e", "1e"), ("00.5", "00.5"),
        ("9" * 18, 10**18 - 1), ("9" * 19, "9" * 19), ("9" * 5000, "9" * 5000),
        ("", None), ("~", None), ("null", None), ("nULL", "nULL"), (".inf", float("inf")), ("-.INF", -float("inf")),
        ('"3"', "3"), ("'no'", "no"), ('"true"', "true"), ('""', ""), ("猫", "猫"), ('"\\u732b"', "猫"),
        ('"\\ud83d\\ude00"', "😀"), ("'\\ud83d'", "\\ud83d"), ('"\\x1b"', "\x1b"), ("!!str 3", "3"),
        ("!!int '3'", 3), ("|\n  a\n  b\n", "a\nb\n"), ("[1, [a, ~]]", [1, ["a", None]]), ("{}", {}),
        ("!!map {a: 1}", {"a": 1}), ("\t3\t# a tab\t", 3), ("{b:\t1}", {"b": 1}),
    ],
)  # fmt: skip
def test_what_is_written_is_what_is_meant(written: str, meant: object, read: Any) -> None:
    document = read(f"a: {written}\n")
    assert told(document) == []
    assert document.data == {"a": meant}
    assert type(document.data["a"]) is type(meant)


TEXT = "jobs:\n  - name: a\n    heatmap: {heads: 3,\n      index: [0, 猫x, 2]}\n"


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), TEXT.replace("\n", "\r"), "\ufeff" + TEXT])
def test_everything_has_its_place(text: str, read: Any) -> None:
    document = read(text)
    assert document.data == {"jobs": [{"name": "a", "heatmap": {"heads": 3, "index": [0, "猫x", 2]}}]}
    assert document.values[()] == (1, 1)
    assert document.values["jobs", 0] == (2, 5)
    assert document.values["jobs", 0, "name"] == (2, 11)
    assert document.keys["jobs", 0, "heatmap", "heads"] == (3, 15)
    assert document.values["jobs", 0, "heatmap", "index", 2] == (4, 22)


def test_json_is_a_subset(read: Any) -> None:
    data = {"a": ["😀", "\u2028", "/", '"', 1e-7, 1.5, True, None, {"b": []}, "no", "\x7f"], "猫": {}}
    for text in (json.dumps(data), json.dumps(data, indent=1), json.dumps(data, indent="\t")):
        document = read(text)
        assert (told(document), document.data) == ([], data)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a: 1\nb: 2\na: 3", ["3:1: a: is written twice, first on line 1"]),
        ("{a: {b: 1, b: 2}}", ["1:12: a.b: is written twice, first on line 1"]),
        ("a: *x", ["1:4: a: the alias *x is not followed; write out what it means"]),
        ("a: &x 1", ["1:4: a: the anchor &x is not taken; aliases are not followed"]),
        ("&x a: 1", ["1:1: the anchor &x is not taken; aliases are not followed"]),
        ("*x : 1", ["1:1: the alias *x is not followed; write out what it means"]),
        ("a: !x 1", ["1:4: a: the tag !x is not taken; leave it out"]),
        ("a: !!python/object:os.system [b]", ["1:4: a: the tag !!python/object:os.system is not taken; leave it out"]),
        ("a: !!int x", ["1:4: a: the tag !!int is not taken; leave it out"]),
        ("1: a", ["1:1: 1 cannot be a name; quotes make it one"]),
        ("a: {true: 1, ~: 2}", ["1:5: a: true cannot be a name; quotes make it one",
                                "1:14: a: nothing cannot be a name; quotes make it one"]),
        ("? [a, b]\n: 1", ["1:3: a list or a mapping cannot be a name"]),
        ('"a\\0b": 1', ["1:1: holds a NUL character, which no setting can"]),
        ('a: "a\\0b"', ["1:4: a: holds a NUL character, which no setting can"]),
        ('a: "\\ud800"', ["1:4: a: holds half a character (\\ud800 to \\udfff alone)"]),
        ("a: 1\n---\nb: 2",
         ["2:1: is not read as YAML: expected a single document in the stream, but found another document"]),
        ("a: 1\n\tb: 2", ["2:1: is not read as YAML: a tab cannot indent; use spaces"]),
        (b"a: 1\nb: \xff", ["2:4: is not UTF-8; save it in that encoding"]),
        ("a: 1\nb: x\0y", ["2:5: holds the character '\\x00'; write it as an escape in double quotes"]),
        ("a: \x1b[31m", ["1:4: holds the character '\\x1b'; write it as an escape in double quotes"]),
        ("a: *y\nb: *z\nc: &x 1", ["1:4: a: the alias *y is not followed; write out what it means",
                                   "2:4: b: the alias *z is not followed; write out what it means",
                                   "3:4: c: the anchor &x is not taken; aliases are not followed"]),
    ],
)  # fmt: skip
def test_the_rest_is_told_with_its_place(text: str | bytes, lines: list[str], read: Any) -> None:
    assert told(read(text)) == [f"c.yaml:{line}" for line in lines]


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "@", "a: 'x", "- a\nb: 1", "%YAML 9", "a: `x`", '"\\q"', "}"])
def test_what_is_no_yaml_is_told_once(text: str, read: Any) -> None:
    document = read(text)
    assert len(document.problems) == 1
    assert ": is not read as YAML: " in told(document)[0]
    assert document.data is None


def test_files_that_are_none(tmp_path: Path, write: Write) -> None:
    assert told(reading.read(Path())) == [".: cannot be read: Is a directory"]
    for nothing in ("", "# a\n"):
        assert told(reading.read(write(nothing))) == ["c.yaml: is empty; a config has jobs"]
    assert told(reading.read(write("a: " + "x" * (1024 * 1024 - 3)))) == []
    large = write("a: " + "x" * (1024 * 1024 - 2))
    assert told(reading.read(large)) == ["c.yaml: is larger than 1 MiB; split it into several configs"]


def test_twenty_levels_are_read_and_no_more(read: Any) -> None:
    assert told(read("[" * 21 + "]" * 21)) == []
    assert told(read("[" * 22 + "]" * 22)) == ["c.yaml:1:22: is not read as YAML: nested more than 20 deep"]


LAUGHS = "a0: &a0 [lol]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))


@pytest.mark.parametrize("text", ["[" * 10**6, "{" * 10**6, "- " * 500_000, "? " * 500_000, "a: 1\na: " + "{" * 10**6,
                                  "&a " * 300_000, "!" * 10**6, "#" * 10**6, "k" * 10**6 + ": 1", LAUGHS])  # fmt: skip
def test_hostile_files_end_soon(text: str, read: Any) -> None:
    document = read(text)
    assert document.problems
    assert max(map(len, told(document))) < 200
