"""Real processes, stopped from outside while a node is at work."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stepwell import InMemorySaver
from stepwell.cli.driving import config_of, interrupted
from tests.cli import flows
from tests.cli.calls import Answer, Call, Work, command_line, environment, witnessed


@pytest.mark.crash
@pytest.mark.parametrize("graph", ["long", "long_beside"])
def test_a_killed_run_is_resumed_and_repeats_nothing_that_was_durable(
    work: Work, answer: Answer, folder: Path, graph: str
) -> None:
    working = work("run", f"flows.py:{graph}", "--thread", "t", "--input", "{}")
    status, _ = working.stop(signal.SIGKILL)
    assert status == -signal.SIGKILL
    done = answer("resume", f"flows.py:{graph}", "--thread", "t")
    assert (done["status"], done["values"]["seen"]) == ("finished", ["first", "hangs"])
    assert witnessed(folder).count("hangs") == 1
    if graph == "long":
        assert witnessed(folder) == ["first", "hangs"]


@pytest.mark.parametrize("graph", ["long", "long_beside"])
def test_ctrl_c_exits_130_after_the_run_has_been_recorded(work: Work, answer: Answer, folder: Path, graph: str) -> None:
    working = work("run", f"flows.py:{graph}", "--thread", "t", "--input", "{}")
    status, said = working.stop(signal.SIGINT)
    assert status == 130
    assert said.splitlines()[-1].startswith(
        "error[interrupted]: The run of thread 't' was interrupted; what it finished is recorded."
        " Go on: python -m stepwell resume "
    )
    [thread] = answer("threads")["threads"]
    assert thread["status"] == "cancelled"
    assert thread["error"] in (
        "KeyboardInterrupt()",
        "Halted('the consumer left the stream')",
    )  # the run was at work, or held a line to be told
    done = answer("resume", f"flows.py:{graph}", "--thread", "t")
    assert done["values"]["seen"] == ["first", "hangs"]
    assert witnessed(folder).count("hangs") == 1
    if graph == "long":  # beside `hangs`, the signal may come before `first` has returned
        assert witnessed(folder) == ["first", "hangs"]


def test_a_run_whose_end_is_not_on_record_is_not_said_to_be_recorded(folder: Path) -> None:
    graph = flows.chain(flows.first, flows.hangs).compile(InMemorySaver())
    stream: Any = graph.stream({}, config_of("t"), stream_mode="updates")
    next(stream)
    assert str(interrupted(graph, "t")) == (
        "The run of thread 't' was cut off before its end was recorded, as that of a process that died."
    )
    stream.close()
    assert str(interrupted(graph, "t")) == "The run of thread 't' was interrupted; what it finished is recorded."


def test_a_thread_that_is_being_run_is_busy(work: Work, call: Call) -> None:
    working = work("run", "flows.py:long", "--thread", "t", "--input", "{}")
    result = call("run", "flows.py:long", "--thread", "t", status=4)
    assert result.stderr.startswith("error[thread_busy]: Thread t is being run by ")
    assert result.stderr.count("\n") == 1
    working.stop(signal.SIGKILL)


def test_python_dash_m_runs_pauses_and_resumes_in_processes(folder: Path) -> None:
    def process(*words: str) -> Any:
        done = subprocess.run(
            command_line(*words, "--json"), env=environment(), capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    [question] = process("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')["questions"]
    assert question["resume"].startswith("python -m stepwell resume ")
    done = process("resume", "flows.py:graph", "--thread", "t", "--answer", f"{question['id']}=true")
    assert (done["status"], done["values"]["answer"]) == ("finished", True)


@pytest.mark.parametrize("count", [1, 3])
def test_a_reader_that_goes_away_is_no_error(answer: Answer, count: int) -> None:
    answer("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 400}')
    process = subprocess.Popen(
        command_line("history", "t"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    for _ in range(count):
        assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() in (0, 1)  # 0 where everything was written before the reader left


def test_nobody_listening_to_the_progress_does_not_stop_the_run(answer: Answer) -> None:
    process = subprocess.Popen(
        command_line("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 50}'),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("step 1: less")
    process.stderr.close()
    process.wait()
    [thread] = answer("threads")["threads"]
    assert (thread["status"], thread["steps"]) == ("finished", 50)
