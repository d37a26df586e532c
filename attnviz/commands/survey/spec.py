"""What `attnviz survey` and `attnviz merge` are asked."""

import re
from dataclasses import MISSING, dataclass

from attnviz import specs
from attnviz.errors import InvalidOption
from attnviz.measures import split_names
from attnviz.options import ARGUMENT, OUTPUT, Limits, Option, common, group, option
from attnviz.registry import suggest_name
from attnviz.running.cluster_options import PROCESSES, ClusterOptions

NULLS, PROBES, ABLATIONS = ("random", "shuffled"), ("repeat",), ("zero", "mean", "uniform", "queries")
NONE = "none"
TEN: Limits = (("at least", 1), ("at most", 10))
SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
TOP = Option("Texts listed with the largest numbers of each head; at most 10.", OUTPUT, limits=TEN)


@dataclass(frozen=True, kw_only=True)
class SurveySpec:
    """Say what each head of a model does over many texts: means, how they are spread, labels, and extreme texts.

    Example: attnviz survey --model multi --dataset sample --out survey
    """

    text: specs.TextOptions = group(specs.TextOptions(), "inline_text", "text", "text_file", *specs.OF_DATA_SETS)
    # 512 tokens, as the models that come with attnviz read: the bounds of what is counted follow from it
    model: specs.ModelOptions = group(
        specs.ModelOptions(max_tokens=512, keep="head-tail"), "model", "heads", *specs.SHARED_BY_ALL, "without"
    )
    figure: specs.FigureOptions = group(specs.FigureOptions(out="survey"), *specs.LOOKS)
    measure: tuple[str, ...] = specs.MEASURE.field(())
    null: tuple[str, ...] = common(
        ("random",),
        "What numbers are held against, with commas: random (untrained models), shuffled (words), none.",
        OUTPUT,
        "KIND",
    )
    probe: tuple[str, ...] = common((), "repeat: score induction on random tokens that come twice.", OUTPUT, "KIND")
    ablate: tuple[str, ...] = common(
        (),
        "What is lost when heads are replaced, with commas, by zero, mean, uniform (attention) or "
        "queries (of another text); of a decoder its named heads, by zero.",
        OUTPUT,
        "KIND",
    )
    top: int = TOP.field(3)
    no_text: bool = option(False, "Keep no words of the texts: only their names, and numbers.", OUTPUT)
    shard: str | None = option(
        None, "Only the I-th of N parts, from 1; attnviz merge puts them together.", OUTPUT, "I/N"
    )
    workers: int | None = PROCESSES.field(None)
    cluster: ClusterOptions = ClusterOptions()
    fresh: bool = common(False, "Measure all texts anew, also those that --out holds.", OUTPUT)
    table: specs.AnswerKind = specs.TABLE.field("answer")
    printing: specs.PrintOptions = specs.PrintOptions()

    @property
    def on_few_texts(self) -> tuple[str, ...]:
        """Parse what is measured once and not of every text. Raises InvalidOption for what is not known."""
        return (*_choose("--null", self.null, NULLS), *_choose("--probe", self.probe, PROBES))

    @property
    def ablations(self) -> tuple[str, ...]:
        """Parse what heads are replaced by. Raises InvalidOption for what is not known."""
        return _choose("--ablate", self.ablate, ABLATIONS)


def parse_shard(written: str | None) -> tuple[int, int]:
    """Parse which part of how many, counted from 0. Raises InvalidOption for what is no part."""
    match = SHARD.fullmatch("1/1" if written is None else written.strip())
    number, of = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise InvalidOption(f"--shard {written!r:.40} is not a part", hint="Write 3/16 for the third of sixteen.")
    return number - 1, of


def _choose(option: str, written: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    asked = split_names(written)
    for name in asked:
        if name not in (*known, NONE):
            raise InvalidOption(f"no {option} {name[:40]!r}", hint=suggest_name(name, (*known, NONE)))
    if NONE in asked and len(set(asked)) > 1:
        raise InvalidOption(f"{option} none excludes the others", hint="Leave it out.")
    return tuple(name for name in known if name in asked)


@dataclass(frozen=True, kw_only=True)
class MergeSpec:
    """Put the parts of a survey together: the same files, to the bit, as one run makes.

    Example: attnviz merge part-1 part-2 --out whole
    """

    parts: tuple[str, ...] = option(MISSING, "Folders that `attnviz survey --shard` wrote.", ARGUMENT, "PARTS")
    figure: specs.FigureOptions = group(specs.FigureOptions(out="merged"), *specs.LOOKS)
    top: int = TOP.field(3)
    table: specs.AnswerKind = specs.TABLE.field("answer")
    printing: specs.PrintOptions = specs.PrintOptions()
