"""What heads do over many texts: attention by distance, a row per head, extreme texts, and what to read with them."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from attnviz.commands.survey import heads
from attnviz.commands.survey.effects import draw_ablations, draw_circuit, show_ablations, show_classes, show_knockouts
from attnviz.commands.survey.files import Survey
from attnviz.commands.survey.measure import UNKNOWN
from attnviz.commands.survey.spec import MergeSpec, SurveySpec
from attnviz.commands.survey.survey import ABLATION, ON_REPEATS, SUCCESSOR, TOKENS, WORD, ModelFacts, SurveyMeasure
from attnviz.commands.survey.tables import FOR_LABELS, QUERIES, list_curves
from attnviz.display import escape_for_display, format_count, list_first, name_measure
from attnviz.errors import InvalidOption
from attnviz.measures import SOME_TEXTS_MEASURES
from attnviz.records import is_mostly_unknown
from attnviz.records.head_names import MIN_SHARE, NO_NAME, name_offset
from attnviz.report import Cell, Chart, Charts, Column, Note, Report, Row, Table
from attnviz.running import Events, Result
from attnviz.running.pictures import Pictures
from attnviz.table.intervals import MIN_TEXTS
from attnviz.views import captions
from attnviz.views.captions import MAX_TITLE_LENGTH

PICTURES = ("distance", "atlas", "ablations", "circuit")  # what those of a survey are called
MAX_LINES, N_COLUMNS = 12, 4  # of one chart, and charts in a row
MAX_LISTED = 32  # heads of which extreme texts are listed one by one in a report
N_TELLING, N_EXTREME = 5, 2  # heads that are drawn, and with texts where there are many
MORE = "All heads and measures, words, extreme texts: --table full, or the page that --open shows."
SHOWN = 16  # characters of a text, which may take two columns each
LISTED_PLACES = {name_offset(offset) for offset in range(-3, 4)}  # farther ones only name heads
N_WORDS = 3  # listed of each head
N_NAMED = 3  # heads that are listed of each pattern
MAX_UNNAMED = 5  # patterns that are listed where nothing names a head


def write_survey(survey: Survey, spec: SurveySpec | MergeSpec) -> Events:
    """Draw what a survey found; nothing of a part, of which is said what it holds.

    Raises InvalidOption where no text has tokens.
    """
    if isinstance(spec, SurveySpec) and spec.shard is not None:
        held = f"part {spec.shard}: {len(survey.read):,} of {survey.info.n_texts:,} texts"
        yield Result(None, survey.paths, closing=(f"{held}; attnviz merge puts the parts together",))
        return
    if not len(survey.texts):
        raise InvalidOption("no text has tokens", hint="Choose others with --split.")
    report = survey_report(survey, spec.top, spec.figure.title)
    drawn = yield from Pictures.from_options(spec.figure, PICTURES, "").write(report, survey.folder, None)
    yield replace(drawn, files=(*drawn.files, *survey.paths), rows=heads.survey_rows(survey))


def survey_report(survey: Survey, top: int, title: str | None = None) -> Report:
    """Show a survey of all its texts. `top` says how many extreme texts are listed on either side."""
    info, n = survey.info, len(survey.texts)
    telling, atlas = heads.find_telling(survey, N_TELLING), heads.survey_atlas(survey)
    blocks = [
        _distance(survey),
        heads.draw_heads(atlas, telling),
        *draw_ablations(survey),
        *draw_circuit(survey),
        _patterns_table(survey),
        _means_table(survey, "head"),
        _words_table(survey),
        *_extremes(survey, top, telling[:N_EXTREME]),
        *show_classes(survey),
        *show_ablations(survey),
        *show_knockouts(survey),
        _means_table(survey, "layer"),
        _probes_table(survey),
        *map(Note, _write_notes(survey)),
    ]
    named = f"{info.model} over {info.corpus}"
    texts = f"{format_count(n, 'texts')}, {format_count(survey.n_queries, 'tokens')}"
    status = captions.drop_hash(info.status)
    parts = [part for part in ([status, texts] if title is None else [info.model, status, info.corpus, texts]) if part]
    return Report(
        title=escape_for_display(named if title is None else title, MAX_TITLE_LENGTH),
        subtitle=escape_for_display(" · ".join([*parts, *(["causal"] if info.causal else [])]), MAX_TITLE_LENGTH),
        blocks=tuple(block for block in blocks if not isinstance(block, Table) or block.rows),
        facts=tuple((name, escape_for_display(value, MAX_TITLE_LENGTH)) for name, value in _list_facts(survey)),
        data=heads.survey_data(survey),
        atlas=atlas,
        max_lines=30,
    )


def choose_shown_measures(survey: Survey, level: str) -> tuple[SurveyMeasure, ...]:
    """Choose the measures that were asked for: those that only name heads have a table of their own."""
    found = [each for each in survey.info.measures if each.level == level and not each.name.startswith(ABLATION)]
    return tuple(measure for measure in found if measure.name not in FOR_LABELS) or tuple(found)


def _distance(survey: Survey) -> Charts:
    """Build a chart per layer, with a line per head. Of many heads those with the highest peaks are drawn."""
    info, (shares, _) = survey.info, list_curves(survey.tables.numbers)
    at, highest = tuple(map(float, range(-info.reach, info.reach + 1))), float(shares.max())
    charts = []
    for number, of_layer in zip(info.layer_numbers, np.split(shares, len(info.layer_numbers)), strict=True):
        drawn = np.sort(np.argsort(-of_layer.max(axis=1), kind="stable")[:MAX_LINES])
        rows = tuple((x, y, f"head {head}") for head in drawn for x, y in zip(at, of_layer[head].tolist(), strict=True))
        axes = f"layer {number}", "key minus query (tokens)", "share of attention"
        charts.append(Chart("line", *axes, ("x", "y", "group"), rows, y_range=(0.0, highest)))
    return Charts("distance", "attention by distance", tuple(charts), N_COLUMNS)


def _means_table(survey: Survey, level: str) -> Table:
    """Tabulate each measure's mean over texts with its interval: a row per head with its label, or one per layer."""
    info, measures, of_heads = survey.info, choose_shown_measures(survey, level), level == "head"
    columns = [Column("layer"), *([Column("head")] if of_heads else [])]
    rows: list[list[Cell]] = [[n for n in at if n is not None] for at in info.list_places(level)]
    if of_heads and survey.facts is not None and survey.facts.chance:  # held against something
        columns.append(Column("what it attends to"))
        rows = [[*row, label or NO_NAME] for row, label in zip(rows, heads.label_heads(survey).values(), strict=True)]
    for measure in measures:
        columns.append(Column(name_measure(measure.name, measure.unit)))
        for row, of in zip(rows, survey.tables.numbers.select(measure=measure.name).rows(), strict=True):
            half = "" if of["low"] is None else f" ± {of['high'] - of['mean']:.3f}"
            row.append("-" if of["mean"] is None else f"{of['mean']:.3f}{half}")
    title = "Each head, mean over texts" if of_heads else "All heads of a layer together"
    title += " ± half of its 95 % interval" if len(survey.texts) >= MIN_TEXTS else ""
    shown = tuple(map(tuple, rows if measures else ()))
    return Table(f"{level}s", title, "heads" if of_heads else "facts", tuple(columns), shown, is_detail=True)


def _patterns_table(survey: Survey) -> Table:
    """Tabulate the heads that each pattern names, the one with the largest share, and what that is held against."""
    facts, rows = survey.facts or ModelFacts(), list[Row]()
    compared = ["plain"] if facts.chance or facts.shuffled else []
    compared += ["chance"] if facts.chance or facts.probes else []
    compared += ["shuffled"] if facts.shuffled else []
    numbers, names = survey.tables.numbers, survey.tables.names
    for (pattern,), of in numbers.having("pattern").group("pattern"):
        ranked = sorted(of.rows(), key=lambda row: -row["mean"])
        first, heads = ranked[0], [f"{row['layer']}.{row['head']}" for row in ranked]
        if first["equal"] == 0 or (first["over"] == QUERIES and pattern not in LISTED_PLACES):
            continue
        having = {(row["layer"], row["head"]) for row in names.select(pattern=pattern).rows()}
        named = [head for head, row in zip(heads, ranked, strict=True) if (row["layer"], row["head"]) in having]
        listed = (list_first(named, N_NAMED, between=", ") or "-", heads[0])
        shares = (first[name] for name in ("mean", "equal", *compared))
        rows.append((str(pattern), *listed, *("-" if share is None else share for share in shares)))
    columns = [*map(Column, ("pattern", "names heads", "largest", "share")), Column("equal", minor=bool(compared))]
    headers = {"plain": f"share on {format_count(facts.n_texts, 'texts')}", "shuffled": "words shuffled"}
    leave_out = {"plain": len(survey.texts) <= facts.n_texts, "shuffled": "chance" in compared}
    columns += [Column(headers.get(name, name), minor=leave_out.get(name, False)) for name in compared]
    title = "Patterns: the heads that each names, and the head with the largest share of it"
    first_rows = tuple(number for number, row in enumerate(rows) if row[1] != "-")
    if not facts.chance and not first_rows:  # nothing names a head that is held against nothing
        title, columns = "The head with the largest share of each pattern", [columns[0], *columns[2:]]
        rows = [(row[0], *row[2:]) for row in sorted(rows, key=itemgetter(3), reverse=True)]
        first_rows = tuple(range(min(MAX_UNNAMED, len(rows))))
    return Table("patterns", title, "facts", tuple(columns), tuple(rows), first=first_rows, more=MORE)


def _probes_table(survey: Survey) -> Table:
    """Tabulate the probes, a row per head: kinds on repeated random tokens, and successors on lists."""
    probes = (survey.facts or ModelFacts()).probes
    rows = [(*of, *scores) for of, *scores in zip(survey.info.heads, *probes.values(), strict=True)] if probes else []
    title = "Random tokens that come twice, and lists out of order: shares of attention"
    columns = tuple(map(Column, ("layer", "head", *probes)))
    return Table("probes", title, "facts", columns, tuple(rows), is_detail=True)


def _extremes(survey: Survey, top: int, telling: Sequence[heads.Head]) -> Iterator[Table]:
    """Yield the tables of texts to open, by their numbers.

    Of many heads those that have a name, by one measure and one text each.
    """
    measures, (numbers, _, extremes, *_) = choose_shown_measures(survey, "head"), survey.tables
    is_short = len(survey.info.heads) > MAX_LISTED
    for measure in measures[:1] if is_short else measures:
        rows = list[Row]()
        for row in extremes.select(measure=measure.name, rank=[*range(1 if is_short else top)]).rows():
            head = (row["layer"], row["head"])
            if is_short and head not in (telling or survey.info.heads[:1]):
                continue
            number = f"{row['value']:.2g}" if row["value"] < 99.5 else f"{row['value']:,.0f}"  # no 1e+02
            words = f"“{escape_for_display(row['words'], SHOWN)}”"
            rows.append((*head, row["end"], row["index"], number, row["tokens"], words))
        title = f"Extreme texts by {name_measure(measure.name, measure.unit)}"
        title += " for their length" if numbers.select(measure=measure.name).array("slope").any() else ""
        title += " (all heads: --json)" if is_short else ""
        columns = tuple(map(Column, ("layer", "head", "extreme", "--index", "value", "tokens", "first words")))
        yield Table(f"extremes-{measure.name}", title, "facts", columns, tuple(rows), is_detail=True)


def _words_table(survey: Survey) -> Table:
    """Tabulate the words that receive most beyond an equal share."""
    rows = []
    for of, found in zip(survey.info.heads, heads.top_words(survey, N_WORDS, heads.MIN_SUPPORT), strict=True):
        beyond = (each for each in found if each[1] > 1)
        words = (f"{escape_for_display(word, 16)} {lift:.1f} × ({support:,})" for word, lift, support in beyond)
        rows.append((*of, ", ".join(words) or "-"))
    rows = rows if any(row[2] != "-" for row in rows) else []  # too few texts have words often enough
    title = "Words attended to: × what equal attention gives them (times in the texts)"
    columns = (Column("layer"), Column("head"), Column("words"))
    return Table("words", title, "facts", columns, tuple(rows), is_detail=True)


def _write_notes(survey: Survey) -> Iterator[str]:
    """Yield what has to be read with the numbers."""
    info, n, facts = survey.info, len(survey.texts), survey.facts or ModelFacts()
    if info.trained is False:
        yield "The model is untrained: its heads have learned nothing."
    if info.n_heads > MAX_LINES:
        yield f"Lines are of the {MAX_LINES} heads of a layer with the highest peaks; --json has all {info.n_heads}."
    if n_unknown := int(survey.attended.select(kind=WORD, name=UNKNOWN).integers(["n"]).sum()):
        half = ": heads get no labels" if is_mostly_unknown(n_unknown, survey.n_queries) else ""
        yield f"The vocabulary lacks {n_unknown:,} of {survey.n_queries:,} tokens (read as [UNK]){half}."
    yield from _describe_labels(facts)
    for name in sorted(SOME_TEXTS_MEASURES):
        n_having = max((row["n"] for row in survey.tables.numbers.select(measure=name).rows()), default=0)
        over = f"means over the {n_having:,} of {format_count(n, 'texts')} that have such tokens"
        yield f"{name.replace('_', ' ')}: {over if n_having else 'no text has such tokens'}."
    if n >= MIN_TEXTS:
        yield "Intervals are of texts (Student's t): what other texts of this kind would give."
    if n_copies := n - len({*survey.texts.array("hash")}):
        yield f"Tests and intervals take each text once: {n_copies:,} of {format_count(n, 'texts')} repeat another."
    if info.dataset:
        option, is_cut = shlex.quote(info.option), survey.texts.array(TOKENS).max() >= info.max_tokens
        read = f" --max-tokens {info.max_tokens} --keep {info.keep}" if is_cut else ""
        yield f"Text number N: attnviz heatmap --model {option} {info.dataset} --index N{read}."
        if info.trained is not False:  # heads that have learned nothing are alike by chance
            yield f"Which heads are alike, pair by pair: attnviz compare {option} {info.dataset}."
    if "ablate" in info.can and not info.has_costs:
        yield "What answers lose without each head: the same with --ablate zero --out costs."
    if survey.skipped:
        named = escape_for_display(survey.skipped[0], 80)
        yield f"Left out: {format_count(len(survey.skipped), 'texts')} without tokens, such as {named}."


def _describe_labels(facts: ModelFacts) -> Iterator[str]:
    if not facts.chance:
        yield "Over the texts no head is labelled, nor left out of a decoder by --ablate: that takes --null random."
    else:
        texts = format_count(facts.n_texts, "texts")
        yield (
            f"A label is a head's largest share, from {MIN_SHARE:.0%} on; on {texts} as far again beyond all heads of "
            f"{facts.n_random} untrained models as these are beyond an equal share."
            if not facts.named
            else "Heads are labelled by the model's card, with their shares over these texts."
        )
        if facts.shuffled:
            yield f"A share that stays where words are shuffled (on the {texts}) is one of places, not of language."
    if facts.probes:
        best = f"{facts.probe_chance[f'induction{ON_REPEATS}']:.0%}"
        yield (
            f"A label on repeats or lists is a share from {MIN_SHARE:.0%} on and beyond {best} or "
            f"{facts.probe_chance[SUCCESSOR]:.0%}, the most that any head gives to any wrong place there."
        )
    if not facts.costs:
        yield "Labels say what heads look at, not what goes without them."


def _list_facts(survey: Survey) -> Iterator[tuple[str, str]]:
    """Yield what the numbers are of."""
    info = survey.info
    yield from (("model", info.model), ("status", info.status), ("revision", info.revision), ("texts", info.corpus))
    yield "number of texts", f"{len(survey.texts)}"
    yield from ((name, str(value)) for name, value in info.settings.items())
    yield from ((f"version of {name}", version) for name, version in info.versions.items())
