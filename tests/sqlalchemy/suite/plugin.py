"""A pytest plugin beside SQLAlchemy's own: the schemas that its tests need, and the tests that are excluded."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.testing import provision

from tests.sqlalchemy.suite.requirements import WITHOUT


@provision.post_configure_engine.for_db("trinity")  # type: ignore[untyped-decorator]
def make_schemas(url: Any, engine: sa.Engine, follower_ident: Any) -> None:
    """Make the schemas that the suite's tests name."""
    with engine.connect() as connection:
        for schema in ("test_schema", "test_schema_2"):
            connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests that are excluded by name."""
    name = f"{item.nodeid.split('::')[1].partition('_trinity')[0]}.{item.name}"
    for start, reason in WITHOUT.items():
        if name.startswith(start):
            pytest.skip(reason)
