"""What a graph looks like: nodes, edges and labels, Mermaid spelled as LangGraph spells it, text, and JSON."""

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest

from stepwell import END, START, Command, Send, StateGraph
from stepwell.graph.types import START as FIRST
from stepwell.plan.drawing import DrawnEdge, DrawnGraph, DrawnNode
from tests.runtime.graphs import Log, letters, note

Builder = StateGraph[Any, Any, Any, Any]

HEAD = """---
config:
  flowchart:
    curve: linear
---
graph TD;
"""
TAIL = """\tclassDef default fill:#f2f0ff,line-height:1.2
\tclassDef first fill-opacity:0
\tclassDef last fill:#bfb6fc
"""


def nodes(names: str) -> Builder:
    graph = StateGraph(Log)
    for name in names.split():
        graph.add_node(name, note(name))
    return graph


def drawn(graph: Builder, **options: Any) -> DrawnGraph:
    found: DrawnGraph = graph.compile(**options).get_graph()
    return found


def body(graph: Builder, **options: Any) -> list[str]:
    """Return the lines of the Mermaid source between its head and its styles, unindented."""
    text = drawn(graph, **options).draw_mermaid()
    assert text.startswith(HEAD)
    assert text.endswith(TAIL)
    return [line.removeprefix("\t") for line in text[len(HEAD) : -len(TAIL)].splitlines()]


def loop() -> Builder:
    graph = nodes("a b c").add_edge(START, "a").add_edge("a", "b").add_edge("c", "a")
    return graph.add_conditional_edges("b", lambda s: "yes", {"yes": "c", "no": END})


# -- nodes and edges --------------------------------------------------------------------------------------------------


def test_nodes_and_edges_are_those_of_the_graph() -> None:
    graph = drawn(loop())
    assert list(graph.nodes) == [START, "a", "b", "c", END]
    assert graph.edges == [
        DrawnEdge(START, "a"),
        DrawnEdge("a", "b"),
        DrawnEdge("b", END, "no", True),
        DrawnEdge("b", "c", "yes", True),
        DrawnEdge("c", "a"),
    ]
    assert (graph.first_node(), graph.last_node()) == (graph.nodes[START], graph.nodes[END])


def test_a_node_that_leads_nowhere_ends_its_branch() -> None:
    assert drawn(letters("ab")).edges[-1] == DrawnEdge("b", END)


def test_the_end_is_left_out_where_nothing_reaches_it() -> None:
    graph = drawn(letters("ab").add_edge("b", "a"))
    assert END not in graph.nodes
    assert graph.last_node() is None


def test_a_join_is_an_edge_from_each_of_its_sources() -> None:
    graph = nodes("a b c").add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
    assert DrawnEdge("a", "c") in drawn(graph).edges
    assert DrawnEdge("b", "c") in drawn(graph).edges


def test_declared_jumps_are_conditional_and_carry_their_labels() -> None:
    def jump(state: Any) -> Command[Literal["b"]]:
        return Command(goto="b")

    graph = nodes("b").add_node("a", jump).add_edge(START, "a")
    graph.add_node("c", note("c"), destinations={"a": "again"}).add_edge("b", "c")
    edges = drawn(graph).edges
    assert DrawnEdge("a", "b", None, True) in edges
    assert DrawnEdge("c", "a", "again", True) in edges


def test_a_hint_of_a_router_says_where_it_leads() -> None:
    def route(state: Any) -> Literal["b", "__end__"]:
        return "b"

    graph = nodes("a b").add_edge(START, "a").add_conditional_edges("a", route)
    assert drawn(graph).edges == [
        DrawnEdge(START, "a"),
        DrawnEdge("a", END, None, True),
        DrawnEdge("a", "b", None, True),
        DrawnEdge("b", END),
    ]


def test_a_router_that_does_not_say_may_lead_anywhere() -> None:
    graph = nodes("a b c").add_edge(START, "a").add_conditional_edges("a", lambda s: [Send("b", 1)])
    assert [edge.target for edge in drawn(graph).edges if edge.source == "a"] == [END, "b", "c"]


def test_several_labels_stand_on_one_edge_and_a_plain_edge_has_none() -> None:
    graph = nodes("a b").add_edge(START, "a").add_edge("a", "a")
    graph.add_conditional_edges("a", lambda s: 1, {1: "b", "b": "b", "x": "b", "y": "a"})
    edges = {(edge.source, edge.target): edge for edge in drawn(graph).edges}
    assert edges["a", "b"] == DrawnEdge("a", "b", "1, x", True)
    assert edges["a", "a"] == DrawnEdge("a", "a")


def test_what_is_drawn_is_what_was_compiled() -> None:
    graph = letters("ab")
    compiled = graph.compile()
    with pytest.warns(UserWarning, match="already been compiled"):
        graph.add_node("late", note("late"))
    assert "late" not in compiled.get_graph().nodes
    compiled.get_graph().nodes.clear()
    assert "a" in compiled.get_graph().nodes


async def test_the_async_way_is_the_same() -> None:
    compiled = loop().compile()
    assert await compiled.aget_graph() == compiled.get_graph()


# -- Mermaid ----------------------------------------------------------------------------------------------------------


def test_mermaid_is_spelled_as_langgraph_spells_it() -> None:
    assert body(loop()) == [
        "__start__([<p>__start__</p>]):::first",
        "a(a)",
        "b(b)",
        "c(c)",
        "__end__([<p>__end__</p>]):::last",
        "__start__ --> a;",
        "a --> b;",
        "b -. &nbsp;no&nbsp; .-> __end__;",
        "b -. &nbsp;yes&nbsp; .-> c;",
        "c --> a;",
    ]


def test_mermaid_without_styles_is_the_edges() -> None:
    assert drawn(letters("ab")).draw_mermaid(with_styles=False) == (
        "graph TD;\n\t__start__ --> a;\n\ta --> b;\n\tb --> __end__;\n"
    )


def test_metadata_deferral_and_breakpoints_stand_below_the_name() -> None:
    graph = StateGraph(Log).add_node("a", note("a"), metadata={"k": 1, "tag": "<b>"}).add_node("b", note("b"))
    graph.add_node("c", note("c"), defer=True).add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
    lines = body(graph, interrupt_before=["b", "c"], interrupt_after=["b"])
    assert lines[1:6] == [
        "a(a<hr/><small><em>k = 1",
        "tag = #60;b#62;</em></small>)",
        "b(b<hr/><small><em>__interrupt = before,after</em></small>)",
        "c(c<hr/><small><em>defer = True",
        "__interrupt = before</em></small>)",
    ]


def test_names_and_labels_are_text_whatever_is_in_them() -> None:
    graph = StateGraph(Log).add_node("my node", note("x")).add_node('say "hi" (now)', note("y"))
    graph.add_node("näme", note("z")).add_node("*b*", note("b")).add_edge(START, "my node")
    graph.add_edge("my node", 'say "hi" (now)').add_edge("näme", "*b*")
    graph.add_conditional_edges('say "hi" (now)', lambda s: 1, {"<i>": "näme"})
    lines = body(graph)
    assert lines[1:5] == [
        "my\\20node(my node)",
        "say\\20\\22hi\\22\\20\\28now\\29(say #34;hi#34; #40;now#41;)",
        "n\\e4me(näme)",
        "\\2ab\\2a(<p>*b*</p>)",
    ]
    assert "say\\20\\22hi\\22\\20\\28now\\29 -. &nbsp;#60;i#62;&nbsp; .-> n\\e4me;" in lines


def test_long_labels_are_wrapped_by_words() -> None:
    label = "one two three four five six seven eight nine ten"
    graph = nodes("a b").add_edge(START, "a").add_conditional_edges("a", lambda s: 1, {label: "b"})
    assert "a -. &nbsp;one two three four five six seven eight nine&nbsp<br>&nbspten&nbsp; .-> b;" in body(graph)
    assert "&nbsp;one two&nbsp<br>&nbspthree four&nbsp<br>" in drawn(graph).draw_mermaid(wrap_label_n_words=2)


def test_curve_colours_and_front_matter_are_the_callers() -> None:
    text = drawn(letters("a")).draw_mermaid(
        curve_style="basis",
        node_colors={"first": "fill:#fdf"},
        frontmatter_config={"config": {"theme": "neutral", "look": "handDrawn"}, "title": "a: b"},
    )
    assert text.startswith(
        '---\nconfig:\n  flowchart:\n    curve: basis\n  look: handDrawn\n  theme: neutral\ntitle: "a: b"\n---\n'
    )
    assert "classDef first fill:#fdf\n" in text


# -- graphs in graphs -------------------------------------------------------------------------------------------------


def nested() -> Builder:
    inner = letters("xy").compile()
    graph = StateGraph(Log).add_node("sub", inner).add_node("z", note("z"))
    return graph.add_edge(START, "sub").add_edge("sub", "z")


def test_a_graph_that_is_a_node_is_a_node_until_it_is_opened() -> None:
    compiled = nested().compile()
    assert list(compiled.get_graph().nodes) == [START, "sub", "z", END]
    opened = compiled.get_graph(xray=True)
    assert list(opened.nodes) == [START, "z", END, "sub:x", "sub:y"]
    assert opened.draw_mermaid()[len(HEAD) : -len(TAIL)].replace("\t", "").splitlines() == [
        "__start__([<p>__start__</p>]):::first",
        "z(z)",
        "__end__([<p>__end__</p>]):::last",
        "__start__ --> sub\\3ax;",
        "sub\\3ay --> z;",
        "z --> __end__;",
        "subgraph sub",
        "sub\\3ax(x)",
        "sub\\3ay(y)",
        "sub\\3ax --> sub\\3ay;",
        "end",
    ]


def test_graphs_are_opened_as_deep_as_asked() -> None:
    outer = StateGraph(Log).add_node("outer", nested().compile()).add_edge(START, "outer").compile()
    assert list(outer.get_graph(xray=1).nodes) == [START, END, "outer:sub", "outer:z"]
    assert list(outer.get_graph(xray=2).nodes) == [START, END, "outer:z", "outer:sub:x", "outer:sub:y"]
    assert outer.get_graph(xray=True).draw_mermaid().count("\tsubgraph ") == 2


def test_a_graph_with_two_entries_keeps_its_start() -> None:
    inner = nodes("x y").add_conditional_edges(START, lambda s: "x", ["x", "y"]).compile()
    graph = StateGraph(Log).add_node("sub", inner).add_edge(START, "sub").compile()
    opened = graph.get_graph(xray=True)
    assert DrawnEdge(START, "sub:__start__") in opened.edges
    assert DrawnEdge("sub:__end__", END) in opened.edges


# -- text -------------------------------------------------------------------------------------------------------------


def test_a_chain_as_text() -> None:
    assert drawn(letters("ab")).draw_ascii() == "\n".join(
        [
            "+-----------+",
            "| __start__ |",
            "+-----------+",
            "      |",
            "      v",
            "    +---+",
            "    | a |",
            "    +---+",
            "      |",
            "      v",
            "    +---+",
            "    | b |",
            "    +---+",
            "      |",
            "      v",
            " +---------+",
            " | __end__ |",
            " +---------+",
            "",
        ]
    )


def test_conditional_edges_are_dotted_and_labels_stand_below(capsys: pytest.CaptureFixture[str]) -> None:
    graph = drawn(loop())
    text = graph.draw_ascii()
    assert ":" in text
    assert "^" in text, "the line back to a"
    assert text.endswith("\nb ..> __end__: no\nb ..> c: yes\n")
    graph.print_ascii()
    assert capsys.readouterr().out == text + "\n"


def fan(width: int) -> Builder:
    names = [f"n{i}" for i in range(width)]
    graph = nodes(" ".join(["plan", *names, "gather"])).add_edge(START, "plan").add_edge(names, "gather")
    for name in names:
        graph.add_edge("plan", name)
    return graph


@pytest.mark.parametrize(
    "build",
    [
        loop,
        nested,
        lambda: fan(6),
        lambda: letters("abcdefgh").add_edge("a", "h").add_edge("h", "b").add_edge("c", "c"),
    ],
)
def test_every_node_has_a_box_of_its_own(build: Callable[[], Builder]) -> None:
    graph = build().compile().get_graph(xray=True)
    text = graph.draw_ascii()
    rows = text.splitlines()
    for name in graph.nodes:
        assert len([row for row in rows if f"| {name} |" in row or f"|  {name} |" in row]) == 1, name
    assert all(row == row.rstrip() for row in rows)


# -- JSON -------------------------------------------------------------------------------------------------------------


def act(state: Any) -> dict[str, Any]:
    return {}


def test_a_graph_as_json() -> None:
    class State(TypedDict):
        x: Annotated[list[int], operator.add]

    graph = StateGraph(State).add_node("a", act, metadata={"m": 1}).add_edge(START, "a")
    graph.add_conditional_edges("a", act, {"done": END})
    shown = drawn(graph).to_json()
    home = [*__name__.split("."), "act"]
    assert shown["nodes"][1:] == [
        {"id": "a", "type": "runnable", "data": {"id": home, "name": "a"}, "metadata": {"m": 1}},
        {"id": END},
    ]
    assert shown["edges"] == [
        {"source": FIRST, "target": "a"},
        {"source": "a", "target": END, "data": "done", "conditional": True},
    ]


def test_a_drawn_graph_may_be_changed_before_it_is_drawn() -> None:
    graph = drawn(letters("a"))
    graph.nodes["extra"] = DrawnNode("extra", "Extra")
    graph.edges.append(DrawnEdge("a", "extra"))
    assert "\ta --> extra;" in graph.draw_mermaid()
