"""A plugin for pytest that leaves out what is excluded, and what a session without Spark leaves to Spark."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from sqlalchemy import exc

from tests.sqlalchemy.suite.requirements import EXCLUDED


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is excluded, with its reason."""
    for item in items:
        kind, test = item.nodeid.split("::")[-2].partition("_trinity")[0], item.name.partition("[")[0]
        reason = EXCLUDED.get(f"{kind}::{test}", EXCLUDED.get(kind))
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Take what needs Spark for skipped: the long tier runs it there."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, exc.DBAPIError) and "needs Spark" in str(error.orig):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, "needs Spark")
    return report
