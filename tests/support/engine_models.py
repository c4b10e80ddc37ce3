"""The model of the merge engines for tests by hand: tables, commits, and the one row after them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trinity_conformance.model.engine_model import EngineModel
from trinity_conformance.model.shapes import Column, Group, Shape

Cells = tuple[Any, ...]


def shape(text: str, engine: str = "partial-update", groups: Mapping[str, str] | None = None, **more: Any) -> Shape:
    """Return the shape of a table with the columns of a text such as ``k int, a int``; the key is ``k``.

    ``groups`` maps sequence columns to the columns of their sequence group.
    """
    columns = [Column(name, kind) for name, kind in (part.split(maxsplit=1) for part in text.split(", "))]
    found = tuple(Group(tuple(s.split(",")), tuple(c.split(","))) for s, c in (groups or {}).items())
    return Shape(tuple(columns), ("k",), engine=engine, groups=found, **more)


def model(kind: Shape, *commits: list[Cells]) -> EngineModel:
    """Return the model of a table after some commits."""
    found = EngineModel(kind)
    for rows in commits:
        found.upsert(rows)
    return found


def only(found: EngineModel) -> Cells | None:
    """Return the values of the only row, in the order of the table's columns; None without a row."""
    rows = list(found.merged().values())
    assert len(rows) <= 1
    return tuple(rows[0].values()) if rows else None


GROUPWISE = shape(
    "k int, g int, a int, h int, b int, x int, kind string",
    groups={"g": "a", "h": "b"}, remove_on_groups=("g",), row_kind="kind",
)  # fmt: skip
FULL = (1, 2, 5, 2, 5, 1, "+I")
