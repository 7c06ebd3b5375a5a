"""With a terminal at the other end: questions are asked, tables are drawn, and rich is loaded for that alone."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.cli.calls import Answer, Call, command_line, environment

PROMPT = "leave it open): "


def session(words: list[str], *exchange: str | signal.Signals, prompt: str = PROMPT) -> tuple[int, str]:
    """Run a command on a terminal of its own, typing a line or sending a signal at each prompt.

    Return the exit status and what was shown.
    """
    terminal, end = pty.openpty()
    process = subprocess.Popen(words, env=environment(TERM="xterm"), stdin=end, stdout=end, stderr=end)
    os.close(end)
    shown, typed = "", list(exchange)
    prompts = 0
    while (chunk := _read(terminal)) != b"":
        shown += chunk.decode().replace("\r", "")
        if shown.count(prompt) > prompts and typed:
            prompts += 1
            _react(process, terminal, typed.pop(0))
    os.close(terminal)
    return process.wait(), shown


def _react(process: subprocess.Popen[bytes], terminal: int, reaction: str | signal.Signals) -> None:
    if isinstance(reaction, str):
        os.write(terminal, reaction.encode())
        return
    while process.poll() is None:  # one that comes between the prompt and the read is seen after the read
        process.send_signal(reaction)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


def test_resume_asks_until_nothing_is_open_and_takes_only_json(answer: Answer) -> None:
    answer("run", "flows.py:questions", "--thread", "t", "--input", "{}")
    status, shown = session(command_line("resume", "flows.py:questions", "--thread", "t"), "yes\n", '"yes"\n', "2\n")
    assert status == 0
    assert "ask_a asks:\na?" in shown
    assert "This is not JSON" in shown
    assert answer("show", "t")["values"]["seen"] == ["a yes", "b 2"]


def test_resume_asks_for_a_decision_and_who_makes_it(answer: Answer) -> None:
    answer("run", "flows.py:refunds", "--thread", "t", "--input", '{"n": 5}')
    status, shown = session(command_line("resume", "flows.py:refunds", "--thread", "t"), "yes\n", "approve\nann\n")
    assert status == 0
    assert "give_back asks for approval:\ngive the money back, until " in shown
    assert answer("show", "t")["values"]["answer"] == "refunded 5 for o"


def test_an_empty_line_leaves_a_question_open(answer: Answer) -> None:
    answer("run", "flows.py:questions", "--thread", "t", "--input", "{}")
    status, shown = session(command_line("resume", "flows.py:questions", "--thread", "t"), "\n", "2\n", "\n")
    assert status == 0
    assert "thread t: paused" in shown
    assert [question["node"] for question in answer("show", "t")["questions"]] == ["ask_a"]


@pytest.mark.parametrize("reaction", [signal.SIGINT, "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_ctrl_c_at_a_question_answers_nothing(answer: Answer, reaction: str | signal.Signals) -> None:
    before = answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')
    status, _ = session(command_line("resume", "flows.py:graph", "--thread", "t"), reaction)
    assert status == 130
    assert [q["id"] for q in answer("show", "t")["questions"]] == [q["id"] for q in before["questions"]]


def test_with_json_nothing_is_asked(answer: Answer) -> None:
    answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')
    status, shown = session(command_line("resume", "flows.py:graph", "--thread", "t", "--json"))
    assert (status, PROMPT in shown, '"paused"' in shown) == (0, False, True)


LOADED = (
    "import sys; from stepwell.cli.application import stepwell\n"
    "try: stepwell.main()\n"
    "except SystemExit: print('rich is', 'loaded' if 'rich' in sys.modules else 'not loaded', file=sys.stderr)"
)


@pytest.mark.parametrize(
    ("words", "loaded"), [(["threads"], True), (["threads", "--json"], False), (["version"], False)]
)
def test_rich_is_loaded_to_draw_a_table_and_for_nothing_else(call: Call, words: list[str], loaded: bool) -> None:
    call("run", "flows.py:counts", "--thread", "[bold]t[/bold]", "--input", '{"n": 1}')
    _, shown = session([sys.executable, "-c", LOADED, *words])
    assert f"rich is {'loaded' if loaded else 'not loaded'}" in shown
    assert ("[bold]t[/bold]" in shown) is (words[0] == "threads")


def test_off_a_terminal_rich_is_not_loaded(call: Call) -> None:
    call("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 1}')
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "threads"], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == "rich is not loaded\n"
