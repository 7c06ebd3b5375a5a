"""`stepwell completion`: the script a shell loads, and what it is given when it asks."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from stepwell.cli.application import stepwell as application
from tests.cli.calls import Answer, Call, command_line, environment

VARIABLE = "_STEPWELL_COMPLETE"


def offered(line: str) -> list[str]:
    """Return what the command offers a shell for the last word of a line."""
    asked = {VARIABLE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    result = CliRunner().invoke(application, [], env=asked)
    assert (result.exit_code, result.stderr) == (0, "")
    return [found.partition(",")[2] for found in result.stdout.split()]


@pytest.fixture
def threads(answer: Answer) -> None:
    for name in ("order-1", "order-2", "other one", "$(touch x)"):
        answer("run", "flows.py:counts", "--thread", name, "--input", '{"n": 1}', "--db", "my.db")


def test_commands_options_and_choices_are_completed(folder: Path) -> None:
    assert offered("stepwell th") == ["threads"]
    assert offered("stepwell threads --st") == ["--status"]
    assert offered("stepwell threads --status p") == ["paused"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        "stepwell show --db my.db ",
        "stepwell --db my.db history ",
        "stepwell resume app:graph --db my.db --thread ",
    ],
)
def test_thread_ids_come_from_the_database_on_the_line(threads: None, line: str) -> None:
    assert offered(f"{line}ord") == ["order-2", "order-1"]
    assert offered(line) == ["order-2", "order-1"]  # an id that is more than one plain word is left out


def test_checkpoints_and_runs_are_those_of_the_database(threads: None, answer: Answer) -> None:
    found = answer("history", "order-1", "--db", "my.db")["checkpoints"]
    assert offered("stepwell show --db my.db order-1 ") == [row["checkpoint"] for row in found]
    line = "stepwell fork app:graph --db my.db --thread order-1 --checkpoint "
    assert offered(line) == [row["checkpoint"] for row in found]
    [run] = answer("runs", "order-1", "--db", "my.db")["runs"]
    assert run["run"] in offered("stepwell events --db my.db ")


def test_without_a_database_nothing_is_offered_and_none_is_made(folder: Path) -> None:
    (folder / "diary").write_text("Dear diary, " * 100)
    assert offered("stepwell show ") == []
    assert offered("stepwell show --db nope.db ") == []
    assert offered("stepwell show --db diary ") == []
    assert [path.name for path in folder.iterdir()] == ["diary"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_the_program_and_the_variable(call: Call, answer: Answer, shell: str) -> None:
    script = call("completion", shell).stdout
    assert VARIABLE in script
    assert f"{shell}_complete" in script
    assert answer("completion", shell) == {"shell": shell, "script": script}
    assert call("completion", "csh", status=2).stderr.startswith("error[usage_error]: ")


def test_bash_takes_the_script(threads: None, call: Call, folder: Path) -> None:
    (folder / "bin").mkdir()
    program = folder / "bin" / "stepwell"
    program.write_text(
        "#!/bin/sh\nexec {} -c \"import sys; sys.argv[0] = 'stepwell'; from stepwell.cli import main;"
        ' sys.exit(main())" "$@"\n'.format(*command_line())
    )
    program.chmod(0o755)
    script = 'eval "$(stepwell completion bash)"\nCOMP_WORDS=(stepwell show --db my.db order)\nCOMP_CWORD=4\n'
    script += '_stepwell_completion stepwell\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment(PATH=path), capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["order-2", "order-1"], done.stderr
