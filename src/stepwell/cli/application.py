"""The command group, and the edge of the command line: whatever goes wrong below ends here as one line and a status.

Not here: what a command does (`commands/`), which status a code has (`exit_status.py`), how an error reads
(`complaints.py`). The rule: a traceback is shown with --debug only, also for a bug of ours.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from keyword import iskeyword
from typing import Any, NoReturn

import click

from stepwell.cli.complaints import complain
from stepwell.cli.exit_status import INTERRUPTED
from stepwell.cli.settings import Settings, global_options

COMMANDS = (
    *("demo", "graph", "run", "resume", "retry", "fork", "signal"),
    *("threads", "runs", "history", "tree", "show", "events", "journal", "effects", "resolve", "approve", "reject"),
    *("copy", "export", "import", "prune", "delete", "stats", "vacuum"),
    *("check", "verify", "repair", "migrate", "rekey", "completion", "version"),
)


class Application(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of a newcomer's day."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        module = importlib.import_module(f"stepwell.cli.commands.{name}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that is not there is answered with those that are called alike."""
        near = [] if args[0] in COMMANDS else get_close_matches(args[0], COMMANDS)
        if near:
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {' or '.join(near)}?", ctx)
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run one call and exit with its status."""
        settings = Settings()
        words = sys.argv[1:] if args is None else list(args)
        extra |= {"obj": settings, "standalone_mode": False}
        try:
            _check_unicode(words)
            status = super().main(words, prog_name, **extra)
        except click.Abort:  # Ctrl-C or the end of the input at a prompt
            status = INTERRUPTED
        except Exception as error:
            status = complain(error, debug=settings.debug)
        sys.exit(status or 0)


def _check_unicode(words: Sequence[str]) -> None:
    """Refuse bytes that are not text: no id, name or JSON can hold them."""
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise click.UsageError("The arguments are not valid Unicode.") from None


@click.group(cls=Application, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@global_options
@click.pass_context
def stepwell(context: click.Context) -> None:
    """Durable execution for Python graphs.

    The global options may also stand after the command.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
