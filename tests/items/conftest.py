"""What the tests of the item store share: readable failures of the imported suite."""

import pytest

pytest.register_assert_rewrite("stepwell.testing.item_suite")
