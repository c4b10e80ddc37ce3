"""SQLAlchemy's dialect of Trinity, ``trinity://``: engines, models, reflection, upserts."""

from __future__ import annotations

from contextlib import suppress

from trinity.sqlalchemy.dialect import TrinityDialect
from trinity.sqlalchemy.types import MAP, STRUCT, TINYINT
from trinity.sqlalchemy.upsert import Upsert, upsert

with suppress(ModuleNotFoundError):  # Alembic may not be there
    from trinity.sqlalchemy import migrations  # noqa: F401 - which registers itself

__all__ = ["MAP", "STRUCT", "TINYINT", "TrinityDialect", "Upsert", "upsert"]
