"""SQLAlchemy's compliance suite. Run it by test_suite.py, beside this folder."""

from __future__ import annotations

from sqlalchemy.testing.suite import *  # noqa: F403

# their tables have a UNIQUE beside the key, of which the dialect warns
for _kind in (ComponentReflectionTest, ComponentReflectionTestExtra):  # noqa: F405
    _kind.__warnings__ = (r"Table .* UNIQUE .* is left out",)
