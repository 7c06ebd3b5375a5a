"""How chunks are shaped: `version="v2"`, namespaces, output keys, and what is printed beside."""

import asyncio
from dataclasses import dataclass
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

import stepwell
from stepwell import START, Command, GraphOutput, InvalidConfigError, SqliteSaver, StateGraph, StreamMode, StreamWriter
from tests.runtime.graphs import Call, Chunks, ask, chain, fan, letters, note, thread

ALL_MODES = list(get_args(StreamMode))


def say(state: Any, writer: StreamWriter) -> dict[str, list[str]]:
    writer("halfway")
    return {"log": ["say"]}


# -- v2 ---------------------------------------------------------------------------------------------------------------


def test_parts_name_type_namespace_and_data(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = chain(("say", say)).compile(checkpointer=saver)
    found = chunks(graph, {"log": ["in"]}, thread(), stream_mode=["values", "updates", "custom"], version="v2")
    (custom,) = [part for part in found if part["type"] == "custom"]
    assert [part for part in found if part is not custom] == [
        {"type": "values", "ns": (), "data": {"log": ["in"]}, "interrupts": ()},
        {"type": "updates", "ns": (), "data": {"say": {"log": ["say"]}}},
        {"type": "values", "ns": (), "data": {"log": ["in", "say"]}, "interrupts": ()},
    ]
    task = next(s for s in graph.get_state_history(thread()) if s.next == ("say",)).tasks[0]
    assert custom == {"type": "custom", "ns": (), "data": "halfway", "task_id": task.id, "attempt": 1}


def test_one_mode_makes_parts_too(chunks: Chunks) -> None:
    found = chunks(letters("a").compile(), {}, stream_mode="updates", version="v2")
    assert found == [{"type": "updates", "ns": (), "data": {"a": {"log": ["a"]}}}]


def test_every_mode_has_a_part_with_the_keys_its_type_declares(chunks: Chunks, saver: SqliteSaver) -> None:
    def speak(state: Any, runtime: stepwell.Runtime[Any]) -> None:
        runtime.stream_writer("custom")
        runtime.stream_message({"role": "ai", "content": "hello"})

    graph = chain(("speak", speak), ("a", note("a"))).compile(checkpointer=saver)
    found = chunks(graph, {}, thread(), stream_mode=ALL_MODES, version="v2")
    kinds = {
        get_args(get_type_hints(kind)["type"])[0]: kind
        for kind in get_args(stepwell.StreamPart.__value__)
        for kind in [getattr(kind, "__origin__", kind)]
    }
    assert {part["type"] for part in found} == set(ALL_MODES) == set(kinds)
    for part in found:
        declared = get_type_hints(kinds[part["type"]], include_extras=True)
        always = {key for key, hint in declared.items() if get_origin(hint) is not NotRequired}
        assert always <= set(part) <= set(declared)


def test_a_pause_is_in_the_part_and_not_in_the_values(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = fan(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver)
    last = chunks(graph, {}, thread(), stream_mode="values", version="v2")[-1]
    assert last["data"] == {"log": ["a"]}
    assert [question.value for question in last["interrupts"]] == ["ask"]


class Model(BaseModel):
    number: int
    name: str = "none"


@dataclass
class Record:
    number: int
    name: str = "none"


@pytest.mark.parametrize("schema", [Model, Record])
def test_values_and_checkpoints_come_in_the_types_of_the_schemas(
    schema: Any, chunks: Chunks, saver: SqliteSaver
) -> None:
    graph = chain(("more", lambda state: {"number": state.number + 1}), schema=schema).compile(checkpointer=saver)
    found = chunks(graph, {"number": 1}, thread(), stream_mode=["values", "checkpoints", "debug"], version="v2")
    assert [part["data"] for part in found if part["type"] == "values"] == [schema(number=1), schema(number=2)]
    shown = [part["data"]["values"] for part in found if part["type"] == "checkpoints"]
    assert shown == [{}, schema(number=1), schema(number=2)], "the raw input is no state yet"
    assert graph.invoke({"number": 5}, thread("2"), version="v2") == GraphOutput(schema(number=6))


def test_a_state_without_a_required_field_stays_a_dict(chunks: Chunks) -> None:
    @dataclass
    class Narrow:
        name: str

    graph = StateGraph(Record, input_schema=Narrow).add_node("count", lambda state: {"number": 1}, input_schema=Narrow)
    found = chunks(graph.add_edge(START, "count").compile(), {"name": "x"}, stream_mode="values", version="v2")
    assert [part["data"] for part in found] == [{"name": "x"}, Record(1, "x")]


# -- what invoke returns ----------------------------------------------------------------------------------------------


def test_invoke_returns_value_and_interrupts_apart(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver)
    paused = call(graph, {}, thread(), version="v2")
    assert isinstance(paused, GraphOutput)
    assert (paused.value, [question.value for question in paused.interrupts]) == ({"log": ["a"]}, ["ask"])
    assert call(graph, Command(resume=1), thread(), version="v2") == GraphOutput({"log": ["a", "ask=1"]}, ())
    assert call(graph, None, thread(), stream_mode="updates", version="v2") == []


@pytest.mark.parametrize("value", [{"key": 1}, Record(1, "x")])
def test_an_output_can_still_be_read_as_a_dict_with_a_warning(value: Any) -> None:
    output = GraphOutput(value, (stepwell.Interrupt("q"),))
    key = "key" if isinstance(value, dict) else "number"
    with pytest.warns(DeprecationWarning, match=r"result\.value"):
        assert (output[key], output["__interrupt__"]) == (1, output.interrupts)
    with pytest.warns(DeprecationWarning, match=r"result\.value"):
        assert (key in output, "missing" in output, "__interrupt__" in output) == (True, False, True)
    with pytest.warns(DeprecationWarning, match=r"result\.value"), pytest.raises(KeyError):
        output["missing"]


# -- namespaces, keys, refusals ---------------------------------------------------------------------------------------


def test_with_subgraphs_each_chunk_says_which_graph_it_is_of(chunks: Chunks) -> None:
    graph = letters("a").compile()
    assert chunks(graph, {}, subgraphs=True) == [((), {"a": {"log": ["a"]}})]
    assert chunks(graph, {}, subgraphs=True, stream_mode=["updates"]) == [((), "updates", {"a": {"log": ["a"]}})]


class Pair(stepwell.MessagesState, total=False):
    left: int
    right: int


def test_output_keys_choose_what_every_mode_shows(chunks: Chunks) -> None:
    steps = [("both", lambda state: {"left": 1, "right": 2}), ("left", lambda state: {"left": 3})]
    graph = chain(*steps, schema=Pair).compile()
    modes = ["values", "updates", "tasks"]
    found = chunks(graph, {"left": 0}, stream_mode=modes, output_keys=["right"])
    assert [payload for mode, payload in found if mode == "values"] == [{"right": 2}]
    assert [payload for mode, payload in found if mode == "updates"] == [{"both": {"right": 2}}, {"left": None}]
    assert [payload["result"] for mode, payload in found if "result" in payload] == [{"right": 2}, {}]
    assert graph.invoke({"left": 0}, output_keys="right") == 2


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"output_keys": "lag"}, "Key lag not in channels"),
        ({"output_keys": ["log", "lag"]}, "Key lag not in channels"),
        ({"version": "v3"}, "version is one of v1, v2"),
        ({"print_mode": "value"}, "unknown stream mode value"),
    ],
)
def test_what_nobody_knows_is_refused_before_anything_runs(
    options: dict[str, Any], match: str, call: Call, chunks: Chunks
) -> None:
    ran: list[Any] = []
    graph = chain(("a", ran.append)).compile()
    for way in (call, chunks):
        with pytest.raises(InvalidConfigError, match=match):
            way(graph, {}, **options)
    assert ran == []


def test_retry_takes_no_option_of_a_stream(saver: SqliteSaver) -> None:
    graph: Any = letters("a").compile(checkpointer=saver)
    with pytest.raises(TypeError, match="unknown options version"):
        graph.retry(thread(), version="v2")


# -- printing ---------------------------------------------------------------------------------------------------------


def test_what_is_printed_does_not_change_what_is_handed_out(chunks: Chunks, capsys: pytest.CaptureFixture[str]) -> None:
    graph = letters("a").compile()
    assert chunks(graph, {"log": []}, stream_mode="values", print_mode=["updates"]) == [{"log": []}, {"log": ["a"]}]
    assert capsys.readouterr().out == "\x1b[1m[updates]\x1b[0m {'a': {'log': ['a']}}\n"


def test_invoke_prints_too(call: Call, saver: SqliteSaver, capsys: pytest.CaptureFixture[str]) -> None:
    graph = chain(("say", say)).compile(checkpointer=saver)
    assert call(graph, {}, thread(), print_mode=("custom", "updates")) == {"log": ["say"]}
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("\x1b[0m ")[1] for line in printed] == ["'halfway'", "{'say': {'log': ['say']}}"]


def test_a_graph_compiled_for_debugging_prints_updates_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    graph = letters("a").compile(debug=True)
    assert graph.invoke({"log": []}) == asyncio.run(graph.ainvoke({"log": []})) == {"log": ["a"]}
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("]")[0].split("[")[-1] for line in lines] == ["values", "updates", "values"] * 2
    assert graph.invoke({}, debug=False) == {"log": ["a"]}
    assert letters("a").compile().invoke({"log": []}, debug=True) == {"log": ["a"]}
    assert len(capsys.readouterr().out.splitlines()) == 3
