"""The classes the page of supported types shows, as it shows them."""

import enum
import re
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypedDict, TypeVar

import attrs
from pydantic import BaseModel, PrivateAttr

from stepwell import register_type

T = TypeVar("T")


class Colour(enum.Enum):
    RED = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = field(default=0, init=False)


class Pair(NamedTuple):
    left: Point
    right: Point


@attrs.define
class Job:
    name: str
    tries: int = 0


class Doc(BaseModel):
    class Phase(enum.StrEnum):
        DRAFT = "draft"

    phase: Phase
    _seen: int = PrivateAttr(default=0)


class Box(BaseModel, Generic[T]):
    content: T


class Refused(Exception):
    def __init__(self, step: str, *, code: int) -> None:
        super().__init__(f"{step} refused with {code}")
        self.code = code


class State(TypedDict):
    colour: Colour
    right: Right
    pair: Pair | None
    job: Job
    doc: Doc
    box: Box[Point]
    error: Refused | None
    pattern: re.Pattern[str]


@register_type
class Label(str):
    pass


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents


register_type(Money, dump=lambda money: money.cents, load=Money)
