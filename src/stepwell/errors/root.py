"""What every error of the tree can do: make its message of its docstring and its fields, and survive a pickle."""

from __future__ import annotations

from typing import Any, ClassVar


class StepwellError(Exception):
    """Something Stepwell refuses or cannot promise. Read `code`, then `fields()`, then the message."""

    code: ClassVar[str] = "stepwell_error"

    def __init__(self, message: str | None = None, /, **fields: Any) -> None:
        self.__dict__.update(fields)
        self._fields = fields
        super().__init__(message if message is not None else self._default_message())

    def _default_message(self) -> str:
        doc = " ".join((type(self).__doc__ or type(self).__name__).split())
        return doc.format_map(Known(self._said()))

    def _said(self) -> dict[str, Any]:
        """Return the fields as the message says them."""
        return self._fields

    def fields(self) -> dict[str, Any]:
        """Return the ids and facts this error was raised with."""
        return dict(self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self.args[0], self._fields)


class UsageError(StepwellError, ValueError):
    """The call cannot be carried out as given."""

    code = "usage_error"


class RunError(StepwellError, RuntimeError):
    """The run could not go on; its thread keeps what was finished."""

    code = "run_error"


class Known(dict[str, Any]):
    """The fields of an error, for its text: one that was not given reads `?`."""

    def __missing__(self, key: str) -> str:
        return "?"


def rebuild(kind: type[StepwellError], message: str, fields: dict[str, Any]) -> StepwellError:
    """Make an error anew, as a pickle asks for it."""
    return kind(message, **fields)
