"""What a config may say is what the specs hold, and the JSON Schema says the same as the reading of configs."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from attnviz.cli.parser import make_function
from attnviz.commands import COMMANDS
from attnviz.commands.batch import schema
from attnviz.commands.batch.jobs import JOBS, NOT_IN_CONFIGS
from attnviz.options import list_options
from tests.attacks.endings import RunHere, worked
from tests.commands.batch.conftest import Problems

WHOLE = schema.json_schema()


def fits(value: Any, part: dict[str, Any]) -> bool:
    """Whether `value` is what `part` of the schema asks for, as an editor checks it."""
    return bool(Draft202012Validator({**part, "$defs": WHOLE["$defs"]}).is_valid(value))


def settings(command: str, kind: str = "Settings") -> dict[str, Any]:
    properties: dict[str, Any] = WHOLE["$defs"][f"{command.title()}{kind}"]["properties"]
    return properties


@pytest.mark.parametrize("command", JOBS)
def test_flags_and_configs_have_the_same_settings(command: str) -> None:
    """A setting cannot exist in one and not in the other."""
    of_spec = [option.name for option in list_options(JOBS[command])]
    flags = make_function(next(each for each in COMMANDS if each.name == command)).__annotations__
    assert list(flags) == of_spec
    assert list(settings(command)) == [name for name in of_spec if name not in NOT_IN_CONFIGS]
    assert list(settings(command, "Matrix")) == list(settings(command))
    of_all = WHOLE["$defs"]["Defaults"]["properties"]
    assert set(settings(command)) <= of_all.keys()
    assert all("default" not in setting for setting in of_all.values())  # commands differ in them


def test_nothing_is_kept_out_of_configs_that_no_flag_says() -> None:
    assert {option.name for spec in JOBS.values() for option in list_options(spec)} >= NOT_IN_CONFIGS


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
            assert field.name in ("models", "record") or field.default == ()
        for choice in get_args(field.type):
            if isinstance(choice, str):
                assert fits(choice, said)
                assert not fits(f"{choice}x", said)


def parts(value: Any) -> Any:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(inner)


def test_the_schema_is_closed_and_whole() -> None:
    objects = [part for part in parts(WHOLE) if isinstance(part, dict) and part.get("type") == "object"]
    assert len(objects) == 2 + 3 * len(JOBS)  # the config, the defaults; job, settings and matrix of each command
    assert all(part["additionalProperties"] is False for part in objects)
    references = {part["$ref"] for part in parts(WHOLE) if isinstance(part, dict) and "$ref" in part}
    assert {f"#/$defs/{name}" for name in WHOLE["$defs"]} == references
    assert WHOLE["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    "config",
    [
        "{jobs: [{heatmap: null}]}", "{jobs: [{heatmap: {}}], out: x, defaults: null}", "{jobs: []}", "{}", "[]",
        "{jobs: 3}", "{jobs: [{}]}", "{jobs: [{heatmap: {}, explain: {}}]}", "{jobs: [{heatmpa: {}}]}",
        "{jobs: [{heatmap: {}, x: 1}]}", "{jobs: [{heatmap: {heads: 8}}]}", "{jobs: [{heatmap: {heads: x}}]}",
        "{jobs: [{heatmap: {heads: null}}]}", "{jobs: [{heatmap: {heads: true}}]}",
        "{jobs: [{heatmap: {heads: 1.5}}]}", "{jobs: [{heatmap: {dpi: null}}]}",
        "{jobs: [{heatmap: {causal: true}}]}", "{jobs: [{heatmap: {causal: 'no'}}]}",
        "{jobs: [{heatmap: {causal: 1}}]}", "{jobs: [{heatmap: {index: 3}}]}",
        "{jobs: [{heatmap: {index: [0, '1-3']}}]}", "{jobs: [{heatmap: {index: []}}]}",
        "{jobs: [{heatmap: {index: [true]}}]}", "{jobs: [{heatmap: {index: 1.5}}]}",
        "{jobs: [{heatmap: {index: null}}]}", "{jobs: [{heatmap: {scale: log}}]}",
        "{jobs: [{heatmap: {scale: big}}]}", "{jobs: [{heatmap: {json: true}}]}",
        "{jobs: [{heatmap: {max_memory: 2}}]}", "{jobs: [{heatmap: {max_memory: 2.5}}]}",
        "{jobs: [{heatmap: {title: 3}}]}", "{jobs: [{heatmap: {title: null}}]}", "{jobs: [{heatmap: {title: true}}]}",
        "{jobs: [{explain: {layer: 3}}]}", "{jobs: [{explain: {layer: '3'}}]}", "{jobs: [{explain: {lang: zh}}]}",
        "{jobs: [{explain: {lang: fr}}]}", "{jobs: [{compare: {models: [single, multi]}}]}",
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


def test_settings_are_described_without_flags() -> None:
    said = {
        (command, name): each.get("description", "") for command in JOBS for name, each in settings(command).items()
    }
    assert [where for where, text in said.items() if not text] == []
    assert [text for text in said.values() if any(word in text for word in ("--", "; repeat", "stdin"))] == []
    assert said["heatmap", "layer"] == "Which layers: 0, 0-3,7. Default: all."
    assert said["explain", "layer"] == "By hand: which layer; -1 is the last."
    assert said["heatmap", "max_tokens"] == "At most N tokens of a text; keep says which."
