"""Threads that other code began: what goes on, what is refused before anything runs, and the ways out."""

import logging
import operator
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Command,
    GraphChange,
    GraphChangedError,
    IncompatibleGraphError,
    InvalidGraphError,
    MigrationError,
    Send,
    SqliteSaver,
    StateGraph,
    interrupt,
)
from stepwell.testing import SimulatedCrash, crash_at
from tests.runtime.graphs import Call, Counted, Flaky, Log, ask, chain, fan, letters, note, thread

Builder = StateGraph[Any, Any, Any, Any]


def at_review(saver: SqliteSaver) -> str:
    """Leave thread t at the question of `review`, after `a`; return the question's id."""
    graph = chain(("a", note("a")), ("review", ask("review"))).compile(checkpointer=saver, name="g", version="1")
    asked = graph.invoke({}, thread())["__interrupt__"]
    return str(asked[0].id)


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_Q1_a_node_that_was_renamed_is_missed_before_anything_runs(call: Call, saver: SqliteSaver) -> None:
    at_review(saver)
    check = Counted("check", ask("check"))
    renamed = chain(("a", note("a")), ("check", check)).compile(checkpointer=saver, name="g", version="2")
    before = renamed.get_state(thread())
    with pytest.raises(IncompatibleGraphError) as raised:
        call(renamed, Command(resume="yes"), thread())
    error = raised.value
    assert error.code == "incompatible_graph"
    assert error.fields()["names"] == ["review"]
    assert error.fields()["missing"] == ["node 'review', which asks an open question"]
    assert (error.fields()["recorded_version"], error.fields()["version"]) == ("1", "2")
    for way in ("aliases=", "as_node=", "fork(config)", "the code that wrote it"):
        assert way in str(error)
    assert check.calls == 0
    assert renamed.get_state(thread()) == before


def test_a_graph_that_has_no_version_is_not_told_by_an_empty_one(saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("review", ask("review"))).compile(checkpointer=saver, name="g")
    graph.invoke({}, thread())
    renamed = chain(("a", note("a")), ("check", ask("check"))).compile(checkpointer=saver, name="g", version="2")
    with pytest.raises(IncompatibleGraphError, match="written by a graph without a version, this is version '2'"):
        renamed.invoke(Command(resume="yes"), thread())


def test_Q1_an_alias_lets_a_renamed_node_go_on_under_its_old_identity(call: Call, saver: SqliteSaver) -> None:
    question = at_review(saver)
    graph = chain(("a", note("a")), ("check", ask("check")), ("z", note("z")))
    renamed = graph.compile(checkpointer=saver, name="g", version="2", aliases={"review": "check"})
    snapshot = renamed.get_state(thread())
    assert snapshot.next == ("review",), "the name as it was recorded"
    assert snapshot.interrupts[0].id == question
    assert call(renamed, Command(resume={question: "yes"}), thread()) == {"log": ["a", "check='yes'", "z"]}
    assert renamed.get_state(thread()).next == ()


def test_an_alias_that_is_taken_away_too_early_is_missed(saver: SqliteSaver) -> None:
    at_review(saver)
    graph = chain(("a", note("a")), ("check", ask("check")))
    graph.compile(checkpointer=saver, name="g", aliases={"review": "check"}).fork(thread())
    with pytest.raises(IncompatibleGraphError, match="node 'review'"):
        graph.compile(checkpointer=saver, name="g").invoke(Command(resume="yes"), thread())


def test_an_edit_plans_anew_what_the_graph_does_not_have_any_more(call: Call, saver: SqliteSaver) -> None:
    at_review(saver)
    removed = letters("az").compile(checkpointer=saver, name="g")
    with pytest.raises(IncompatibleGraphError):
        call(removed, None, thread())
    removed.update_state(thread(), {"log": ["edited"]}, as_node="a")
    assert call(removed, None, thread()) == {"log": ["a", "edited", "z"]}


def test_a_fork_before_the_change_goes_another_way(call: Call, saver: SqliteSaver) -> None:
    at_review(saver)
    removed = letters("az").compile(checkpointer=saver, name="g")
    before = next(s for s in removed.get_state_history(thread()) if s.next == ("a",))
    removed.fork(before.config)
    assert call(removed, None, thread()) == {"log": ["a", "z"]}


def test_a_new_input_that_drops_what_was_planned_needs_none_of_it(call: Call, saver: SqliteSaver) -> None:
    at_review(saver)
    removed = letters("z").compile(checkpointer=saver, name="g")
    assert call(removed, {}, thread(), on_pending="discard") == {"log": ["a", "z"]}


def test_Q2_a_crash_under_one_graph_is_not_finished_by_another(call: Call, saver: SqliteSaver) -> None:
    first = letters("at").compile(checkpointer=saver, name="g")
    with pytest.raises(SimulatedCrash), crash_at("task.started"):
        first.invoke({}, thread(run_id="r"))
    second = letters("bt").compile(checkpointer=saver, name="g")
    with pytest.raises(IncompatibleGraphError, match="node 'a', which is next"):
        call(second, None, thread())


def test_Q2_a_change_that_is_compatible_is_told(
    call: Call, saver: SqliteSaver, caplog: pytest.LogCaptureFixture
) -> None:
    graph = chain(("a", note("a")), ("t", Flaky("t"))).compile(checkpointer=saver, name="g")
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    seen: list[GraphChange] = []
    changed = letters("abt").compile(checkpointer=saver, name="g", version="2", on_change=seen.append)
    assert call(changed, None, thread()) == {"log": ["a", "t"]}
    assert seen[0].differences == ("node 'a' leads elsewhere", "node 'b' is new")
    assert (seen[0].from_version, seen[0].to_version, seen[0].thread_id) == ("", "2", "t")
    assert len(seen) == 1
    with caplog.at_level(logging.WARNING, "stepwell.run"):
        call(letters("a").compile(checkpointer=saver, name="g"), {}, thread())
    assert "node 'b' is gone" in caplog.text


@pytest.mark.parametrize("on_change", ["ignore", "warn", "raise"])
def test_what_a_changed_graph_does_is_the_users_choice(
    on_change: str, saver: SqliteSaver, caplog: pytest.LogCaptureFixture
) -> None:
    letters("a").compile(checkpointer=saver, name="g").invoke({}, thread())
    node = Counted("a")
    changed = chain(("a", node), ("b", note("b"))).compile(checkpointer=saver, name="g", on_change=on_change)
    with caplog.at_level(logging.INFO, "stepwell.run"):
        if on_change == "raise":
            with pytest.raises(GraphChangedError, match="node 'b' is new"):
                changed.invoke({}, thread())
        else:
            changed.invoke({}, thread())
    assert node.calls == (0 if on_change == "raise" else 1)
    assert ("has changed" in caplog.text) == (on_change == "warn")


def test_a_function_refuses_a_change_by_raising(saver: SqliteSaver) -> None:
    letters("a").compile(checkpointer=saver, name="g").invoke({}, thread())

    def refuse(change: GraphChange) -> None:
        raise PermissionError(f"{change.thread_id} is pinned to {change.from_fingerprint}")

    changed = letters("ab").compile(checkpointer=saver, name="g", on_change=refuse)
    with pytest.raises(PermissionError, match="t is pinned"):
        changed.invoke({}, thread())
    assert changed.get_state(thread()).values == {"log": ["a"]}


def test_Q5_an_unrelated_change_is_no_change(saver: SqliteSaver) -> None:
    chain(("a", note("a")), ("b", ask("b"))).compile(checkpointer=saver, name="g").invoke({}, thread())
    again = chain(("a", note("rewritten")), ("b", ask("b"))).compile(
        checkpointer=saver, name="g", version="2", on_change="raise"
    )
    assert again.invoke(Command(resume=1), thread()) == {"log": ["a", "b=1"]}


def test_where_a_finished_sibling_leads_must_still_be_there(saver: SqliteSaver) -> None:
    def graph(after: str) -> Builder:
        built = fan(("a", note("a")), ("b", ask("b")))
        return built.add_node(after, note(after)).add_edge("a", after)

    graph("old").compile(checkpointer=saver, name="g").invoke({}, thread())
    with pytest.raises(IncompatibleGraphError, match="node 'old', which comes after 'a'"):
        graph("new").compile(checkpointer=saver, name="g").invoke(Command(resume=1), thread())
    renamed = graph("new").compile(checkpointer=saver, name="g", aliases={"old": "new"})
    assert renamed.invoke(Command(resume=1), thread()) == {"log": ["a", "b=1", "new"]}


def test_a_send_to_a_renamed_node_arrives(saver: SqliteSaver) -> None:
    def graph(worker: str) -> Builder:
        built = StateGraph(Log).add_node("plan", note("plan"))
        built.add_node(worker, lambda given: {"log": [f"{worker}{given}"]})
        built.add_edge(START, "plan")
        return built.add_conditional_edges("plan", lambda s: [Send(worker, 1), Send(worker, 2)], [worker])

    old = graph("work").compile(checkpointer=saver, name="g")
    with pytest.raises(SimulatedCrash), crash_at("superstep.committed"):
        old.invoke({}, thread())
    new = graph("labour").compile(checkpointer=saver, name="g", aliases={"work": "labour"})
    assert new.get_state(thread()).next == ("work", "work")
    assert new.invoke(None, thread()) == {"log": ["plan", "labour1", "labour2"]}


def joined(*names: str, end: str = "end") -> Builder:
    """Return a graph that runs the nodes side by side, a pause before the last, and a join of all."""
    graph = StateGraph(Log)
    for name in names:
        graph.add_node(name, note(name))
    graph.add_node("wait", ask("wait")).add_node(end, note(end))
    graph.add_edge(START, names[0]).add_edge(START, "wait").add_edge("wait", names[1])
    return graph.add_edge(list(names), end)


def test_a_join_that_waits_must_still_be_there(saver: SqliteSaver) -> None:
    def half(graph: Builder) -> Builder:
        return graph.add_node("more", ask("more")).add_edge("wait", "more")

    old = half(joined("a", "b")).compile(checkpointer=saver, name="g")
    old.invoke({}, thread())
    old.invoke(Command(resume=1), thread(), interrupt_before=["b"])
    missing = half(joined("a2", "b", end="end2"))
    with pytest.raises(IncompatibleGraphError, match="the join 'join:a\\+b:end', which has seen a"):
        missing.compile(checkpointer=saver, name="g").invoke(None, thread())
    renamed = missing.compile(checkpointer=saver, name="g", aliases={"a": "a2", "end": "end2"})
    renamed.invoke(None, thread())
    assert renamed.invoke(Command(resume=2), thread()) == {"log": ["a", "wait=1", "b", "more=2", "end2"]}


def test_a_breakpoint_at_a_renamed_node_holds(saver: SqliteSaver) -> None:
    letters("ab").compile(checkpointer=saver, name="g", interrupt_before=["b"]).invoke({}, thread())
    new = letters("ac").compile(checkpointer=saver, name="g", aliases={"b": "c"}, interrupt_after=["c"])
    new.update_state(thread(), {"log": ["x"]}, as_node="a")
    assert new.invoke(None, thread())["log"] == ["a", "x", "c"]


def test_an_edit_acts_as_the_node_an_alias_stands_for(saver: SqliteSaver) -> None:
    letters("ab").compile(checkpointer=saver, name="g").invoke({}, thread())
    new = letters("axz").compile(checkpointer=saver, name="g", aliases={"b": "x"})
    new.update_state(thread(), {"log": ["edited"]})
    assert new.get_state(thread()).next == ("z",)


# -- channels ---------------------------------------------------------------------------------------------------------


class Old(TypedDict, total=False):
    notes: list[str]
    n: int


class New(TypedDict, total=False):
    lines: list[str]
    n: int


class Retyped(TypedDict, total=False):
    notes: list[str]
    n: str


class Reduced(TypedDict, total=False):
    notes: Annotated[list[str], operator.add]
    n: int


def newest_first(old: list[str], new: list[str]) -> list[str]:
    return [*new, *old]


def said(state: Any) -> dict[str, Any]:
    return {}


def paused(saver: SqliteSaver, schema: Any = Old, **options: Any) -> Any:
    graph = chain(("a", said), ("b", ask_state), schema=schema)
    return graph.compile(checkpointer=saver, name="g", **options)


def ask_state(state: Any) -> dict[str, Any]:
    interrupt("go on?")
    return {}


@pytest.fixture
def left(saver: SqliteSaver) -> Iterator[SqliteSaver]:
    """A thread that paused under `Old`, version 1."""
    paused(saver, version="1").invoke({"notes": ["x"], "n": 1}, thread())
    yield saver


def test_Q1_a_renamed_key_is_missed_and_an_alias_finds_it(call: Call, left: SqliteSaver) -> None:
    with pytest.raises(
        IncompatibleGraphError, match=r"channel 'notes', a LastValue\(list\[str\]\), which holds a value"
    ):
        call(paused(left, New), Command(resume=1), thread())
    renamed = paused(left, New, aliases={"notes": "lines"})
    assert renamed.get_state(thread()).values == {"lines": ["x"], "n": 1}
    assert call(renamed, Command(resume=1), thread()) == {"lines": ["x"], "n": 1}
    assert paused(left, New).get_state(thread()).values == {"lines": ["x"], "n": 1}, "durable with the next checkpoint"


def test_Q1_a_retyped_key_is_refused_and_migrate_converts_it(call: Call, left: SqliteSaver) -> None:
    with pytest.raises(
        IncompatibleGraphError, match=r"stored as LastValue\(int\) and declared as LastValue\(str\) now"
    ):
        call(paused(left, Retyped), Command(resume=1), thread())
    calls: list[str] = []

    def migrate(values: dict[str, Any], from_version: str) -> dict[str, Any]:
        calls.append(from_version)
        return {**values, "n": str(values["n"])}

    migrating = paused(left, Retyped, version="2", migrate=migrate)
    assert migrating.get_state(thread()).values == {"notes": ["x"], "n": "1"}
    assert call(migrating, Command(resume=1), thread()) == {"notes": ["x"], "n": "1"}
    assert set(calls) == {"1"}
    calls.clear()
    assert migrating.get_state(thread()).values == {"notes": ["x"], "n": "1"}
    assert calls == [], "stored as version 2 now"


def test_a_crash_between_migrating_and_the_next_checkpoint_changes_nothing(left: SqliteSaver) -> None:
    def migrate(values: dict[str, Any], from_version: str) -> dict[str, Any]:
        values["n"] = str(values["n"])  # even in place
        return values

    migrating = paused(left, Retyped, version="2", migrate=migrate)
    for point in ("run.admitted", "task.finished", "superstep.merged"):
        with pytest.raises(SimulatedCrash), crash_at(point):
            migrating.invoke(Command(resume=1) if point == "run.admitted" else None, thread())
    assert migrating.invoke(None, thread()) == {"notes": ["x"], "n": "1"}
    assert paused(left, Retyped, version="2").get_state(thread()).values == {"notes": ["x"], "n": "1"}


def test_a_history_is_shown_as_it_would_be_gone_on_with(left: SqliteSaver) -> None:
    migrating = paused(left, Retyped, version="2", migrate=lambda values, of: {"n": f"from {of}"})
    history = list(migrating.get_state_history(thread()))
    assert all(snapshot.values == {"n": "from 1"} for snapshot in history)
    again = migrating.invoke(None, history[1].config)
    assert again["n"] == "from 1"


@pytest.mark.parametrize(
    ("migrate", "reason"),
    [
        (lambda values, of: 1 / 0, "it raised ZeroDivisionError"),
        (lambda values, of: None, "it returned a NoneType"),
        (lambda values, of: {"x": 1}, "it returned x, which the state does not have"),
    ],
)
def test_a_migration_that_fails_changes_nothing(migrate: Any, reason: str, left: SqliteSaver) -> None:
    graph = paused(left, Retyped, version="2", migrate=migrate)
    with pytest.raises(MigrationError, match=reason):
        graph.invoke(Command(resume=1), thread())
    with pytest.raises(MigrationError, match=reason) as raised:
        graph.get_state(thread())
    assert raised.value.fields()["from_version"] == "1"
    assert paused(left).get_state(thread()).values == {"notes": ["x"], "n": 1}


def test_an_edit_replaces_a_value_that_does_not_fit_any_more(call: Call, left: SqliteSaver) -> None:
    graph = paused(left, Retyped)
    with pytest.raises(IncompatibleGraphError, match="channel 'n'"):
        graph.update_state(thread(), {"notes": ["y"]}, as_node="a")
    graph.update_state(thread(), {"n": "one"}, as_node="a")
    assert graph.get_state(thread()).values == {"notes": ["x"], "n": "one"}
    call(graph, None, thread())
    assert call(graph, Command(resume=1), thread()) == {"notes": ["x"], "n": "one"}


def test_another_kind_of_channel_is_another_channel(left: SqliteSaver) -> None:
    graph = paused(left, Reduced)
    with pytest.raises(IncompatibleGraphError, match=r"declared as BinaryOperatorAggregate\(list\[str\]\) now"):
        graph.invoke(Command(resume=1), thread())
    graph.update_state(thread(), {"notes": ["y"]}, as_node="a")
    assert graph.get_state(thread()).values["notes"] == ["y"], "the edit's value alone"


def test_another_reducer_and_a_new_key_are_compatible(saver: SqliteSaver) -> None:
    class Longer(TypedDict, total=False):
        log: Annotated[list[str], newest_first]
        more: int

    chain(("a", note("a")), ("b", ask("b"))).compile(checkpointer=saver, name="g").invoke({}, thread())
    graph = chain(("a", note("a")), ("b", ask("b")), schema=Longer).compile(checkpointer=saver, name="g")
    assert graph.invoke(Command(resume=1), thread()) == {"log": ["b=1", "a"]}


def test_what_a_finished_sibling_wrote_must_fit_too(saver: SqliteSaver) -> None:
    def graph(schema: Any, value: Any) -> Builder:
        return fan(("a", lambda s: {"n": value}), ("b", ask_state), schema=schema)

    graph(Old, 1).compile(checkpointer=saver, name="g", version="1").invoke({}, thread())
    migrating = graph(Retyped, "1").compile(
        checkpointer=saver, name="g", version="2", migrate=lambda values, of: values
    )
    with pytest.raises(IncompatibleGraphError, match=r"node 'a' has just written it"):
        migrating.invoke(Command(resume=1), thread())
    migrating.update_state(thread(), {"n": "2"}, as_node="a")
    assert migrating.get_state(thread()).values == {"n": "2"}


def test_a_state_without_keys_is_migrated_whole(saver: SqliteSaver) -> None:
    def keep(value: Any) -> Any:
        return value

    def graph(schema: Any, **options: Any) -> Any:
        return chain(("a", keep), ("b", keep), schema=schema).compile(checkpointer=saver, name="g", **options)

    graph(int, version="1", interrupt_before=["b"]).invoke(5, thread())
    assert graph(str, version="2", migrate=lambda value, of: f"{value}!").invoke(None, thread()) == "5!"


def test_Q4_a_mismatch_shows_what_was_recorded_which_code_and_how_to_go_on(saver: SqliteSaver) -> None:
    letters("abc").compile(checkpointer=saver, name="g", version="1", interrupt_before=["b"]).invoke({}, thread())
    other = letters("ac").compile(checkpointer=saver, name="g", version="2")
    with pytest.raises(IncompatibleGraphError) as raised:
        other.invoke(None, thread())
    text = str(raised.value)
    assert "node 'b', which is next" in text
    assert "written by version '1', this is version '2'" in text
    assert "Ways out: compile(aliases=" in text


# -- what is said when the graph is compiled ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"aliases": {"old": "gone"}}, "'gone', which is neither a node nor a key of the state"),
        ({"aliases": {"a": "b"}}, "the graph still has a 'a' itself"),
        ({"migrate": lambda values, of: values}, "compile\\(version="),
        ({"migrate": 3, "version": "2"}, "migrate is a function"),
        ({"on_change": "explode"}, "on_change is one of ignore, warn, raise"),
        ({"aliases": ["old"]}, "aliases are written as {old name: name now}"),
        ({"version": 2}, "version is text, not 2: write version='2'"),
        ({"version": None}, "version is text"),
        ({"version": "\ud800"}, "version holds a NUL or is not valid Unicode"),
        ({"name": 5}, "name is text, not 5: write name='5'"),
    ],
)
def test_what_could_do_nothing_or_could_not_be_read_again_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidGraphError, match=reason):
        letters("ab").compile(**options)


def test_a_shape_is_stored_once(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    counts = saver.store.counts
    graph.invoke({}, thread("one"))
    first = counts.statements
    graph.invoke({}, thread("two"))
    assert counts.statements - first == first - 1, "the second thread writes all but the shape"
