"""docs/cases.md says what the tests say, and no case is without a test."""

import pytest
from table_of_cases import CASES, PAGE, held, page


@pytest.mark.parametrize("number", CASES)
def test_every_case_is_held(number):
    assert held()[number].tests


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/cases/table_of_cases.py"
