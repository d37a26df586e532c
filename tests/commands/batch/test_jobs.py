"""Configs as jobs: what they make, and what is wrong with them, all at once."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from attnviz.commands.batch.configs import MAX_JOBS, load_all
from attnviz.commands.compare.spec import CompareSpec
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.errors import InvalidConfig
from attnviz.options import build, list_values
from tests.commands.batch.conftest import Problems, Write, load
from tests.process import bare_environment, said_by

WHOLE = """\
out: figures
defaults:
  dataset: sample
  dpi: 200
  kernel: 5
  heads: 2
jobs:
  - name: heads
    heatmap: {scale: shared}
    matrix:
      heads: [1, 8]
      index: [0, 1-3, [4, 5]]
  - compare:
      models: [single, multi]
      dpi: 100
  - compare: {models: multi, title: no}
"""


def test_a_config_is_a_plan(write: Write) -> None:
    plan = load(write(WHOLE, "here/c.yaml"))
    assert plan.out == "figures"
    assert plan.configs == {"c.yaml": hashlib.sha256(WHOLE.encode()).hexdigest()}
    assert [(job.name, job.command) for job in plan.jobs] == [
        ("heads-1-index-0", "heatmap"),
        ("heads-1-index-1-3", "heatmap"),
        ("heads-1-index-4_5", "heatmap"),
        ("heads-8-index-0", "heatmap"),
        ("heads-8-index-1-3", "heatmap"),
        ("heads-8-index-4_5", "heatmap"),
        ("compare-1", "compare"),
        ("compare-2", "compare"),
    ]
    assert plan.jobs[2].spec == build(HeatmapSpec, dataset="sample", dpi=200, scale="shared", heads=1, index=("4", "5"))
    assert plan.jobs[6].spec == build(CompareSpec, dataset="sample", dpi=100, kernel=5, models=("single", "multi"))
    assert plan.jobs[7].spec == build(CompareSpec, dataset="sample", dpi=200, kernel=5, models=("multi",), title="no")


def test_matrix_names(write: Write) -> None:
    def names(matrix: str, name: str = "a") -> list[str]:
        return [job.name for job in load(write(f"jobs: [{{name: {name}, heatmap: , matrix: {matrix}}}]")).jobs]

    assert names("{model: ['multi:8', dot]}") == ["a-model-multi_8", "a-model-dot"]
    assert names("{causal: [true, false], title: [~, x]}") == [
        "a-causal-true-title-none", "a-causal-true-title-x", "a-causal-false-title-none", "a-causal-false-title-x",
    ]  # fmt: skip
    assert names("{index: [-1, 1]}") == ["a-index--1", "a-index-1"]
    assert names("{index: [0-3, [0, 3], '0,3']}") == ["a-index-1", "a-index-2", "a-index-3"]  # two would be 0_3
    assert names("{text: [猫, 犬]}") == ["a-text-1", "a-text-2"]
    assert names("{title: [A, a]}") == ["a-title-1", "a-title-2"]
    assert names("{text: [short, a text of more than 24 characters]}") == ["a-text-1", "a-text-2"]
    assert names("{heads: [8]}", "my-heads") == ["my-heads-8"]
    assert names("{heads: [8]}", "overheads") == ["overheads-heads-8"]
    assert names("{seed: [1], heads: [8]}", "heads") == ["heads-seed-1-heads-8"]


def test_paths_are_from_the_config(write: Write, tmp_path: Path) -> None:
    for there in ("here/reviews.csv", "here/sample/train.csv", "here/org/name/x", "here/mine/x"):
        write("", there)
    wanted = {  # written: meant, for a config here/c.yaml
        "dataset": {
            "reviews.csv": "./here/reviews.csv", "other.csv": "other.csv",
            "sample": "sample", "./sample": "./here/sample",
            "org/name": "./here/org/name", "org/else": "org/else", "a/b/c": "./here/a/b/c", "../x": "./here/../x",
            "~/x": "~/x", "~": "~", "~x/y": "~x/y", "/x": "/x", "/x/y/": "/x/y/", "": "",
        },
        "model": {"dot": "dot", "multi:8": "multi:8", "mine": "mine", "./mine": "./here/mine", "a/b": "./here/a/b"},
        "vocab": {"v": "./here/v", "v/w": "./here/v/w", "/v": "/v"},
    }  # fmt: skip
    for setting, paths in wanted.items():
        for written, meant in paths.items():
            job = load(write(f"jobs: [heatmap: {{{setting}: '{written}'}}]", "here/c.yaml")).jobs[0]
            assert list_values(job.spec)[setting] == meant
            assert job.settings == {setting: written}
    (job,) = load(write("jobs: [changed: {base: mine/x, tuned: org/else, dataset: sample}]", "here/c.yaml")).jobs
    assert (job.spec.base, job.spec.tuned) == ("./here/mine/x", "org/else")
    job = load(write("jobs: [compare: {models: [single, ./mine], text_file: [a.txt, ../b.txt]}]", "here/c.yaml")).jobs[
        0
    ]
    assert job.spec == build(
        CompareSpec, models=("single", "./here/mine"), text_file=("./here/a.txt", "./here/../b.txt")
    )
    assert job.settings == {"models": ("single", "./mine"), "text_file": ("a.txt", "../b.txt")}
    assert job.written == job.settings
    absolute = load(tmp_path / write("jobs: [heatmap: {dataset: reviews.csv}]", "here/c.yaml")).jobs[0]
    assert absolute.spec == build(HeatmapSpec, dataset=str(tmp_path / "here/reviews.csv"))
    assert absolute.settings == {"dataset": "reviews.csv"}
    write("", "sample/x")  # a config in the current folder: ./sample must not become the data set of that name
    assert load(write("jobs: [heatmap: {dataset: ./sample}]")).jobs[0].spec == build(HeatmapSpec, dataset="./sample")


COMMANDS = "heatmap, explain, lesson, render, compare, survey, predict, attribute, sources, changed, train, vocab"
IN_A_NAME = "write A-Z a-z 0-9 . _ - only, and a letter or digit first"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        # the file
        ("3", "1:1: write settings (name: value), not 3"),
        ("out: x", "1:1: jobs is missing"),
        ("jobs: []", "1:7: jobs: write at least one, not an empty list"),
        ("jobs:", "1:6: jobs: write a list, not nothing"),
        ("{jobs: [heatmap: ], out: ''}", "1:26: out: write a folder, not nothing"),
        # the commands
        ("jobs: [heatmap]", "1:8: jobs[0]: write a command (heatmap: …), not 'heatmap'"),
        ("jobs: [{}]", f"1:8: jobs[0]: no command here; write one of {COMMANDS}"),
        ("jobs: [heatmpa: ]", "1:8: jobs[0].heatmpa: no 'heatmpa' here. Did you mean 'heatmap'?"),
        ("jobs: [diff: ]", f"1:8: jobs[0].diff: no 'diff' here. There are name, {COMMANDS}, matrix."),
        ("jobs:\n- heatmap:\n  heads: 3", "3:3: jobs[0].heads: no 'heads' here. There are name, heatmap, matrix."),
        ("jobs: [compare: ]", "1:16: jobs[0].compare: models is missing"),
        # the settings: what values may be is in tests/test_option_values.py
        ("jobs: [heatmap: {json: true}]",
         "1:18: jobs[0].heatmap.json: 'json' is for the command line; a batch decides it"),
        ("jobs: [heatmap: {heads: eight}]", "1:25: jobs[0].heatmap.heads: write a whole number, not 'eight'"),
        ("jobs: [heatmap: {index: [0, {}]}]", "1:29: jobs[0].heatmap.index[1]: write a text, not settings"),
        ("jobs: [heatmap: {text_file: -}]",
         "1:29: jobs[0].heatmap.text_file: write the name of a file (a batch has no standard input), not '-'"),
        # defaults
        ("{defaults: {max_tokens: 1}, jobs: [heatmap: , predict: ]}",
         "1:25: defaults.max_tokens: write a whole number that is at least 2, not 1"),
        # the matrix
        ("jobs: [{heatmap: {heads: 3}, matrix: {heads: [1]}}]",
         "1:39: jobs[0].matrix.heads: is in heatmap too; write it once"),
        # the names
        ("jobs: [{heatmap: , name: ../../x}]", f"1:26: jobs[0].name: '../../x' cannot be a name: {IN_A_NAME}"),
        ('jobs: [{heatmap: , name: "a\\n"}]', f"1:26: jobs[0].name: 'a\\n' cannot be a name: {IN_A_NAME}"),
        ("jobs: [{heatmap: , name: a.}]",
         "1:26: jobs[0].name: 'a.' cannot be a name: Windows drops the dot at its end"),
        ("jobs: [{heatmap: , name: Index.html}]",
         "1:26: jobs[0].name: 'Index.html' cannot be a name: the batch writes a file called so"),
        ("jobs: [{heatmap: , name: NUL}]", "1:26: jobs[0].name: 'NUL' cannot be a name: on Windows it is a device"),
        (f"jobs: [{{heatmap: , name: {'n' * 60}, matrix: {{heads: [1, 2]}}}}]",
         f"1:26: jobs[0].name: the name '{'n' * 39}…' has more than 64 characters"),
        ("jobs:\n- {heatmap: , name: a}\n- {explain: , name: A}",
         "3:21: jobs[1].name: the name 'A' is taken by the job at c.yaml:2:3, whatever the case"),
        ("jobs:\n- {heatmap: , name: a-heads-1}\n- {heatmap: , name: a, matrix: {heads: [1, 2]}}",
         "3:21: jobs[1].name: the name 'a-heads-1' is taken by the job at c.yaml:2:3, whatever the case"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_its_place(text: str, line: str, problems: Problems) -> None:
    assert problems(text) == [f"c.yaml:{line}"]


def test_of_very_many_problems_twenty_are_told(problems: Problems) -> None:
    lines = problems("jobs:\n" + "- heatmap: {heads: x}\n" * 32)
    assert lines[19] == "c.yaml:21:20: jobs[19].heatmap.heads: write a whole number, not 'x'"
    assert lines[20:] == ["… and 12 more"]


def test_long_values_are_cut(problems: Problems) -> None:
    lines = problems(f'jobs: [heatmap: {{heads: {"x" * 10**5}, {"k" * 1000}: 1, "a\\e[31m\\u202e": 1}}]')
    assert max(map(len, lines)) < 700  # one of them lists all settings
    assert f"write a whole number, not '{'x' * 39}…'" in lines[0]
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)


def test_there_are_at_most_ten_thousand_jobs(problems: Problems, write: Write) -> None:
    hundred = str(list(range(30, 130)))
    most = f"jobs:\n- heatmap:\n  matrix: {{seed: {hundred}, heads: {hundred}}}\n"
    assert len(load(write(most)).jobs) == MAX_JOBS
    told = problems(f"{most}- explain:\n- explain:\n- explain: \n  matrix: {{a: 3}}\n")
    assert told[0] == "c.yaml:4:3: jobs[1]: makes 10,001 jobs in all; a batch has at most 10,000"
    assert [line.split(":")[1] for line in told] == ["4", "5", "6", "7"]
    settings = ("seed", "heads", "layers", "dpi", "top_k", "d_model", "max_tokens", "index")
    huge = f"jobs:\n- heatmap:\n  matrix: {{{', '.join(f'{name}: {hundred}' for name in settings)}}}\n"
    assert "makes 10,000,000,000,000,000 jobs in all" in problems(huge)[0]


def told(*paths: Path, out: str | None = None) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        load_all(paths, out)
    return list(caught.value.lines)


def test_several_configs_are_told_together(write: Write) -> None:
    first = write("{out: x, jobs: [heatmap: ]}", "a.yaml")
    second = write("{out: y, jobs: [heatmap: {heads: x}, {heatmap: , name: Heatmap-1}]}", "b.yaml")
    assert told(first, Path("nix.yaml"), second) == [
        "nix.yaml: cannot be read: No such file or directory",
        "b.yaml:1:7: out: is 'x' in a.yaml; write the same in both, or say --out",
        "b.yaml:1:17: jobs[0].name: the name 'heatmap-1' is taken by the job at a.yaml:1:17, whatever the case",
        "b.yaml:1:34: jobs[0].heatmap.heads: write a whole number, not 'x'",
        "b.yaml:1:56: jobs[1].name: the name 'Heatmap-1' is taken by the job at a.yaml:1:17, whatever the case",
    ]
    assert len(told(first, second, out="z")) == 3
    assert told(first, write("jobs: [explain: ]", "b/a.yaml")) == [
        "b/a.yaml: is called as a.yaml is; rename one, or give it once"
    ]


def test_the_same_config_is_the_same_plan_in_every_process(write: Write, tmp_path: Path) -> None:
    """A set of names has another order in each process."""
    config = write(WHOLE)
    script = f"from attnviz.commands.batch.configs import load_all\nprint(load_all([{str(config)!r}]))"
    seeded = (bare_environment(tmp_path) | {"PYTHONHASHSEED": seed} for seed in "12")
    one, other = (said_by([sys.executable, "-c", script], cwd=tmp_path, env=env).stdout for env in seeded)
    assert one == other
    assert "heads-8-index-1-3" in one


def test_configs_are_read_from_a_pipe(tmp_path: Path, write: Write) -> None:
    """As of `attnviz batch <(make-config)`."""
    read, writing = os.pipe()
    os.write(writing, b"jobs: [heatmap: ]")
    os.close(writing)
    assert [job.name for job in load(Path(f"/dev/fd/{read}")).jobs] == ["heatmap-1"]
    os.close(read)
