"""What can still be done where a thread is damaged: it is deleted whole, and hides no other thread in a list."""

from itertools import combinations
from pathlib import Path

import pytest

from stepwell import Command, CorruptRecordError, UnknownInterruptError
from tests.integrity.damaging import TABLES, Damage, Scene
from tests.integrity.spoiling import Saver, count_rows, spoil
from tests.runtime.graphs import ask, chain, letters, note, thread


def test_a_thread_whose_own_row_is_gone_is_deleted_whole() -> None:
    scene = Scene()
    assert scene.damage(Damage("threads", scene.rows["threads"][0], "delete", "", None))
    assert not scene.saver.verify().is_sound
    scene.saver.delete_thread("t")
    assert scene.saver.verify().is_sound
    left = {row["thread_id"] for table in TABLES for row in scene.ground.rows(table)}
    assert left == {"other"}
    scene.graph.invoke({}, thread("t"))
    assert scene.saver.verify().is_sound


def test_a_thread_is_deleted_whole_whatever_tables_have_lost_its_rows() -> None:
    scene = Scene()
    lossy = ("threads", "runs", "checkpoints", "records", "lineages", "effects")
    left: list[object] = []
    for lost in (some for many in range(len(lossy) + 1) for some in combinations(lossy, many)):
        scene.restore()
        for damage in (Damage(table, row, "delete", "", None) for table in lost for row in scene.rows[table]):
            assert scene.damage(damage)
        scene.saver.delete_thread("t")
        left += [(lost, table) for table in sorted(TABLES.keys() - {"threads"}) if scene.count(table)]
    assert left == []
    assert scene.saver.verify().is_sound, "the other thread is as it was"


@pytest.mark.parametrize("lost", ["ordinal = 1", "ordinal > 1"])
def test_the_log_of_a_run_whose_row_is_lost_is_told_of_and_deleted_with_its_thread(saver: Saver, lost: str) -> None:
    graph = letters("ab").compile(checkpointer=saver, name="g", events=True)
    graph.invoke({}, thread())
    graph.invoke({}, thread("other"))
    spoil(saver, "delete from runs where thread_id = 't'")
    (fault, *_) = [fault for fault in saver.verify("t").faults if fault.table == "events"]
    assert "its run" in fault.reason
    spoil(saver, f"delete from events where thread_id = 't' and {lost}")
    assert "events" in {fault.table for fault in saver.verify().faults}
    saver.delete_thread("t")
    assert count_rows(saver, "events", "t") == 0
    assert count_rows(saver, "events", "other") > 0
    assert saver.verify().is_sound


@pytest.mark.parametrize(
    "lost", ["records where seq = 4", "runs", "checkpoints where seq = 2", "events where ordinal = 3"]
)
def test_a_thread_that_has_lost_a_row_is_not_exported(saver: Saver, tmp_path: Path, lost: str) -> None:
    graph = chain(("a", note("a")), ("b", ask("b"))).compile(checkpointer=saver, name="g", events=True)
    graph.invoke({}, thread())
    saver.export_thread("t", tmp_path / "whole")
    spoil(saver, f"delete from {lost}")
    (fault, *_) = saver.verify("t").faults
    with pytest.raises(CorruptRecordError) as refused:
        saver.export_thread("t", tmp_path / "file")
    assert (refused.value.fields()["table"], refused.value.fields()["reason"]) == (fault.table, fault.reason)
    assert [path.name for path in tmp_path.iterdir() if "file" in path.name] == []


@pytest.mark.parametrize(
    "damage",
    [
        "update checkpoints set body = x'00' where thread_id = 't2' and seq = 1",
        "update threads set status = 'x' where thread_id = 't2'",
        "delete from checkpoints where thread_id = 't2' and step = 2",
    ],
)
def test_a_damaged_thread_hides_no_other_in_the_list_of_all_and_is_told_of(saver: Saver, damage: str) -> None:
    graph = letters("ab").compile(checkpointer=saver, name="g")
    for name in ("t1", "t2", "t3"):
        graph.invoke({}, thread(name))
    whole = list(saver.list(None))
    spoil(saver, damage)
    seen = []
    with pytest.raises(CorruptRecordError, match="'t2'"):
        for each in saver.list(None):
            seen.append(each)  # the list ends in an error
    assert all(each in whole for each in seen)
    others = [each for each in whole if each.config["configurable"]["thread_id"] != "t2"]
    assert [each for each in seen if each.config["configurable"]["thread_id"] != "t2"] == others
    page = saver.list(None, limit=len(seen))
    assert list(page) == seen, "a page that a limit cuts says no more than that it goes on"
    with pytest.raises(CorruptRecordError, match="'t2'"):
        list(saver.list(thread("t2")))


@pytest.mark.parametrize("last", ["the answer", "the question"])
def test_the_last_records_before_a_checkpoint_are_missed_and_nothing_is_made_of_those_that_are_left(
    saver: Saver, last: str
) -> None:
    """Nothing refers to them, and their ordinals leave no gap."""
    graph = chain(("a", note("a")), ("b", ask("b")), ("c", note("c"))).compile(checkpointer=saver, name="g")
    graph.invoke({}, thread())
    asked = graph.get_state(thread())
    graph.invoke(Command(resume="yes"), thread())
    spoil(saver, "delete from records where base_seq = 3" + " and kind = 'answer'" * (last == "the answer"))
    (fault,) = saver.verify().faults
    assert (fault.table, fault.place) == ("checkpoints", "6")
    assert fault.reason.startswith("2 records stood on the checkpoint 3 before it")
    answer = Command(resume={asked.interrupts[0].id: "no"})
    with pytest.raises((CorruptRecordError, UnknownInterruptError)):
        graph.invoke(answer, asked.config)
    saver.repair("t", by="ann")
    assert saver.verify().is_sound
