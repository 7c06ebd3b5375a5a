"""What is on record of steps (INV-4): what it costs, what edits, forks, copies and retries keep, what damage does."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stepwell import (
    Command,
    CorruptRecordError,
    EmptyInputError,
    InMemorySaver,
    NonDeterminismError,
    SqliteSaver,
    interrupt,
    points,
    task,
)
from stepwell.cli.application import stepwell as application
from stepwell.superstep.step_body import encode_step
from stepwell.superstep.steps import DONE, Step
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, thread
from tests.runtime.test_damage import spoil
from tests.steps.nodes import CONFIG, Counted, Log, one_node, siblings


def asks(steps: Counted, name: str) -> Any:
    """Return a node that calls a step, asks, and calls another."""

    def node(state: Log) -> Any:
        before = steps.double(1 if name == "a" else 10).result()
        return {"log": [name, before, interrupt(name), steps.double(2 if name == "a" else 20).result()]}

    return node


def plain(steps: Counted) -> Any:
    def node(state: Log) -> Any:
        return {"log": [steps.double(100).result()]}

    return node


# -- counted ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7])
def test_a_step_costs_one_transaction_of_four_statements_and_its_body(
    count: int, memory_saver: InMemorySaver, call: Call, any_durability: str
) -> None:
    @task(name="step")
    def step(n: int) -> int:
        return n

    def node(state: Log) -> Any:
        return {"log": [step(n).result() for n in range(count)] and []}

    counts, spent = memory_saver.store.counts, []
    for code, thread_id in ((lambda state: {"log": []}, "first"), (lambda state: {"log": []}, "bare"), (node, "t")):
        before = (counts.transactions, counts.statements, counts.bytes)
        graph = one_node(code, memory_saver)
        call(graph, {"log": []}, thread(thread_id), durability=any_durability)
        after = (counts.transactions, counts.statements, counts.bytes)
        spent.append(tuple(now - then for now, then in zip(after, before, strict=True)))
    with memory_saver.store.reading() as reader:
        bodies = [len(row.body) for row in reader.records_of_kind("t", "step")]
    assert len(bodies) == (0 if any_durability == "exit" else count)
    more = tuple(with_steps - bare for with_steps, bare in zip(spent[2], spent[1], strict=True))
    told = 1 if bodies else 0  # the next checkpoint says how many records there are on the one before it
    assert more == (len(bodies), 4 * len(bodies), sum(bodies) + told)


def test_the_body_of_a_steps_record_holds_its_result_and_little_more() -> None:
    digest = "0" * 32
    step = Step("node/a/0", "a", digest, "()", "0" * 12, DONE, b"v" * 1000, "", b"", 1, 10**15, 10**15)
    assert len(encode_step(step)) == 1000 + 93


@pytest.mark.parametrize("count", [1, 50])
def test_replaying_costs_nothing(count: int, saver: SqliteSaver, call: Call) -> None:
    """A node that runs again with its answer costs the same however many steps it gets back."""
    steps = Counted()

    def node(state: Log) -> Any:
        found = [steps.double(n).result() for n in range(count)]
        return {"log": [interrupt("?"), len(found)]}

    graph = one_node(node, saver)
    call(graph, {"log": []}, CONFIG)
    counts = saver.store.counts
    before = (counts.transactions, counts.statements)
    call(graph, Command(resume=1), CONFIG)
    assert (counts.transactions - before[0], counts.statements - before[1]) == (2, 10)
    assert len(steps.calls) == count


# -- kept, or not -----------------------------------------------------------------------------------------------------


def test_an_edit_at_the_head_keeps_the_steps_of_the_nodes_that_stay(saver: SqliteSaver, call: Call) -> None:
    steps = Counted()
    graph = siblings(saver, a=asks(steps, "a"), b=asks(steps, "b"))
    call(graph, {"log": []}, CONFIG)
    graph.update_state(CONFIG, {"log": []}, as_node="__start__")
    answers = {question.id: "yes" for question in graph.get_state(CONFIG).interrupts}
    assert call(graph, Command(resume=answers), CONFIG)["log"] == ["a", 2, "yes", 4, "b", 20, "yes", 40]
    assert sorted(steps.calls) == [1, 2, 10, 20]


def test_an_answer_at_an_older_checkpoint_calls_the_answered_nodes_steps_anew_and_no_others(
    saver: SqliteSaver, call: Call
) -> None:
    steps = Counted()
    graph = siblings(saver, a=asks(steps, "a"), b=asks(steps, "b"))
    call(graph, {"log": []}, CONFIG)
    old = graph.get_state(CONFIG)
    ids = {question.value: question.id for question in old.interrupts}
    call(graph, Command(resume={ids["a"]: "first", ids["b"]: "first"}), CONFIG)
    assert sorted(steps.calls) == [1, 2, 10, 20]
    ended = call(graph, Command(resume={ids["a"]: "second"}), old.config)
    assert ended["log"] == ["a", 2, "second", 4, "b", 20, "first", 40]
    assert sorted(steps.calls) == [1, 1, 2, 2, 10, 20]


@pytest.mark.parametrize("how", ["fork", "replay"])
def test_a_fork_and_a_replay_call_every_step_anew(how: str, saver: SqliteSaver, call: Call) -> None:
    steps = Counted()
    graph = siblings(saver, a=asks(steps, "a"), b=plain(steps))
    call(graph, {"log": []}, CONFIG)
    old = graph.get_state(CONFIG).config
    call(graph, Command(resume="yes"), CONFIG)
    call(graph, None, graph.fork(old) if how == "fork" else old)
    assert sorted(steps.calls) == [1, 1, 2, 100, 100]


def test_a_copy_of_a_thread_goes_on_with_the_steps_of_the_original(saver: SqliteSaver, call: Call) -> None:
    steps = Counted()
    graph = siblings(saver, a=asks(steps, "a"), b=plain(steps))
    call(graph, {"log": []}, CONFIG)
    saver.copy_thread("t", "copy")
    assert call(graph, Command(resume="yes"), thread("copy"))["log"] == ["a", 2, "yes", 4, 200]
    assert sorted(steps.calls) == [1, 2, 100]


def test_retrying_named_nodes_calls_their_steps_anew_and_no_others(saver: SqliteSaver, call: Call) -> None:
    steps, failing = Counted(), [True]

    def node(state: Log) -> Any:
        found = steps.double(1).result()
        if failing:
            raise ValueError(found)
        return {"log": [found]}

    graph = siblings(saver, a=node, b=asks(steps, "b"))
    with pytest.raises(ValueError, match="2"):
        call(graph, {"log": []}, CONFIG)
    failing.clear()
    assert graph.retry(CONFIG, tasks=["b"])["__interrupt__"]
    assert sorted(steps.calls) == [1, 10, 10]
    assert call(graph, Command(resume="yes"), CONFIG)["log"] == [2, "b", 20, "yes", 40]
    assert sorted(steps.calls) == [1, 10, 10, 20]


def test_a_node_that_a_crash_cut_off_can_be_retried_anew(deaths: Deaths) -> None:
    """It has no outcome that could be discarded, and steps on record all the same."""
    steps, numbers = Counted(), itertools.count(1)

    def node(state: Log) -> Any:
        return {"log": [steps.double(next(numbers)).result()]}

    with Saver(deaths.clock) as saver:
        graph = one_node(node, saver)
        deaths.dies_at(points.STEP_RECORDED)
        with pytest.raises(SimulatedCrash):
            graph.invoke({"log": []}, CONFIG)
        deaths.revive()
        assert graph.retry(CONFIG, tasks=["node"])["log"] == [4]
        assert steps.calls == [1, 2]


def test_a_deleted_thread_takes_its_steps_along(saver: SqliteSaver, call: Call) -> None:
    steps = Counted()
    graph = one_node(asks(steps, "a"), saver)
    call(graph, {"log": []}, CONFIG)
    saver.delete_thread("t")
    with pytest.raises(EmptyInputError):
        call(graph, None, CONFIG)
    call(graph, {"log": []}, CONFIG)
    assert steps.calls == [1, 1]


# -- the guards -------------------------------------------------------------------------------------------------------


def reordered(steps: Counted, numbers: list[int]) -> Any:
    def node(state: Log) -> Any:
        return {"log": [*(steps.double(n).result() for n in numbers), interrupt("?")]}

    return node


def test_Q4_steps_that_change_places_between_crash_and_resume_are_named_with_each_way_on(
    saver: SqliteSaver, call: Call
) -> None:
    """The error shows what is recorded and what was attempted, both code versions, and how to go on."""
    steps = Counted()
    call(one_node(reordered(steps, [1, 2]), saver), {"log": []}, CONFIG)
    changed = one_node(reordered(steps, [2, 1]), saver)
    with pytest.raises(NonDeterminismError) as caught:
        call(changed, Command(resume="yes"), CONFIG)
    facts, text = caught.value.fields(), " ".join(str(caught.value).split())
    assert (facts["recorded"], facts["attempted"]) == ("double(1)", "double(2)")
    assert caught.value.code == "non_determinism"
    assert facts["recorded_code"] == facts["called_code"] == steps.double.declared.code
    for way_on in ("code that recorded it", "a name of its own", "graph.retry(config, tasks=[...])"):
        assert way_on in text
    assert changed.get_state(CONFIG).next == ("node",)
    assert call(one_node(reordered(steps, [1, 2]), saver), None, CONFIG)["log"] == [2, 4, "yes"]
    assert steps.calls == [1, 2]


def test_non_determinism_a_call_under_a_name_of_its_own_is_another_step(saver: SqliteSaver, call: Call) -> None:
    steps, fixed = Counted(), task(lambda n: n * 3, name="triple")

    def before(state: Log) -> Any:
        return {"log": [steps.double(1).result(), interrupt("?")]}

    def after(state: Log) -> Any:
        return {"log": [fixed(1).result(), interrupt("?")]}

    call(one_node(before, saver), {"log": []}, CONFIG)
    assert call(one_node(after, saver), Command(resume="yes"), CONFIG)["log"] == [3, "yes"]


def test_non_determinism_steps_of_other_names_may_change_places(saver: SqliteSaver, call: Call) -> None:
    steps, triple = Counted(), task(lambda n: n * 3, name="triple")

    def before(state: Log) -> Any:
        return {"log": [steps.double(1).result(), triple(1).result(), interrupt("?")]}

    def after(state: Log) -> Any:
        return {"log": [triple(1).result(), steps.double(1).result(), interrupt("?")]}

    call(one_node(before, saver), {"log": []}, CONFIG)
    assert call(one_node(after, saver), Command(resume="yes"), CONFIG)["log"] == [3, 2, "yes"]
    assert steps.calls == [1]


def test_A5_what_a_child_graph_did_within_a_step_is_not_done_again_when_its_parent_resumes(
    saver: SqliteSaver, call: Call
) -> None:
    steps = Counted()

    def helper(state: Log) -> Any:
        return {"log": [steps.double(1).result()]}

    child = one_node(helper, None)

    @task
    def whole_child() -> Any:
        return child.invoke({"log": []})["log"]

    def node(state: Log) -> Any:
        return {"log": [whole_child().result(), interrupt("?")]}

    graph = one_node(node, saver)
    call(graph, {"log": []}, CONFIG)
    assert call(graph, Command(resume="yes"), CONFIG)["log"] == [[2], "yes"]
    assert steps.calls == [1]


def test_A5_a_child_on_a_thread_of_its_own_keeps_its_steps_when_it_asks_through_its_parent(
    sqlite_saver: SqliteSaver,
) -> None:
    steps = Counted()

    def asking(state: Log) -> Any:
        return {"log": [steps.double(1).result(), interrupt("sure?")]}

    child = one_node(asking, sqlite_saver)

    def node(state: Log) -> Any:
        on_its_own = thread("child")
        asked = child.invoke({"log": []}, on_its_own) if not child.get_state(on_its_own).values else {}
        question = asked.get("__interrupt__", child.get_state(on_its_own).interrupts)
        return child.invoke(Command(resume=interrupt(question[0].value)), on_its_own)

    graph = one_node(node, sqlite_saver)
    graph.invoke({"log": []}, CONFIG)
    assert graph.invoke(Command(resume="yes"), CONFIG)["log"] == [2, "yes"]
    assert steps.calls == [1]


def test_B8_a_loop_that_asks_until_the_answer_will_do_does_what_stands_between_once(
    saver: SqliteSaver, call: Call, any_durability: str
) -> None:
    """One resume a question, and each step in the loop's body is called once."""
    shown: list[Any] = []

    @task
    def show(hint: str) -> None:
        shown.append(hint)

    def node(state: Log) -> Any:
        show("begin").result()
        while True:
            given = interrupt("a number above 0")
            if isinstance(given, int) and given > 0:
                return {"log": [given]}
            show(f"not {given!r}").result()

    graph = one_node(node, saver)
    call(graph, {"log": []}, CONFIG, durability=any_durability)
    for given in ("x", -1):
        asked = call(graph, Command(resume=given), CONFIG, durability=any_durability)
        assert [question.value for question in asked["__interrupt__"]] == ["a number above 0"]
    assert call(graph, Command(resume=7), CONFIG, durability=any_durability)["log"] == [7]
    assert shown == ["begin", "not 'x'", "not -1"]


# -- damage -----------------------------------------------------------------------------------------------------------

FLIPS = {
    "a byte of its body": "update records set body = cast(substr(body, 1, 40) || x'21' || substr(body, 42) as blob)"
    " where kind = 'step' and ordinal = 1",
    "its task": "update records set task_id = '0' where kind = 'step' and ordinal = 1",
    "its kind": "update records set kind = 'answer' where kind = 'step' and ordinal = 1",
    "all of it": "delete from records where kind = 'step' and ordinal = 1",
}


@pytest.mark.parametrize("damage", FLIPS)
def test_a_damaged_step_is_refused_and_never_just_called_again(damage: str, tmp_path: Path) -> None:
    """INV-10."""
    steps, path = Counted(), tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        one_node(reordered(steps, [1, 2, 3]), saver).invoke({"log": []}, CONFIG)
    spoil(path, FLIPS[damage])
    with SqliteSaver(path) as saver:
        with pytest.raises(CorruptRecordError):
            one_node(reordered(steps, [1, 2, 3]), saver).invoke(Command(resume="yes"), CONFIG)
        assert list(saver.store.verify())
    assert steps.calls == [1, 2, 3]
    assert CliRunner().invoke(application, ["--db", str(path), "verify"]).exit_code == 1
