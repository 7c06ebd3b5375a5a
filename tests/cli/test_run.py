"""`stepwell run`: what it prints, where it pauses, and how it says that a superstep is done."""

import json
import re
from pathlib import Path

from tests.cli.calls import FLOWS, Answer, Call

VALUES = {
    "n": 2,
    "seen": ["first", "wide 0", "wide 1"],
    "point": {"$type": "flows:Point", "$value": {"x": 2, "label": "a marker in a body"}},
}


def test_a_run_prints_its_values_as_json_and_tells_of_each_superstep(call: Call) -> None:
    result = call("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 2}')
    assert json.loads(result.stdout) == {"n": 0, "seen": []}
    said = re.sub(r"\d+\.\d+ s", "0 s", result.stderr).splitlines()
    assert said == ["step 1: less, 0 s", "step 2: less, 0 s", "thread t: finished after step 2"]


def test_a_run_that_pauses_names_the_question_and_the_command_that_answers_it(call: Call, answer: Answer) -> None:
    result = call("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 2}')
    assert json.loads(result.stdout) == VALUES
    [line] = [line for line in result.stderr.splitlines() if line.startswith("answer it: ")]
    found = re.fullmatch(rf"answer it: stepwell resume {FLOWS}:graph --thread t --answer (\w+)=JSON", line)
    assert found is not None
    assert "thread t: paused after step 2, next: ask" in result.stderr
    assert "step 2: wide x2" in result.stderr
    assert [question["id"] for question in answer("show", "t")["questions"]] == [found[1]]


def test_with_json_a_run_prints_one_object_and_says_nothing(call: Call) -> None:
    result = call("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 2}', "--json")
    shown = json.loads(result.stdout)
    assert result.stderr == ""
    [question] = shown.pop("questions")
    assert question.pop("resume").endswith(f"--thread t --answer {question.pop('id')}=JSON")
    assert question == {"node": "ask", "value": {"seen": 3}}
    assert re.fullmatch(r"[0-9a-f]{32}", shown.pop("checkpoint"))
    assert shown == {"thread": "t", "status": "paused", "step": 2, "next": ["ask"], "values": VALUES, "waits": []}


def test_the_input_may_stand_in_a_file(answer: Answer, folder: Path) -> None:
    (folder / "input.json").write_text('{"n": 1}')
    assert answer("run", "flows.py:counts", "--thread", "t", "--input", "@input.json")["values"]["n"] == 0


def test_without_an_input_a_finished_thread_shows_its_values_again(answer: Answer) -> None:
    first = answer("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 1}')
    assert answer("run", "flows.py:counts", "--thread", "t") == first


def test_without_an_input_an_unknown_thread_has_nothing_to_go_on_with(call: Call) -> None:
    result = call("run", "flows.py:counts", "--thread", "t", status=2)
    assert result.stderr == "error[empty_input]: Thread t has nothing to go on with. Give it an --input.\n"


def test_a_new_input_over_an_open_question_is_refused(call: Call) -> None:
    call("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')
    result = call("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}', status=2)
    assert re.fullmatch(
        r"error\[pending_work\]: Thread t waits for an answer \(\w+\)\. Answer it with `resume --answer`, or begin"
        r" another thread\.\n",
        result.stderr,
    )


def test_a_failed_node_is_named_on_one_line_with_the_command_to_retry(call: Call, answer: Answer) -> None:
    result = call("run", "flows.py:fails", "--thread", "my t", "--input", "{}", status=1)
    assert result.stdout == ""
    assert result.stderr == (
        "error[node_failed]: Node 'broken' of thread 'my t' raised ValueError: no such \\x1b[31mluck."
        f" Try again: stepwell resume {FLOWS}:fails --thread 'my t'\n"
    )
    [thread] = answer("threads")["threads"]
    assert (thread["status"], thread["steps"]) == ("failed", 0)
    assert thread["error"] == "ValueError('no\\nsuch \\x1b[31mluck')"


def test_a_broken_pipe_in_a_node_is_a_failed_node(call: Call) -> None:
    result = call("run", "flows.py:sigpipe", "--thread", "t", "--input", "{}", status=1)
    assert "error[node_failed]: Node 'piped' of thread 't' raised BrokenPipeError" in result.stderr


def test_an_error_of_ours_that_a_node_raised_is_the_failure_of_that_node(call: Call) -> None:
    result = call("run", "flows.py:confuses", "--thread", "t", "--input", "{}", status=1)
    assert result.stderr.startswith("error[node_failed]: Node 'confused' of thread 't' raised ThreadBusyError: ")


def test_a_run_that_is_out_of_steps_names_the_command_that_goes_on(call: Call, answer: Answer) -> None:
    result = call("run", "flows.py:endless", "--thread", "t", "--input", '{"n": 3}', status=1)
    assert result.stderr.splitlines()[-1] == (
        "error[recursion_limit]: Thread t reached the limit of 2 supersteps. The state is saved; the next run has a"
        f" fresh limit. Go on: stepwell resume {FLOWS}:endless --thread t"
    )
    assert answer("resume", "flows.py:endless", "--thread", "t")["values"]["n"] == 0


def test_a_node_that_exits_does_not_take_the_command_with_it(call: Call) -> None:
    result = call("run", "flows.py:exits", "--thread", "t", "--input", "{}", status=1)
    assert "raised SystemExit: 3" in result.stderr


def test_a_builder_is_compiled_and_a_graph_keeps_its_own_name(answer: Answer) -> None:
    answer("run", "flows.py:builder", "--thread", "b", "--input", '{"n": 1}')
    answer("run", "flows.py:graph", "--thread", "g", "--input", '{"n": 1}')
    assert {thread["thread"]: thread["graph"] for thread in answer("threads")["threads"]} == {
        "b": "flows.State",
        "g": "approval",
    }


def test_a_graph_with_a_checkpointer_of_its_own_keeps_it(call: Call, folder: Path) -> None:
    result = call("run", "flows.py:own", "--thread", "t", "--input", '{"n": 1}')
    assert "This graph keeps its threads in memory: they end with this command." in result.stderr
    assert not (folder / "stepwell.db").exists()
    refused = call("run", "flows.py:own", "--thread", "t", "--db", "x.db", status=2)
    assert "compiled with a checkpointer of its own" in refused.stderr


def test_the_database_is_named_before_or_after_the_command(call: Call, answer: Answer, folder: Path) -> None:
    call("--db", "one.db", "run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')
    [question] = answer("show", "t", "--db", "one.db")["questions"]
    assert f" --db one.db --answer {question['id']}=JSON" in question["resume"]
    assert json.loads(call("--json", "--db", "one.db", "threads").stdout) == answer("threads", "--db", "one.db")
    assert [path.name for path in folder.glob("*.db")] == ["one.db"]
