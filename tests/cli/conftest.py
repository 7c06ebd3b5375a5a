"""The fixtures of the command line's tests: a folder of its own, and callers."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stepwell.cli.application import stepwell as application
from tests.cli.calls import Answer, Call, Work, Working, command_line, environment, placed


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a test: it holds the default database, and imports leave no trace in `sys.path`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("WITNESS", str(tmp_path / "witness"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the demo leaves its folder to the user
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def call() -> Call:
    """Call the command line in this process."""

    def call(*words: str, status: int = 0) -> Result:
        result = CliRunner().invoke(application, placed(*words))
        assert result.exit_code == status, (result.output, result.exc_info)
        return result

    return call


@pytest.fixture
def answer(call: Call) -> Answer:
    """Call a command with --json and return what it printed."""

    def answer(*words: str, status: int = 0) -> Any:
        return json.loads(call(*words, "--json", status=status).stdout)

    return answer


@pytest.fixture
def work() -> Iterator[Work]:
    """Start a command as a process and return once its node `hangs` is at work."""
    started: list[subprocess.Popen[str]] = []

    def work(*words: str) -> Working:
        process = subprocess.Popen(
            command_line(*words),
            env=environment(HANG="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        return Working(process)

    yield work
    for process in started:
        process.kill()
        process.communicate()
