"""An option is written once, on a field of a spec, and all that users see of it follows from there."""

from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any

import pytest

from attnviz.commands import COMMANDS
from attnviz.options import (
    ARGUMENT,
    TEXT,
    FlatOption,
    Only,
    Option,
    build,
    find_changed,
    list_options,
    list_values,
    replace_values,
)
from attnviz.registry import load


@dataclass(frozen=True, kw_only=True)
class Group:
    size: Annotated[int, Option("Size{; once}. {names}; --left-out", TEXT, table="attnviz.models:BUILT_IN")] = 1
    left_out: Annotated[int, Option("Left out.", TEXT)] = 2


@dataclass(frozen=True, kw_only=True)
class Spec:
    group: Annotated[Group, Only("size")] = Group(size=3)  # frozen
    whole: Annotated[str, Option("All.", TEXT)]


SPECS = [load(command.spec) for command in COMMANDS]


def test_groups_are_left_out_for_users() -> None:
    size, whole = list_options(Spec)
    assert (size.name, size.group, size.type, size.default) == ("size", "group", int, 3)
    assert (whole.name, whole.group, whole.default) == ("whole", "", MISSING)
    spec = build(Spec, whole="x")
    assert spec == Spec(whole="x")
    assert list_values(spec) == {"size": 3, "whole": "x"}
    assert find_changed(spec) == {"whole": "x"}
    assert replace_values(spec, size=4) == Spec(group=Group(size=4), whole="x")


def test_what_is_no_option_of_a_spec_is_refused() -> None:
    for name in ("left_out", "group", "other"):
        with pytest.raises(TypeError, match=f"Spec has no option '{name}'"):
            build(Spec, whole="x", **{name: 3})
    with pytest.raises(TypeError, match="whole"):
        build(Spec)


def test_help_is_for_the_command_line_or_for_configs() -> None:
    option = list_options(Spec)[0].option
    models = "single, multi, single-zh, multi-zh, random, dot, recall"
    assert option.write_command_line_help() == f"Size; once. {models}; --left-out"
    assert option.write_config_help() == f"Size. {models}; left_out"


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_every_spec_is_built_of_its_options(spec: type[Any]) -> None:
    options = list_options(spec)
    assert len({option.name for option in options}) == len(options), "no two groups have an option of one name"
    assert all(option.option.metavar for option in options if option.option.panel == ARGUMENT)
    values = {option.name: "x" if option.default is MISSING else option.default for option in options}
    assert list_values(build(spec, **values)) == values
    for group in (field for field in fields(spec) if is_dataclass(field.default)):
        shown = {option.name for option in options if option.group == group.name}
        assert shown <= {field.name for field in fields(group.default)}, group  # type: ignore[arg-type]


def test_one_name_means_one_thing() -> None:
    """Help that commands share is written once: a name has a second help only where a command reads it differently."""
    found: dict[str, dict[int, FlatOption]] = {}
    for spec in SPECS:
        for option in list_options(spec):
            found.setdefault(option.name, {})[id(option.option)] = option
    several = {name: {each.option.help for each in options.values()} for name, options in found.items()}
    assert all(len(several[name]) == len(found[name]) for name in found), "written twice"
    assert {name for name, helps in several.items() if len(helps) > 1} == {
        "lang",
        "open",
        "layer",
        "head",
        "out",
        "query",
        "max_memory",
        "workers",
        "top_k",
        "table",
        "format",
    }
