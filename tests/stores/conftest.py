"""What the store tests share: readable failures of the imported suite."""

import pytest

pytest.register_assert_rewrite("stepwell.testing.store_suite")
