"""`docs/cli.md` names every command, option and exit status there is, and none that is not."""

import re
import shlex
from pathlib import Path

import click
import pytest

from stepwell.cli.application import COMMANDS, stepwell
from stepwell.cli.exit_status import STATUS_OF
from stepwell.cli.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
EXAMPLES = re.findall(r"^\$ (stepwell .+)$", PAGE, re.M)
GLOBAL = ["--db", "--schema", "--key-file", "--encryption", "--json", "--debug"]


def command(name: str) -> click.Command:
    found = stepwell.get_command(click.Context(stepwell), name)
    assert found is not None
    return found


def options(name: str) -> list[str]:
    found = [option for parameter in command(name).params for option in parameter.opts if option.startswith("--")]
    return [option for option in found if option not in GLOBAL]


def test_every_command_has_its_section_and_no_section_is_left_over() -> None:
    assert [title for title in SECTIONS if title.startswith("`stepwell ")] == [
        f"`stepwell {name}`" for name in COMMANDS
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described_and_none_that_is_not_there(name: str) -> None:
    described = re.findall(r"^\| `(--[a-z-]+)", SECTIONS[f"`stepwell {name}`"], re.M)
    assert sorted(described) == sorted(options(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_the_global_options(name: str) -> None:
    assert {option for parameter in command(name).params for option in parameter.opts} >= set(GLOBAL)


def test_the_global_options_are_described() -> None:
    described = re.findall(r"^\| `(--[a-z-]+)", SECTIONS["Global options"], re.M)
    assert (
        sorted(described)
        == sorted(option for parameter in stepwell.params for option in parameter.opts)
        == sorted(GLOBAL)
    )


def test_every_command_has_an_example_that_parses() -> None:
    assert {shlex.split(example)[1] for example in EXAMPLES} == set(COMMANDS)
    parent = click.Context(stepwell, obj=Settings(), **stepwell.context_settings)
    for example in EXAMPLES:
        name, *words = shlex.split(example)[1:]
        command(name).make_context(name, words, parent=parent)


def test_the_exit_statuses_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \|.*\| (.*) \|$", SECTIONS["Exit status"], re.M)
    described = {code: int(status) for status, codes in rows for code in re.findall(r"`(\w+)`", codes)}
    assert described == STATUS_OF
