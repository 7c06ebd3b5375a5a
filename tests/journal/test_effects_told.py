"""`get_journal` and effects: each attempt and how it ended."""

from typing import Any

import pytest

from stepwell import (
    ApprovalRejectedError,
    Approve,
    Command,
    EffectInDoubtError,
    EffectNotPerformed,
    InMemorySaver,
    Reject,
    RetryPolicy,
    SqliteSaver,
    effect,
    interrupt,
    points,
    wait_for,
)
from stepwell.testing import SimulatedCrash
from tests.effects.acting import Outside, one
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Log

CONFIG = {"configurable": {"thread_id": "t"}}


def charging(outside: Outside, **options: Any) -> Any:
    def charge(amount: int, idempotency_key: str) -> str:
        return outside.act(idempotency_key, amount)

    return effect(**options)(charge)


def told(entries: Any) -> list[tuple[str, int]]:
    return [(entry.status, entry.attempts) for entry in entries]


def test_an_effect_is_told_with_all_that_is_known_of_it(memory_saver: InMemorySaver) -> None:
    outside = Outside()
    charge = charging(outside, versions={"prompt": "3", "tool": "1.2"}, planned_action="charge the card")
    graph = one(lambda state: {"log": [charge(5)]}, memory_saver)
    graph.invoke({"log": []}, {**CONFIG, "run_id": "r1"})
    (entry,) = graph.get_journal(CONFIG)
    assert (entry.kind, entry.name, entry.status, entry.receipt) == ("effect", "charge", "done", "5 #1")
    assert (entry.planned_action, entry.inputs) == ("charge the card", {"amount": 5})
    assert entry.versions == {"code": charge.declared.step.code, "prompt": "3", "tool": "1.2"}
    assert (entry.attempts, entry.retry_count, entry.error_state) == (1, 0, None)
    assert (entry.node, entry.lineage, entry.run_id, entry.key) == ("n", 0, "r1", outside.keys[0])
    assert entry.fingerprint
    assert entry.started_at <= entry.finished_at <= entry.recorded_at


def test_an_effect_that_was_approved_is_told_with_who_did(memory_saver: InMemorySaver) -> None:
    charge = charging(Outside(), approval=True)
    graph = one(lambda state: {"log": [charge(5)]}, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    assert list(graph.get_journal(CONFIG)) == []
    graph.invoke(Command(resume=Approve(by="ann", note="fine")), CONFIG)
    done, approved = graph.get_journal(CONFIG)
    assert (done.kind, done.status, done.approval_status) == ("effect", "done", "approved")
    assert (done.approval.by, done.approval.note) == ("ann", "fine")
    assert (approved.kind, approved.status, approved.decided_by) == ("approval", "approved", "ann")
    assert (approved.reason, approved.approval) == ("fine", done.approval)
    assert (approved.name, approved.node, approved.inputs) == ("charge", "n", {"amount": 5})
    assert (approved.key, approved.step_id) == (done.key, done.step_id)


def test_what_was_rejected_is_told_though_nothing_was_attempted(memory_saver: InMemorySaver) -> None:
    charge = charging(Outside(), approval=True)
    graph = one(lambda state: {"log": [charge(5)]}, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    with pytest.raises(ApprovalRejectedError):
        graph.invoke(Command(resume=Reject(by="bob", reason="too much")), CONFIG)
    (entry,) = graph.get_journal(CONFIG)
    assert (entry.kind, entry.status, entry.approval_status) == ("approval", "rejected", "rejected")
    assert (entry.name, entry.decided_by, entry.reason) == ("charge", "bob", "too much")


def test_what_a_wait_got_is_told(memory_saver: InMemorySaver) -> None:
    graph = one(lambda state: {"log": [wait_for("door")]}, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    assert list(graph.get_journal(CONFIG)) == []
    graph.signal(CONFIG, "door", {"open": True})
    graph.invoke(None, CONFIG)
    (entry,) = graph.get_journal(CONFIG)
    assert (entry.kind, entry.name, entry.status, entry.receipt) == ("wait", "door", "came", {"open": True})
    assert (entry.node, entry.decided_by) == ("n", None)


def test_each_attempt_has_one_entry_whatever_it_came_to(memory_saver: InMemorySaver) -> None:
    outside = Outside()
    outside.refusals, outside.losses = [ConnectionRefusedError("no")], [ValueError("lost")]
    again = RetryPolicy(initial_interval=0.0, max_attempts=4, retry_on=Exception)
    charge = charging(outside, retry_policy=again)
    graph = one(lambda state: {"log": [charge(5)]}, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    found = list(graph.get_journal(CONFIG))
    assert told(found) == [("done", 3), ("in doubt", 2), ("failed", 1)]
    assert [entry.error_state for entry in found] == [None, "ValueError('lost')", "ConnectionRefusedError('no')"]
    assert [entry.finished_at is None for entry in found] == [False, True, False]
    assert len({(entry.key, entry.step_id) for entry in found}) == 1
    for at in range(4):  # wherever a list begins, it says the same
        page = graph.get_journal(CONFIG, limit=at)
        assert [*page, *(graph.get_journal(CONFIG, before=page.more) if page.more is not None else ())] == found[
            :at
        ] + (found[at:] if page.more is not None else [])


def test_a_failure_that_the_node_is_told_again_is_one_entry(memory_saver: InMemorySaver) -> None:
    outside = Outside()
    outside.refusals = [EffectNotPerformed("no")]
    charge = charging(outside)

    def node(state: Log) -> Any:
        try:
            charge(5)
        except EffectNotPerformed:
            return {"log": [interrupt("?")]}

    graph = one(node, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    assert told(graph.get_journal(CONFIG)) == [("failed", 1)]


def test_steps_and_effects_are_one_list(memory_saver: InMemorySaver) -> None:
    from tests.journal.test_reading import double

    charge = charging(Outside())
    graph = one(lambda state: {"log": [double(1).result(), charge(5), double(2).result()]}, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    assert [(entry.kind, entry.receipt) for entry in graph.get_journal(CONFIG)] == [
        ("step", 4),
        ("effect", "5 #1"),
        ("step", 2),
    ]


def test_an_attempt_is_running_while_its_run_lives_and_in_doubt_when_that_died(deaths: Deaths) -> None:
    outside, seen = Outside(), []
    with Saver(deaths.clock) as saver:

        def body(amount: int) -> None:
            seen.append(list(graph.get_journal(CONFIG)))
            outside.act("-", amount)

        charge = effect(on_doubt="raise", name="charge")(body)
        graph = one(lambda state: {"log": [charge(5)]}, saver)
        deaths.dies_at(points.BODY_RETURNED)
        with pytest.raises(SimulatedCrash):
            graph.invoke({"log": []}, CONFIG)
        deaths.revive()
        ((running,),) = seen
        assert (running.status, running.error_state, running.finished_at) == ("running", None, None)
        with pytest.raises(EffectInDoubtError):
            graph.invoke(None, CONFIG)
        (doubted,) = graph.get_journal(CONFIG)
        assert (doubted.status, doubted.error_state, doubted.seq) == ("in doubt", "its end is not known", running.seq)
    assert outside.asked == [("-", 5)]


def test_the_attempt_of_a_process_that_died_stays_beside_the_next_one(deaths: Deaths) -> None:
    outside = Outside()
    with Saver(deaths.clock) as saver:
        charge = charging(outside)
        graph = one(lambda state: {"log": [charge(5)]}, saver)
        deaths.dies_at(points.INTENT_DURABLE)
        with pytest.raises(SimulatedCrash):
            graph.invoke({"log": []}, CONFIG)
        deaths.revive()
        graph.invoke(None, CONFIG)
        found = list(graph.get_journal(CONFIG))
        assert told(found) == [("done", 2), ("in doubt", 1)]
        assert list(graph.get_journal(CONFIG, before=found[0])) == found[1:]


def test_the_effects_functions_need_not_be_there(tmp_path: Any) -> None:
    with SqliteSaver(tmp_path / "db") as saver:
        charge = charging(Outside())
        one(lambda state: {"log": [charge(5)]}, saver).invoke({"log": []}, CONFIG)
    with SqliteSaver(tmp_path / "db") as saver:
        (entry,) = one(lambda state: None, saver).get_journal(CONFIG)
        assert (entry.name, entry.inputs, entry.receipt) == ("charge", {"amount": 5}, "5 #1")
