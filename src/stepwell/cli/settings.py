"""The global options, accepted before and after the subcommand, and what was said with them.

The rule: an option given in both places means what was said last, and no command has a global option of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from stepwell.savers.places import shown_place

DEFAULT_DB = "stepwell.db"
KEY_VARIABLE = "STEPWELL_KEY"
"""The environment variable that holds the keys of an encrypted database, as a key file does."""
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass
class Settings:
    """What holds for a whole call of the command line."""

    db: str | None = None
    json: bool = False
    debug: bool = False
    key_file: str | None = None
    encryption: str | None = None
    schema: str | None = None

    @property
    def path(self) -> str:
        """The database: a file, or the address of a server, which may hold a password and is never printed."""
        return DEFAULT_DB if self.db is None else self.db

    @property
    def place(self) -> str:
        """The database as it is printed."""
        return shown_place(self.path)

    def resume_command(self, target: str, thread_id: str, question: str | None = None) -> str:
        """Return the line to type to go on with a thread; with a question's id, the one that answers it."""
        words = ["resume", target, "--thread", thread_id]
        words += self._where()
        words += [] if question is None else ["--answer", f"{question}=JSON"]
        return f"{_program()} {shlex.join(words)}"

    def approve_command(self, thread_id: str, question: str) -> str:
        """Return the line to type to let an effect happen that waits for a decision."""
        words = ["approve", thread_id, question, "--by", "WHO"]
        return f"{_program()} {shlex.join(words + self._where())}"

    def _where(self) -> list[str]:
        given = {
            "--db": self.db and self.place,
            "--schema": self.schema,
            "--key-file": self.key_file,
            "--encryption": self.encryption,
        }
        return [word for option, value in given.items() if value is not None for word in (option, value)]

    def repair_command(self, thread_id: str) -> str:
        """Return the line to type to go on with a damaged thread."""
        return f"{_program()} {shlex.join(['repair', thread_id, *self._where()])}"


def _program() -> str:
    """Return what the user typed to get here: `stepwell`, or `python -m stepwell`."""
    context = click.get_current_context(silent=True)
    name = context.find_root().info_name if context is not None else None
    return name or "stepwell"


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value == "":
        raise click.BadParameter("it is empty.", context, parameter)
    if value:
        assert parameter.name is not None
        setattr(context.ensure_object(Settings), parameter.name, value)


_OPTIONS = (
    click.option(
        "--db",
        metavar="FILE",
        expose_value=False,
        callback=_keep,
        help=f"The database, or postgresql://... [{DEFAULT_DB}].",
    ),
    click.option(
        "--key-file", metavar="FILE", expose_value=False, callback=_keep, help=f"Its keys, `ID=KEY` [${KEY_VARIABLE}]."
    ),
    click.option(
        "--encryption", metavar="MODULE:NAME", expose_value=False, callback=_keep, help="Its keys, as an Encryption."
    ),
    click.option(
        "--schema", metavar="NAME", expose_value=False, callback=_keep, help="Its schema, on PostgreSQL [stepwell]."
    ),
    click.option("--json", is_flag=True, expose_value=False, callback=_keep, help="Print JSON, and nothing else."),
    click.option("--debug", is_flag=True, expose_value=False, callback=_keep, help="Show the traceback of an error."),
)


def global_options(command: Command) -> Command:
    """Give a command the global options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
