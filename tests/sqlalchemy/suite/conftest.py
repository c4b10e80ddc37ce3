"""SQLAlchemy's own plugin for pytest, which a run of this folder alone has."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy import Engine  # noqa: E402 - after assertions are rewritten, as below
from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

pytest_plugins = ["tests.sqlalchemy.suite.left_out"]


@provision.post_configure_engine.for_db("trinity")
def _with_second_schema(url: object, engine: Engine, follower_ident: object) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS test_schema")
