"""Text from outside, with NUL or half a surrogate in it: kept exactly as a value, refused by name as an id or a key."""

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from stepwell import (
    Command,
    Encryption,
    InMemoryStore,
    SqliteSaver,
    StateGraph,
    awakeable,
    effect,
    interrupt,
    task,
    wait_for,
)
from stepwell.errors import (
    EffectDeclarationError,
    InvalidConfigError,
    InvalidGraphError,
    InvalidItemError,
    InvalidKeyError,
    InvalidNamespaceError,
    InvalidResolutionError,
    InvalidWaitError,
    UnknownEffectError,
    UnknownRunError,
)
from stepwell.store import EffectsQuery
from tests.runtime.graphs import Call, Log, chain, note, thread

NUL, HALF = "a\0b", "\ud800"
BAD = [NUL, HALF]
bad = pytest.mark.parametrize("text", BAD, ids=["NUL", "surrogate"])


class Box(TypedDict, total=False):
    value: Any


def graph(saver: SqliteSaver, *nodes: tuple[str, Any]) -> Any:
    return chain(*nodes, schema=Box).compile(checkpointer=saver)


@bad
def test_a_value_keeps_it_wherever_it_stands(text: str, call: Call, saver: SqliteSaver, any_durability: str) -> None:
    value = {text: [text, {"__class__": text, "$ext": [42, text]}]}
    compiled = graph(saver, ("put", lambda state: {"value": (state["value"], value)}))
    config = {**thread(), "metadata": {text: text}}
    assert call(compiled, {"value": value}, config, durability=any_durability) == {"value": (value, value)}
    assert compiled.get_state(thread()).values == {"value": (value, value)}
    assert compiled.get_state(thread()).metadata[text] == text
    assert next(saver.list(None, filter={text: text})).metadata[text] == text


class Loud(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __repr__(self) -> str:
        return f"Loud({self.text})"


@bad
def test_a_failure_whose_text_holds_it_is_recorded_like_any_other(
    text: str, call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    """What no column can hold is spelled out in what is recorded; the error itself is raised as it is."""
    failing = [True]

    def node(state: Box) -> dict[str, Any]:
        if failing:
            raise Loud(text)
        return {"value": "done"}

    compiled = graph(saver, ("before", lambda state: {"value": 1}), ("node", node))
    with pytest.raises(Loud) as raised:
        call(compiled, {"value": 0}, thread(), durability=any_durability)
    assert raised.value.text == text
    (task,) = compiled.get_state(thread()).tasks
    assert task.error == {NUL: r"Loud(a\x00b)", HALF: r"Loud(\ud800)"}[text]
    failing.clear()
    assert call(compiled, None, thread(), durability=any_durability) == {"value": "done"}


@bad
def test_a_question_and_its_answer_keep_it(text: str, call: Call, saver: SqliteSaver) -> None:
    compiled = graph(saver, ("ask", lambda state: {"value": interrupt(text)}))
    (question,) = call(compiled, {"value": 0}, thread())["__interrupt__"]
    assert question.value == text
    assert call(compiled, Command(resume={text: text}), thread()) == {"value": {text: text}}


@bad
@pytest.mark.parametrize("key", ["thread_id", "checkpoint_id", "checkpoint_ns"])
def test_INV_14_no_part_of_an_address_holds_it(text: str, key: str, call: Call, saver: SqliteSaver) -> None:
    compiled = graph(saver, ("put", lambda state: {"value": 1}))
    config = {"configurable": {"thread_id": "t", key: text}}
    uses: list[Callable[[], Any]] = [
        lambda: call(compiled, {"value": 0}, config),
        lambda: compiled.get_state(config),
        lambda: list(compiled.get_state_history(config)),
        lambda: compiled.update_state(config, {"value": 2}),
    ]
    for use in uses:
        with pytest.raises(InvalidConfigError, match=key):
            use()


@bad
def test_no_signal_and_no_awakeable_holds_it(text: str, saver: SqliteSaver) -> None:
    handed: list[str] = []

    def node(state: Box) -> dict[str, Any]:
        handed.append(awakeable().id)
        return {"value": wait_for(text)}

    compiled = graph(saver, ("node", node))
    with pytest.raises(InvalidWaitError, match="wait_for"):
        compiled.invoke({"value": 0}, thread())
    sends: list[Callable[[], Any]] = [
        lambda: compiled.signal(thread(), text, 1),
        lambda: compiled.signal(thread(), "key", 1, id=text),
    ]
    for send in sends:
        with pytest.raises(InvalidWaitError, match="signal"):
            send()
    for id in (text + handed[0], handed[0].split(".")[0] + ".YQBi"):  # the latter names a thread with NUL
        with pytest.raises(InvalidWaitError, match="no id of an awakeable"):
            compiled.complete_awakeable(id, 1)


@bad
def test_no_item_is_found_under_it(text: str) -> None:
    store = InMemoryStore()
    with pytest.raises(InvalidItemError, match="holds a NUL or is not valid Unicode"):
        store.put(("a",), text, {"k": 1})
    with pytest.raises(InvalidNamespaceError, match="holds a NUL or is not valid Unicode"):
        store.put((text,), "key", {"k": 1})
    store.put(("a",), "key", {text: text})
    item = store.get(("a",), "key")
    assert item is not None
    assert item.value == {text: text}


@bad
def test_no_node_and_no_graph_is_called_so(text: str) -> None:
    with pytest.raises(InvalidGraphError, match="valid Unicode"):
        StateGraph(Log).add_node(text, note("a"))
    with pytest.raises(InvalidGraphError, match="name holds a NUL or is not valid Unicode"):
        chain(("a", note("a"))).compile(name=text)
    with pytest.raises(InvalidGraphError, match="version holds a NUL or is not valid Unicode"):
        chain(("a", note("a"))).compile(version=text)


@bad
def test_no_step_no_effect_no_channel_and_no_key_is_called_so(text: str) -> None:
    """What is recorded under a name is refused where it is declared, not in the midst of a run."""

    def pay(amount: int, idempotency_key: str) -> str:
        return idempotency_key

    options: list[dict[str, Any]] = [
        {"name": text},
        {"key": text},
        {"key": text, "scope": "global"},
        {"versions": {"prompt": text}},
        {"versions": {text: "1"}},
        {"planned_action": text},
    ]
    for option in options:
        with pytest.raises(EffectDeclarationError, match="valid Unicode without NUL"):
            effect(**option)(pay)
    with pytest.raises(InvalidGraphError, match="name of a step is valid Unicode"):
        task(name=text)(pay)
    with pytest.raises(InvalidGraphError, match="channel name is valid Unicode"):
        StateGraph(TypedDict("Odd", {text: int}))  # type: ignore[operator]
    with pytest.raises(InvalidKeyError, match="id of a key is valid Unicode"):
        Encryption({text: Encryption.new_key()})


@bad
def test_what_an_effect_is_called_with_is_refused_or_spelled_out_before_it_happens(
    text: str, saver: SqliteSaver
) -> None:
    done: list[str] = []

    @effect(key=lambda amount: text)
    def keyed(amount: int, idempotency_key: str) -> None:
        done.append("keyed")

    @effect(planned_action=lambda amount: text)
    def planned(amount: int, idempotency_key: str) -> None:
        done.append("planned")

    with pytest.raises(EffectDeclarationError, match="its key is valid Unicode"):
        graph(saver, ("node", lambda state: {"value": keyed(1)})).invoke({"value": 0}, thread("keyed"))
    graph(saver, ("node", lambda state: {"value": planned(1)})).invoke({"value": 0}, thread("planned"))
    assert done == ["planned"]


@bad
def test_no_doubt_is_resolved_under_it_or_with_it(text: str, saver: SqliteSaver) -> None:
    @effect(on_doubt="raise")
    def pay(amount: int) -> str:
        raise RuntimeError("the line went dead")

    compiled = graph(saver, ("node", lambda state: {"value": pay(1)}))
    with pytest.raises(RuntimeError):
        compiled.invoke({"value": 0}, thread())
    with saver.store.reading() as reader:
        (doubt,) = reader.effects(EffectsQuery("t", in_doubt=True))
    with pytest.raises(UnknownEffectError):
        compiled.resolve_effect(thread(), text, receipt="paid", by="ann")
    words: list[dict[str, Any]] = [{"by": text}, {"by": "ann", "reason": text}]
    for said in words:
        with pytest.raises(InvalidResolutionError, match="valid Unicode without NUL"):
            compiled.resolve_effect(thread(), doubt.key, receipt="paid", **said)
    with pytest.raises(InvalidResolutionError, match="valid Unicode without NUL"):
        compiled.resolve_effect(thread(), doubt.key, failed=text, by="ann")


@bad
def test_no_run_is_known_by_it(text: str, saver: SqliteSaver) -> None:
    graph(saver, ("put", lambda state: {"value": 1})).invoke({"value": 0}, thread())
    assert saver.get_run(text) is None
    reads: list[Callable[[], Any]] = [
        lambda: saver.events(text),
        lambda: saver.runs("t", before=text),
        lambda: saver.delete_for_runs([text]),
    ]
    for read in reads:
        with pytest.raises(UnknownRunError):
            read()
