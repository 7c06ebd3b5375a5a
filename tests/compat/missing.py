"""What a sliced test gets for a name that Stepwell does not have: harmless in annotations, it fails whoever uses it."""

from __future__ import annotations

from typing import Any, NoReturn


class NameNotProvidedError(Exception):
    """The package under test has no such name. A class of this kit, so that no test can expect it."""


class Missing:
    """Stands in the place of a name that is not there."""

    def __init__(self, what: str) -> None:
        self._what = what

    def _used(self, *args: object, **options: object) -> NoReturn:
        raise NameNotProvidedError(f"Stepwell does not have {self._what}")

    __call__ = __getitem__ = __iter__ = __enter__ = __instancecheck__ = _used

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._used()

    def __or__(self, other: object) -> type[Any]:
        return object

    __ror__ = __or__

    def __mro_entries__(self, bases: object) -> tuple[type[Any], ...]:
        return (object,)

    def __repr__(self) -> str:
        return f"<missing {self._what}>"
