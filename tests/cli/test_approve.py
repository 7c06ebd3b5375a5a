"""`stepwell approve` and `stepwell reject`: somebody decides, and whoever resumes goes on with it."""

from pathlib import Path
from typing import Any

import pytest

from stepwell import SqliteSaver, points
from stepwell.cli.rendering import opaque_codec
from stepwell.clock import SystemClock
from stepwell.graph.approval import Approve
from stepwell.runtime.effects.deciding import record_decision
from stepwell.testing import SimulatedCrash, crash_at
from tests.cli.calls import Answer, Call


@pytest.fixture
def asking(call: Call, answer: Answer) -> Any:
    """Return the question of an effect that waits for a decision."""
    call("run", "flows.py:refunds", "--thread", "t", "--input", '{"n": 700}')
    [question] = answer("show", "t")["questions"]
    return question


def test_a_run_that_pauses_says_what_wants_to_be_approved_and_how(call: Call) -> None:
    said = call("run", "flows.py:refunds", "--thread", "t", "--input", '{"n": 700}').stderr
    assert "give_back asks for approval (" in said
    assert "  give the money back, until 2" in said
    assert '  {\n    "limit": 500\n  }' in said
    assert "approve t " in said
    assert said.rstrip().endswith("--by WHO")


def test_show_and_effects_list_what_is_open(asking: Any, call: Call, answer: Answer) -> None:
    request = asking["value"]["$value"]
    assert (request["effect"], request["inputs"]) == ("refund", {"order": "o", "cents": 700})
    assert asking["resume"].endswith(f"approve t {asking['id']} --by WHO")
    lines = call("show", "t").stdout.splitlines()
    assert next(line for line in lines if line.startswith("approval")).split()[1:3] == [asking["id"], "of"]
    assert f"give_back asks for approval ({asking['id']}): give the money back" in call("effects", "t").stderr
    [listed] = answer("effects", "t")["approvals"]
    assert (listed["id"], listed["key"], listed["node"]) == (asking["id"], request["key"], "give_back")
    assert answer("effects")["approvals"] == []


@pytest.mark.parametrize("named", ["not", "by id", "by key"])
def test_an_approval_is_recorded_and_resume_goes_on_with_it(
    asking: Any, call: Call, answer: Answer, named: str
) -> None:
    which = {"not": [], "by id": [asking["id"]], "by key": [asking["value"]["$value"]["key"]]}[named]
    said = call("approve", "t", *which, "--by", "ann", "--note", "ok", "--set", "cents=5")
    assert said.stdout.startswith("refund of thread t: approved by ann at 2")
    assert said.stdout.endswith("(cents=5; ok)\n")
    assert "go on with it: " in said.stderr
    assert answer("show", "t")["status"] == "paused", "nothing has run"
    assert answer("resume", "flows.py:refunds", "--thread", "t")["values"]["answer"] == "refunded 5 for o"
    assert answer("effects", "t")["approvals"] == []
    done, decided = call("--json", "journal", "t").stdout.splitlines()
    assert '"approval_status": "approved"' in done
    assert '"decided_by": "ann"' in decided


def test_a_rejection_says_who_and_why(asking: Any, call: Call, answer: Answer) -> None:
    made = answer("reject", "t", "--by", "eve", "--reason", "too much")
    assert (made["status"], made["decided_by"], made["reason"]) == ("rejected", "eve", "too much")
    assert (made["name"], made["planned_action"]) == ("refund", "give the money back")
    assert answer("resume", "flows.py:refunds", "--thread", "t")["values"]["answer"] == "no: too much"


@pytest.mark.parametrize("second", ["approve", "reject"])
def test_a_second_decision_is_refused_with_the_first(asking: Any, call: Call, second: str) -> None:
    call("approve", "t", "--by", "ann")
    for which in ([], [asking["id"]], [asking["value"]["$value"]["key"]]):
        told = call(second, "t", *which, "--by", "bob", status=2).stderr
        assert told.startswith("error[already_decided]: ")
        assert "approved by ann at 2" in told


def test_what_is_no_decision_is_refused(asking: Any, call: Call) -> None:
    assert "--by" in call("approve", "t", status=2).stderr
    told = call("approve", "t", "--by", " ", status=2).stderr
    assert told.startswith("error[invalid_decision]: ") and "Decide with `approve` or `reject`." in told
    assert "it may change order, cents" in call("approve", "t", "--by", "ann", "--set", "x=1", status=2).stderr
    assert "takes NAME=JSON" in call("approve", "t", "--by", "ann", "--set", "cents", status=2).stderr
    assert "given twice" in call("approve", "t", "--by", "ann", "--set", "cents=1", "--set", "cents=2", status=2).stderr
    assert "is not JSON" in call("approve", "t", "--by", "ann", "--set", "cents=x", status=2).stderr
    assert "no such question open" in call("approve", "t", "zzz", "--by", "ann", status=2).stderr
    call("approve", "nowhere", "--by", "ann", status=3)
    call("run", "flows.py:pays", "--thread", "other", "--input", '{"n": 5}', status=1)
    assert call("approve", "other", "--by", "ann", status=2).stderr.startswith("error[unknown_interrupt]: ")


@pytest.mark.parametrize(
    "point", [points.ADMISSION, points.BEGUN, points.WRITTEN, points.DURABLE, points.APPROVAL_DECIDED]
)
def test_a_process_that_dies_has_recorded_the_decision_or_not(
    asking: Any, call: Call, answer: Answer, folder: Path, point: str
) -> None:
    with SqliteSaver(folder / "stepwell.db") as saver, crash_at(point), pytest.raises(SimulatedCrash):
        record_decision(saver.store, opaque_codec(), SystemClock(), "t", None, Approve("ann"))
    landed = point in (points.DURABLE, points.APPROVAL_DECIDED)
    call("approve", "t", "--by", "bob", status=2 if landed else 0)
    assert answer("resume", "flows.py:refunds", "--thread", "t")["values"]["answer"] == "refunded 700 for o"
    decisions = [entry for entry in call("--json", "journal", "t").stdout.splitlines() if '"kind": "approval"' in entry]
    assert len(decisions) == 1
    assert f'"decided_by": "{"ann" if landed else "bob"}"' in decisions[0]
