"""The version of a step's code, as it is recorded: the same in every process, another after an edit."""

import subprocess
import sys

from stepwell.graph.identity import code_version

SOURCE = """
def step(word):
    return word in {"a", "b", "c", "d", "e", "f"} or [each for each in (lambda: "inner")()]
"""


def version_of(source: str) -> str:
    names: dict[str, object] = {}
    exec(compile(source, "steps.py", "exec"), names)
    return code_version(names["step"])


def test_the_version_is_the_same_in_another_process() -> None:
    code = "from tests.steps.test_code_versions import SOURCE, version_of; print(version_of(SOURCE))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert found == {version_of(SOURCE)}
    assert len(version_of(SOURCE)) == 12


def test_the_version_is_another_once_the_code_or_a_function_written_in_it_is_edited() -> None:
    edits = [SOURCE, SOURCE.replace('"f"', '"g"'), SOURCE.replace("inner", "other"), SOURCE.replace(" or ", " and ")]
    assert len({version_of(source) for source in edits}) == len(edits)
    assert version_of("# moved\n\n" + SOURCE) == version_of(SOURCE)


def test_what_has_no_code_that_can_be_seen_has_no_version() -> None:
    assert code_version(len) == ""
