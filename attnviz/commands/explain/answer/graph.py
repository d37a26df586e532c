"""An explanation as a graph: who wrote the answer, from which words, and who made them look there.

Knows records and reports.

What is written for the answer leads from words over heads to the answer. Beside it stand reasons: who made a head look
where it looks leads to that head, as thick as the weight that is lost without it.
"""

from collections.abc import Sequence

from attnviz.commands.explain.answer import words
from attnviz.records import Tokens
from attnviz.records.attribution import Explanation, Look, Looks
from attnviz.report import EdgeKind, Graph, GraphEdge, GraphNode
from attnviz.views.answers import quote_answer
from attnviz.views.tokens import label_token

MAX_TOKENS = 64  # of longer texts, only those that take part and their neighbours
PLACE, WORDS = -1, -2  # levels below layer 0
LOOKS = "where a head looks"
BECAUSE = "why it looks there, as thick as the weight lost without"


def draw_answer(found: Explanation) -> Graph:
    """Draw the heads that wrote an answer, and why they looked where they did."""
    graph, target = _GraphBuilder(found.tokens), found.target
    answer = quote_answer(target.name)
    over = f" over {quote_answer(target.against)}" if target.against else ""
    said = f"{found.logit:+.2f} logits for {answer}{over}: the heads that wrote most, and what it is without each."
    top = graph.add("answer", GraphNode(answer, found.n_layers, "answer", said))
    heads = sorted(found.heads, key=lambda looks: int(looks[0]["key"]))
    most = max((abs(looks[0]["written"]) for looks in heads), default=0.0) or 1.0
    for looks in heads:
        look, written, taken = looks[0], looks[0]["written"], looks[0]["from_source"]
        kind: EdgeKind = "for" if written > 0 else "against"
        head = graph.add_head(look, words.describe_contribution(found.tokens, target, look), f"{written:+.2f}")
        does = f"writes {written:+.2f}, reads {words.quote_word(found.tokens, look['key'])}, {words.name_reason(look)}"
        graph.connect(head, top, kind, abs(written) / most, does, (found.logit, found.logit + look["removal"]))
        graph.connect(graph.add_word(look["key"]), head, kind, abs(taken) / most, f"takes {taken:+.2f} there")
        graph.follow(looks)
    legend: dict[EdgeKind, str] = {"for": f"writes for {answer}, as thick as what it writes", "against": "against"}
    return graph.finish({**legend, "looks": LOOKS, "because": BECAUSE})


def draw_looks(tokens: Tokens, looks: Looks) -> Graph:
    """Draw one look of a head, and that of the head that wrote what it was for."""
    graph = _GraphBuilder(tokens)
    graph.follow(looks)
    return graph.finish({"looks": f"{LOOKS}, as thick as its weight", "because": BECAUSE})


class _GraphBuilder:
    """Nodes and edges, each once. A node is known by its name and its token: a head may take part with two queries."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._nodes = dict[object, GraphNode]()
        self._edges = dict[object, GraphEdge]()

    def add(self, key: object, node: GraphNode) -> object:
        """Add a node, or what more is said of one that is there."""
        self._nodes[key] = max(self._nodes.get(key, node), node, key=lambda each: len(each.said))
        return key

    def add_word(self, token: int) -> object:
        return self.add(("word", token), GraphNode(words.quote_word(self._tokens, token), WORDS, "", token=token))

    def add_head(self, look: Look, said: str, note: str = "") -> object:
        layer, key = look["layer"], (look["head"], look["query"])
        node = GraphNode(key[0], layer, f"layer {layer}", said, key[1], tuple(look["weights"]), note)
        return self.add(key, node)

    def connect(
        self, source: object, target: object, kind: EdgeKind, share: float, said: str, knock_out: Sequence[float] = ()
    ) -> None:
        """Add an edge. What a head takes from a word says more than that it looks there."""
        nodes, key = [*self._nodes], (source, target, kind == "because")
        if kind != "looks" or key not in self._edges:
            ends = nodes.index(source), nodes.index(target)
            self._edges[key] = GraphEdge(*ends, kind, min(1.0, share), said, tuple(knock_out))

    def follow(self, looks: Looks) -> None:
        """Add where heads look, and who made each look there."""
        for look in looks:
            head = self.add_head(look, words.describe_look(self._tokens, look))
            key, weight, name, layer = (look[column] for column in ("key", "weight", "named", "written_in"))
            source = word = self.add_word(key)
            self.connect(word, head, "looks", weight, f"gives {words.write_weight(weight)}")
            if name is None:
                continue
            without = look["weight_without"] or 0.0
            if look["kind"] == "place":
                source = self.add("place", GraphNode(name, PLACE, ""))
            elif look["kind"] != "word":
                source = self.add((name, key), GraphNode(name, layer, f"layer {layer}", "", key))
            said = f"weight on {words.quote_word(self._tokens, key)}"
            self.connect(source, head, "because", weight - without, said, (weight, without))

    def finish(self, legend: dict[EdgeKind, str]) -> Graph:
        """Choose the tokens that are shown, and give nodes their places side by side, in the order that they came."""
        shown, nodes = [*range(len(self._tokens))], [*self._nodes.values()]
        if len(shown) > MAX_TOKENS:
            near = {node.token + step for node in nodes if node.token is not None for step in (-1, 0, 1)}
            shown = sorted(near & {*shown})
        beside = [place for place, node in enumerate(nodes) if node.level > WORDS and node.row != "answer"]
        for place, node in enumerate(nodes):
            token = None if node.token is None else shown.index(node.token)
            lane = node.lane if token is None else token / len(shown)
            nodes[place] = node._replace(
                token=token,
                weights=tuple(node.weights[each] for each in shown if node.weights),
                lane=(beside.index(place) + 0.5) / len(beside) if place in beside else lane,
            )
        kinds = {edge.kind for edge in self._edges.values()}
        return Graph(
            name="explanation",
            tokens=tuple(label_token(self._tokens, token) for token in shown),
            positions=tuple(shown),
            nodes=tuple(nodes),
            edges=tuple(self._edges.values()),
            legend={kind: said for kind, said in legend.items() if kind in kinds},
        )
