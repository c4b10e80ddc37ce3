"""SQLAlchemy's dialect of Trinity, ``trinity://``: types and upserts for its models and statements."""

from __future__ import annotations

from trinity.sqlalchemy.types import MAP, STRUCT, TINYINT
from trinity.sqlalchemy.upsert import Upsert, upsert

__all__ = ["MAP", "STRUCT", "TINYINT", "Upsert", "upsert"]
