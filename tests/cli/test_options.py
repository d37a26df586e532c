"""An option is written once, and where its panel in the help says."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest
from typer.models import OptionInfo

from attnviz.cli import options, options_check, options_figures, options_model, options_output, options_text

TOPICS = (options_text, options_model, options_figures, options_output, options_check)
NAMES = [topic.__name__.rpartition("_")[2] for topic in TOPICS]


def written(option: Any) -> OptionInfo:
    info = option.__metadata__[0]
    assert isinstance(info, OptionInfo)
    return info


@pytest.mark.parametrize("topic", TOPICS, ids=NAMES)
def test_a_topic_is_the_panels_that_its_docstring_names(topic: ModuleType) -> None:
    panels = set(re.findall('"(.+?)"', topic.__doc__ or ""))
    assert {written(option).rich_help_panel for option in topic.OPTIONS.values()} == panels


def test_no_panel_is_in_two_topics() -> None:
    panels = [panel for topic in TOPICS for panel in re.findall('"(.+?)"', topic.__doc__ or "")]
    assert len(panels) == len(set(panels))


def test_no_option_is_written_twice() -> None:
    """Of two with one name the first would be lost."""
    names = [name for topic in TOPICS for name in topic.OPTIONS] + list(options.ARGUMENTS)
    assert sorted(names) == sorted(options.OPTIONS)


@pytest.mark.parametrize("topic", TOPICS, ids=NAMES)
def test_a_flag_is_named_as_what_it_sets(topic: ModuleType) -> None:
    for name, option in topic.OPTIONS.items():
        flag = str(written(option).default)  # where typer keeps the name until it makes the command
        assert flag.partition("/")[0] == f"--{name.replace('_', '-')}"
