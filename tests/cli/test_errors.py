"""The edge of the command line: one line, a code, a status, and no traceback unless one was asked for."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import errors
from stepwell.cli import faults
from stepwell.cli.commands import version
from stepwell.cli.exit_status import STATUS_OF
from tests.cli.calls import Call, environment


def error_classes(root: type[Exception]) -> Iterator[type[Exception]]:
    yield root
    for child in root.__subclasses__():
        yield from error_classes(child)


def test_every_code_has_a_status() -> None:
    ours = {
        kind.code  # type: ignore[attr-defined]
        for kind in error_classes(errors.StepwellError)
        if kind.__module__.startswith((errors.__name__, faults.__name__))
    }
    assert ours - set(STATUS_OF) == set()
    assert set(STATUS_OF) - ours == {"internal_error"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nope"], "error[usage_error]: No such command 'nope'. See stepwell --help."),
        (["shwo"], "error[usage_error]: No such command 'shwo'. Did you mean show? See stepwell --help."),
        (["run"], "error[usage_error]: Missing argument 'MODULE:GRAPH'. See stepwell run --help."),
        (["threads", "--nope"], "error[usage_error]: No such option '--nope'. See stepwell threads --help."),
        (["run", "flows:x"], "error[usage_error]: Missing option '--thread'. See stepwell run --help."),
        (["threads", "--limit", "0"], "error[usage_error]: Invalid value for '--limit': 0 is not in the range x>=1."),
        (["history", "t", "--filter", "x"], "error[usage_error]: --filter takes KEY=JSON, as in --filter step=2, not"),
        (["threads", "--db", ""], "error[usage_error]: Invalid value for '--db': it is empty."),
        (["show", "\udcff"], "error[usage_error]: The arguments are not valid Unicode."),
    ],
    ids=str,
)
def test_a_call_that_makes_no_sense_is_one_line_and_exit_2(call: Call, words: list[str], line: str) -> None:
    result = call(*words, status=2)
    assert result.stdout == ""
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("{", "--input is not JSON"),
        ("null", "--input null is no input"),
        ("@missing.json", "--input @missing.json cannot be read: No such file or directory."),
        ("[" * 100_000, "--input is not JSON"),
    ],
    ids=["half", "null", "missing file", "too deep"],
)
def test_an_input_that_is_none_is_refused(call: Call, folder: Path, given: str, reason: str) -> None:
    result = call("run", "flows.py:graph", "--thread", "t", "--input", given, status=2)
    assert result.stderr.startswith(f"error[usage_error]: {reason}")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("thread_id", ["", " ", "x" * 513])
def test_a_thread_id_that_is_none_is_refused(call: Call, thread_id: str) -> None:
    result = call("run", "flows.py:graph", "--thread", thread_id, "--input", "{}", status=2)
    assert result.stderr.startswith("error[invalid_config]: ")


def test_debug_shows_the_traceback_and_the_line_stays_last(call: Call) -> None:
    result = call("run", "flows.py:fails", "--thread", "t", "--input", "{}", "--debug", status=1)
    assert "Traceback (most recent call last)" in result.stderr
    assert ", in broken\n" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error[node_failed]: ")


def test_a_bug_of_ours_is_one_line_too(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise LookupError("surprise")

    monkeypatch.setattr(version, "_installed", fail)
    result = call("version", status=70)
    assert result.stderr == (
        "error[internal_error]: LookupError: surprise. This is a bug in Stepwell; --debug shows where.\n"
    )


def test_without_a_command_there_is_help(call: Call) -> None:
    assert call().stdout == call("--help").stdout
    assert "--db FILE" in call("show", "-h").stdout


def run_python(program: str) -> Any:
    return subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=False
    )


def test_without_click_it_says_what_to_install() -> None:
    done = run_python("import sys; sys.modules['click'] = None; from stepwell.cli import main; sys.exit(main())")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "pip install 'stepwell[cli]'\n")


def test_importing_the_package_imports_no_click() -> None:
    done = run_python("import sys, stepwell.cli; print(sorted({'click', 'rich', 'apsw'} & set(sys.modules)))")
    assert done.stdout == "[]\n"
