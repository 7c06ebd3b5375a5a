"""A repair: what it refuses, what it says, what it records, and what is left of it when its process dies."""

from contextlib import closing
from typing import Any

import pytest

from stepwell import (
    CorruptRecordError,
    EffectInDoubtError,
    InvalidConfigError,
    Overwrite,
    ThreadBusyError,
    UnknownCheckpointError,
    UnknownThreadError,
    effect,
    points,
)
from stepwell.errors import CannotRepairError, NothingToRepairError
from stepwell.superstep import lifecycle
from stepwell.superstep.repaired import decode_repaired
from stepwell.testing import SimulatedCrash
from stepwell.testing.crash import crash_at
from tests.integrity.spoiling import Place, Saver, spoil
from tests.runtime.graphs import ask, chain, letters, note, thread


def lived(saver: Saver) -> tuple[Any, list[Any]]:
    """Return a graph whose thread "t" stands before its last node, and the thread's checkpoints, newest first."""
    graph = letters("abc").compile(checkpointer=saver, name="g", interrupt_before=["c"])
    graph.invoke({}, thread())
    return graph, [state.config["configurable"]["checkpoint_id"] for state in graph.get_state_history(thread())]


def test_a_repair_goes_on_from_the_last_good_checkpoint_and_says_so(saver: Saver) -> None:
    graph, (newest, good, *_) = lived(saver)
    spoil(saver, "update checkpoints set body = x'00' where seq = 4")
    with pytest.raises(CorruptRecordError):
        graph.get_state(thread())
    (sick,) = saver.verify().threads
    assert [each.checkpoint_id for each in sick.unreadable] == [newest]
    (lineage,) = sick.lineages
    assert (lineage.head, lineage.last_good, sick.last_good) == (newest, good, good)
    done = saver.repair("t", by="ann", reason="a disk that failed")
    assert (done.repaired_from, done.lineage, done.made_anew) == (good, 1, ())
    assert done.left_behind == tuple(map(str, sick.faults))
    assert graph.get_state(thread()).config == done.config
    assert graph.invoke(None, thread()) == {"log": ["a", "b"]}
    assert graph.invoke(None, thread()) == {"log": ["a", "b", "c"]}
    found = saver.verify()
    assert (found.is_sound, found.threads, tuple(map(str, found.left_behind))) == (True, (), done.left_behind)


def test_a_repair_goes_on_from_the_checkpoint_that_is_named(saver: Saver) -> None:
    graph, (_, _, older, _) = lived(saver)
    spoil(saver, "update checkpoints set body = x'00' where seq = 4")
    assert saver.repair("t", older).repaired_from == older
    assert graph.get_state(thread()).next == ("a",)


def test_a_repair_is_on_record(saver: Saver) -> None:
    lived(saver)
    spoil(saver, "update checkpoints set body = x'00' where seq = 4")
    spoil(saver, "update runs set error = 'altered'")
    saver.repair("t", by="ann", reason="a disk that failed")
    with saver.store.reading() as reader:
        (record,) = reader.records_of_kind("t", lifecycle.REPAIRED)
    (run,) = saver.runs("t")
    said = decode_repaired(record.body, "the repair")
    assert (said.by, said.reason, said.seq) == ("ann", "a disk that failed", 3)
    assert [(table, place) for table, place, _, _ in said.left if table == "checkpoints"] == [("checkpoints", "4")]
    ((table, place, stood),) = said.remade
    assert (table, place) == ("runs", run.run_id)
    assert b"altered" in stood, "what stood in the row is kept"
    assert run.status == "failed"
    assert "what it said is lost" in (run.error or "")


def test_what_is_damaged_after_a_repair_is_a_fault_again(saver: Saver) -> None:
    graph, _ = lived(saver)
    spoil(saver, "update checkpoints set body = x'00' where seq = 4")
    saver.repair("t")
    spoil(saver, "update checkpoints set body = x'00' where seq = 2")
    found = saver.verify()
    assert [(fault.table, fault.place) for fault in found.faults] == [("checkpoints", "2")]
    assert [fault.place for fault in found.left_behind] == ["4"]
    assert saver.repair("t").lineage == 2
    assert saver.verify().is_sound
    assert graph.get_state(thread()).values == {"log": ["a"]}


def test_a_lost_tail_is_repaired(saver: Saver) -> None:
    graph, (_, good, *_) = lived(saver)
    spoil(saver, "delete from checkpoints where seq = 4")
    assert saver.repair("t").repaired_from == good
    assert graph.get_state(thread()).next == ("b",)
    assert saver.verify().is_sound


def test_a_thread_whose_own_row_is_gone_is_repaired(saver: Saver) -> None:
    graph, (newest, *_) = lived(saver)
    spoil(saver, "delete from threads")
    assert saver.repair("t").repaired_from == newest
    assert graph.get_state(thread()).next == ("c",)
    graph.invoke(None, thread())
    assert saver.verify().is_sound


def test_a_sound_thread_is_not_repaired(saver: Saver) -> None:
    lived(saver)
    with pytest.raises(NothingToRepairError):
        saver.repair("t")
    with pytest.raises(UnknownThreadError):
        saver.repair("nobody")
    saver.delete_thread("t")
    with pytest.raises(UnknownThreadError):
        saver.repair("t")


def test_a_checkpoint_that_cannot_be_read_is_no_place_to_go_on_from(saver: Saver) -> None:
    _, (newest, good, *_) = lived(saver)
    spoil(saver, "update checkpoints set body = x'00' where seq = 4")
    with pytest.raises(
        CannotRepairError, match=r"its columns do not match its digest\. Checkpoints it can go on"
    ) as caught:
        saver.repair("t", newest)
    assert good in caught.value.fields()["sound"]
    with pytest.raises(UnknownCheckpointError):
        saver.repair("t", "nowhere")
    with pytest.raises(InvalidConfigError, match="by is a text"):
        saver.repair("t", by=5)  # type: ignore[arg-type]


def test_a_thread_of_which_nothing_can_be_read_is_not_repaired(saver: Saver) -> None:
    lived(saver)
    spoil(saver, "update checkpoints set body = x'00'")
    with pytest.raises(CannotRepairError, match="no checkpoint of it can be read"):
        saver.repair("t")


def test_a_thread_that_somebody_runs_is_not_repaired(saver: Saver) -> None:
    tried: list[BaseException] = []

    def repairing(state: Any) -> dict[str, list[str]]:
        spoil(saver, "update checkpoints set metadata = '{}' where seq = 1")
        try:
            saver.repair("t")
        except ThreadBusyError as error:
            tried.append(error)
        return {"log": ["a"]}

    chain(("a", repairing)).compile(checkpointer=saver).invoke({}, thread())
    assert len(tried) == 1


def test_a_reference_is_followed_to_what_depends_on_it(saver: Saver) -> None:
    """What a checkpoint needs is damaged: it cannot be read either, and neither can what is built on it."""
    graph = chain(("a", note("a")), *((name, lambda state: {}) for name in "bcd")).compile(checkpointer=saver)
    graph.invoke({}, thread())
    spoil(saver, "update checkpoints set body = x'00' where seq = 3")
    (sick,) = saver.verify().threads
    assert [each.seq for each in sick.unreadable] == [3, 4, 5, 6]
    assert all("checkpoints row of thread 't' at 3" in (each.fault or "") for each in sick.unreadable[1:])
    assert sick.last_good == sick.checkpoints[1].checkpoint_id
    saver.repair("t")
    assert graph.invoke(None, thread()) == {"log": ["a"]}


def test_an_effect_whose_receipt_is_lost_is_in_doubt(saver: Saver) -> None:
    done: list[str] = []

    @effect(on_doubt="raise", name="pay")
    def pay(what: str) -> str:
        done.append(what)
        return "paid"

    graph = chain(("first", note("first")), ("act", lambda state: {"log": [pay("x")]})).compile(checkpointer=saver)
    graph.invoke({}, thread())
    before = next(state.config for state in graph.get_state_history(thread()) if state.next == ("act",))
    spoil(saver, "update records set body = x'00' where kind = 'receipt'")
    done_so = saver.repair("t", before["configurable"]["checkpoint_id"])
    assert [table for table, _ in done_so.made_anew] == ["effects"]
    with pytest.raises(EffectInDoubtError, match="a repair has left it behind"):
        graph.invoke(None, thread())
    assert done == ["x"], "it is not done again"
    with saver.store.reading() as reader:
        (row,) = reader.effect(done_so.made_anew[0][1])
    graph.resolve_effect(thread(), row.key, receipt="paid", by="ann")
    assert graph.invoke(None, thread()) == {"log": ["first", "paid"]}
    assert done == ["x"]
    assert saver.verify().is_sound


@pytest.mark.crash
@pytest.mark.parametrize("point", [points.REPAIR_READ, points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE])
def test_a_repair_that_died_has_happened_or_not(point: str, place: Place) -> None:
    with closing(place.open()) as saver:
        lived(saver)
        spoil(saver, "update checkpoints set body = x'00' where seq = 4")
        with pytest.raises(SimulatedCrash), crash_at(point):
            saver.repair("t")
    with closing(place.open()) as saver:
        happened = saver.verify().is_sound
        assert happened is (point == points.DURABLE)
        if not happened:
            saver.repair("t")
        graph = letters("abc").compile(checkpointer=saver, name="g")
        assert graph.invoke(None, thread()) == {"log": ["a", "b", "c"]}
        assert saver.verify().is_sound


async def test_the_async_twins_do_the_same(saver: Saver) -> None:
    lived(saver)
    spoil(saver, "update checkpoints set body = x'00' where seq = 4")
    assert not (await saver.averify()).is_sound
    assert (await saver.arepair("t", by="ann")).lineage == 1
    assert (await saver.averify("t")).is_sound

    assert (await saver.averify("t")).is_sound


@pytest.mark.parametrize("column", ["body", "digest"])
def test_a_damaged_large_value_is_whole_again_once_it_is_written_again(saver: Saver, column: str) -> None:
    large = "large " * 5000
    graph = chain(("a", note("a")), ("b", note(large)), ("c", note("c"))).compile(checkpointer=saver, name="g")
    done = graph.invoke({}, thread())
    spoil(saver, f"update blobs set {column} = x'00'")
    assert not saver.verify().is_sound
    saver.repair("t", by="ann", reason="a disk that failed")
    assert graph.invoke(None, thread()) == done
    assert graph.get_state(thread()).values == done
    assert saver.verify().is_sound


def test_a_repaired_thread_that_has_lost_a_base_is_not_pruned(saver: Saver) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver, name="g")
    graph.invoke({}, thread())
    spoil(saver, "delete from checkpoints where seq = 3")
    saver.repair("t")
    with pytest.raises(CorruptRecordError, match="its base 3 is missing"):
        saver.prune("t", keep_last=1)


def test_pruning_leaves_the_end_of_a_lineage_that_a_repair_went_on_from(saver: Saver) -> None:
    """The checkpoint that was kept is lost; the one before it, which was only held, is where its lineage ends now."""
    graph = letters("abcd").compile(checkpointer=saver, name="g")
    graph.invoke({}, thread())
    saver.prune("t", keep_last=1)
    spoil(saver, "delete from checkpoints where step = 4")
    saver.repair("t")
    graph.invoke(None, thread())
    assert saver.verify().is_sound
    saver.prune("t", keep_last=1)
    assert saver.verify().is_sound


def test_a_thread_that_has_lost_what_an_anchor_holds_is_not_pruned(saver: Saver) -> None:
    """Nothing needs it any more, but for the gap behind it."""
    nodes: Any = (("a", lambda state: {"log": Overwrite(["a"])}), ("b", lambda state: {}), ("c", lambda state: {}))
    graph = chain(*nodes).compile(checkpointer=saver)
    graph.invoke({}, thread())
    saver.prune("t", keep_last=1)
    graph.invoke({}, thread())
    spoil(saver, "delete from checkpoints where seq = (select min(seq) from anchors where held = 1)")
    with pytest.raises(CorruptRecordError, match="held by an anchor"):
        saver.prune("t", keep_last=1)
