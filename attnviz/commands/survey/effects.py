"""What is tested of heads: what answers lose without them, and what differs between texts of different classes."""

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any

from attnviz.commands.survey.files import Survey
from attnviz.commands.survey.survey import ABLATION, N_SAMPLED, ON_REPEATS, HeadCost, ModelFacts, choose_places
from attnviz.commands.survey.tables import ALPHA
from attnviz.display import format_count, name_measure
from attnviz.measures.class_differences import MAX_CLASSES
from attnviz.report import Cell, Chart, Charts, Column, Graph, GraphEdge, GraphNode, Note, Row, Table
from attnviz.table.intervals import MIN_TEXTS, write_p_value
from attnviz.table.numbers import Numbers

N_LISTED = 5  # heads and differences on a first screen
N_FEEDS = 12  # arrows of a small graph: the strongest; the JSON has all
N_COSTS = 20  # heads that a chart has room for
CERTAIN = 0.995  # from which on a p-value is written as 1
COST = "what it costs to do without ({})"
FEEDS = "makes it look there: as thick as the share of its pattern that goes without"
BEYOND, WITHIN = "beyond chance (Holm)", "not shown to differ from 0"
Costs = Sequence[Mapping[str, Any]]  # rows of the heads that are replaced in one way


def list_costs(numbers: Numbers) -> dict[str, Costs]:
    """Return by what heads are replaced by the rows of those with a number, the most costly first."""
    names = [name for name in dict.fromkeys(numbers.table["measure"].to_pylist()) if name.startswith(ABLATION)]
    tested = numbers.select(measure=names).having("mean").rows()
    ranked = sorted(tested, key=lambda row: -row["mean"])
    return {name.removeprefix(ABLATION): [row for row in ranked if row["measure"] == name] for name in names}


def choose_largest(costs: Costs, number: int = N_COSTS) -> Costs:
    """Return so many of the largest numbers, below 0 or above, in the order in which they are given."""
    largest = sorted(costs, key=lambda row: -abs(row["mean"]))[:number]
    return [row for row in costs if row in largest]


def write_cost(row: Mapping[str, Any]) -> str:
    """Write "+0.0181 ± 0.0120"."""
    return f"{row['mean']:+.4f}" + ("" if row["low"] is None else f" ± {row['high'] - row['mean']:.4f}")


def write_head_cost(cost: HeadCost) -> str:
    """Write what goes without heads where their kind was found and elsewhere: "+2.22 on repeats, -0.003 on texts"."""
    said = (f"{cost.lost[at]:+.3f} on {at}" for at in choose_places(cost.kind))
    return f"{', '.join(said)} (nats per token)"


def is_beyond_chance(row: Mapping[str, Any]) -> bool:
    """Return whether what was tested is shown to be there."""
    return row["p_value"] is not None and row["p_value"] < ALPHA


def draw_ablations(survey: Survey) -> Iterator[Charts]:
    """Yield a chart for each way to replace heads: a dot per head with its interval, the most costly first."""
    charts = list[Chart]()
    for kind, costs in list_costs(survey.tables.numbers).items():
        shown, rows = choose_largest(costs), list[Row]()
        has_intervals = any(row["low"] is not None for row in shown)
        for x, row in enumerate(shown):
            ends = (row["mean"] if row[end] is None else row[end] for end in ("low", "high"))  # no bar of equal numbers
            group = BEYOND if is_beyond_chance(row) else WITHIN
            rows.append((x, row["mean"], group, *(ends if has_intervals else (nan, nan))))
        some = f", the {N_COSTS} largest of {len(costs)} heads" if len(costs) > N_COSTS else ""
        title = f"replaced by {kind}{some}"
        y_axis = f"probability that the right answer loses{', with 95 % interval' if has_intervals else ''}"
        names = tuple(f"{row['layer']}.{row['head']}" for row in shown)
        columns = ("x", "y", "group", "low", "high")
        if rows:
            charts.append(Chart("point", title, "head", y_axis, columns, tuple(rows), names=names, quiet=(WITHIN,)))
    if charts:
        yield Charts("ablations", "what it costs to do without each head", tuple(charts))


def show_ablations(survey: Survey) -> Iterator[Table | Note]:
    """Yield a row per head: what the right answer's probability loses without it, and whether that is more than chance.

    Of each column over the texts that have a number there: queries of another text need one beside it. The most costly
    heads stand first.
    """
    found, n = list_costs(survey.tables.numbers), len(survey.texts)
    if not found:
        return
    first = next(iter(found.values()))
    heads = [(row["layer"], row["head"]) for row in first] or survey.info.heads
    columns, cells = [Column("layer"), Column("head")], list[Sequence[Cell]](zip(*heads, strict=True))
    for kind, costs in found.items():
        rows = {(row["layer"], row["head"]): row for row in costs}
        columns.append(Column(kind, minor=len(columns) > 2))  # of several ways a first screen shows one
        cells.append([write_cost(rows[head]) if rows else "-" for head in heads])
        p_values = [rows[head]["p_value"] if rows else None for head in heads]
        if any(p_value is not None and p_value < CERTAIN for p_value in p_values):
            columns.append(Column("p (Holm)", minor=True))
            cells.append(["-" if p_value is None else write_p_value(p_value) for p_value in p_values])
    title = f"Probability that the right answer loses without a head{' (± 95 %)' if n >= MIN_TEXTS else ''}"
    shown = tuple(first.index(row) for row in choose_largest(first, N_LISTED)) if len(heads) > N_LISTED else ()
    more = f"The {N_LISTED} largest of {len(heads)} heads: --table full shows all, in every way." if shown else ""
    yield Table("ablations", title, "facts", tuple(columns), tuple(zip(*cells, strict=True)), first=shown, more=more)
    yield Note(
        "Of a text whose label is missing, or none that the model knows, it is the model's own answer. Texts that are "
        "more than half unknown are left out, and queries need another text beside one: --json says of how many.",
        is_detail=True,
    )
    if "mean" in found:
        n_sampled = min(n, N_SAMPLED)
        drawn = "" if n == n_sampled else ", drawn at random by a hash of each text"
        yield Note(f"mean: what a head gives on average over the tokens of {n_sampled:,} texts{drawn}.", is_detail=True)
    yield _sum_up([(kind, row) for kind, costs in found.items() for row in costs if row["p_value"] is not None])


def show_knockouts(survey: Survey) -> Iterator[Table | Note]:
    """Yield what a decoder loses without all heads of each kind, and without each: both beside heads at random."""
    costs = (survey.facts or ModelFacts()).costs
    names = "kind", "heads", "lost", "chance", "elsewhere", "chance there", "stands"
    columns = tuple(Column(name, minor=name in ("heads", "chance there")) for name in names)
    together, alone, first = list[Row](), list[Row](), list[int]()
    for cost in costs:
        places = choose_places(cost.kind)
        written = (f"{number:+.3f}" for at in places for number in (cost.lost[at], cost.chance[at]))
        heads = f"{len(cost.heads)}" if len(cost.heads) > 1 else "{}.{}".format(*cost.heads[0])
        row = (cost.kind, heads, *written, "yes" if cost.stands else "no")
        if len(cost.heads) == 1:
            alone.append(row)
            continue
        first += [len(together)] if places[0] != "texts" else []
        together.append(row)
    more = "The kinds that texts name: --table full." if 0 < len(first) < len(together) else ""
    title = "Nats per token lost without all heads of a kind"
    yield Table("kinds-out", title, "facts", columns, tuple(together), first=tuple(first), more=more)
    yield Table("heads-out", "Nats per token lost without one head", "facts", columns, tuple(alone), is_detail=True)
    if costs:
        n_alone = sum(row[-1] == "yes" for row in alone)
        yield Note(
            "A label stands where it costs more than as many heads at random do where it was found (repeats, lists in "
            f"order, or texts), and nothing elsewhere: {n_alone} of {format_count(len(alone), 'labels')} of one head."
        )


def draw_circuit(survey: Survey) -> Iterator[Graph]:
    """Yield who feeds whom among the heads that repeats name, the strongest of many as arrows."""
    facts = survey.facts or ModelFacts()
    alone = {cost.heads: cost for cost in facts.costs if cost.kind.endswith(ON_REPEATS)}
    feeds = sorted(facts.feeds, key=lambda feed: feed.after / feed.before)[:N_FEEDS]
    heads = sorted({head for feed in feeds for head in (feed.writer, feed.reader)})
    nodes = list[GraphNode]()
    for layer, head in heads:
        cost = alone[(layer, head),]
        said = f"lost without it: {write_head_cost(cost)}"
        kind, lane = cost.kind.removesuffix(ON_REPEATS), (head + 0.5) / survey.info.n_heads
        nodes.append(GraphNode(f"{layer}.{head}", layer, f"layer {layer}", said, note=kind, lane=lane))
    edges = list[GraphEdge]()
    for feed in feeds:
        ends, lost = (heads.index(feed.writer), heads.index(feed.reader)), 1 - feed.after / feed.before
        said = f"{lost:.0%} of its pattern goes without, {1 - feed.least / feed.before:.0%} without others at random"
        edges.append(GraphEdge(*ends, "because", min(1.0, lost), said, (feed.before, feed.after)))
    if edges:
        yield Graph("circuit", (), (), tuple(nodes), tuple(edges), {"because": FEEDS}, "Who feeds whom")


def _sum_up(tested: Sequence[tuple[str, Mapping[str, Any]]]) -> Note:
    """Say how many heads are shown to matter, and which numbers are the largest."""
    if not tested:
        return Note(f"Tests of heads need {MIN_TEXTS} texts.")
    ranked = sorted(tested, key=lambda each: -abs(each[1]["mean"]))
    differing = [each for each in ranked if is_beyond_chance(each[1])]
    largest = (differing or ranked)[:N_LISTED]
    named = [f"{row['layer']}.{row['head']} {kind} {row['mean']:+.4f}" for kind, row in largest]
    counts = sorted({row["n"] for _, row in tested})
    texts = f"over {'' if len(counts) == 1 else f'{counts[0]:,} to '}{counts[-1]:,} texts"
    said = f"Of {len(tested)} paired differences, corrected for their number (Holm 1979),"
    found = f"{len(differing)} differ from 0 {texts}; the largest: {', '.join(named)}."
    if not differing:
        found = f"none is beyond chance {texts}: no single head is seen to matter here; the largest: {named[0]}."
    return Note(f"{said} {found}", leads=True)


def show_classes(survey: Survey) -> Iterator[Table | Note]:
    """Yield which heads do something else in texts of one class than in the others, where that is no chance."""
    found, classes = survey.tables.differences.rows(), survey.tables.classes
    sizes, n_matched, n = classes.sizes, classes.n_matched, sum(classes.sizes.values())
    if not found:
        if len(sizes) > 1:
            takes = f"at most {MAX_CLASSES} classes, each of {MIN_TEXTS} texts that are about as long as one of another"
            least = f"the smallest of {format_count(min(sizes.values()), 'texts')}"
            here = f"{len(sizes):,} classes, {least}, {n_matched:,} of {n:,} about as long"
            yield Note(f"Classes are not compared: that takes {takes} (here {here}).", is_detail=True)
        return
    rows: list[Row] = [
        (
            *(row["layer"], row["head"], name_measure(row["measure"]), row["class"]),
            *(f"{row['change']:+.3f} ± {row['half']:.3f}", write_p_value(row["p_value"])),
        )
        for row in filter(is_beyond_chance, found)
    ]
    named = "the others" if len(sizes) > 2 else f"class {min(sizes)}"
    columns = tuple(map(Column, ("layer", "head", "measure", "class", f"more than {named}", "p (Holm)")))
    more = f"All {len(rows)} of them: --table full." if len(rows) > N_LISTED else ""
    first = tuple(range(N_LISTED)) if more else ()
    title = "What differs between classes, over texts of about one length"
    yield Table("classes", title, "facts", columns, tuple(rows), first=first, more=more)
    of = ", ".join(f"{label}: {size:,}" for label, size in sizes.items())
    over = f", over the {n_matched:,} texts that have one of another class about as long" if n_matched < n else ""
    said = f"{len(rows):,} are" if len(rows) > 1 else "1 is" if rows else "none is"
    yield Note(f"Of {len(found):,} differences between classes ({of}){over}, {said} beyond chance (Holm).")
