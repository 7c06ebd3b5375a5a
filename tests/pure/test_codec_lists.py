"""INV-12 for lists that are put together from the bytes of their elements."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from stepwell.codec import Codec, Registry, joined
from stepwell.errors import CorruptRecordError
from tests.pure.test_codec_roundtrip import LEAVES, containers
from tests.pure.test_codec_sameness import same

CODEC = Codec(Registry())
VALUES = st.recursive(LEAVES, containers, max_leaves=4)


@given(st.lists(st.one_of(VALUES, st.lists(VALUES, max_size=3).map(lambda several: (several,))), max_size=4))
def test_a_list_put_together_is_the_list_of_its_elements(parts: list[Any]) -> None:
    """A tuple stands for what is a list already, whose elements are meant."""
    given = [[CODEC.dumps(part[0])] if _is_group(part) else CODEC.dumps(part) for part in parts]
    meant = [value for part in parts for value in (part[0] if _is_group(part) else [part])]
    assert same(CODEC.loads(joined(given)), meant)


def _is_group(part: Any) -> bool:
    return type(part) is tuple and len(part) == 1 and type(part[0]) is list


@pytest.mark.parametrize("many", [0, 1, 15, 16, 17, (1 << 16) - 1, 1 << 16])
def test_lists_of_any_length_are_put_together(many: int) -> None:
    data = joined([CODEC.dumps(None)] * many)
    assert data == CODEC.dumps([None] * many)
    assert joined([[data], CODEC.dumps(1), [data]]) == CODEC.dumps([None] * many + [1] + [None] * many)


def test_a_value_of_the_deepest_kind_is_read_in_a_list() -> None:
    value: Any = None
    for _ in range(254):
        value = [value]
    assert CODEC.loads(joined([CODEC.dumps([value])])) == [[value]]


def test_what_is_no_list_is_not_put_together() -> None:
    with pytest.raises(CorruptRecordError, match="not those of a list"):
        joined([[CODEC.dumps({})]])
