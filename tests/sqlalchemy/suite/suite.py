"""All of SQLAlchemy's tests of a dialect."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import suite
from sqlalchemy.testing.suite import *  # noqa: F403 - they are collected here


class HasTableTest(suite.HasTableTest):  # type: ignore[no-redef]  # takes its place
    """The suite's tests without their view, which they would make whatever the requirements say."""

    @classmethod
    def define_views(cls, metadata: Any) -> None:
        pass
