"""Examples of pages without a marker run without Spark, and print what the page shows."""

from __future__ import annotations

import pytest

from docs.examples import Page, differences, pages, report
from tests.support.page_needs import without_spark


@pytest.mark.parametrize("page", [page for page in pages() if not page.needs], ids=lambda page: page.name)
def test_examples(page: Page) -> None:
    with without_spark():
        different = differences(page, {})
    assert different == [], report(page, different)
