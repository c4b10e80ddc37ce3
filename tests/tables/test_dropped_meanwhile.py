"""DROP and CREATE beside writers: rows written for a table never become part of another one of its name (L7)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import trinity
from tests.support.threads import at_once
from trinity import Column, Session, TrinityError

ROWS = pa.table({"k": pa.array([1, 2], pa.int32())})
GONE = {"TABLE_NOT_FOUND", "TABLE_ALREADY_EXISTS", "TRANSACTION_CONFLICT"}
TIMES = 20


@pytest.mark.parametrize("fmt", ["parquet", "iceberg", pytest.param("delta", marks=pytest.mark.full)])
def test_l7_appends_race_drop_and_create(fmt: str, warehouse: Path) -> None:
    """Each table that is replaced stays whole, and so does the last one."""
    with trinity.connect(warehouse) as session:
        name = _make(session, fmt)

        def remake() -> None:
            for _ in range(TIMES):
                table = session.table(name)
                table.connector.metadata.drop_table(table.handle)
                _make(session, fmt)

        def append() -> None:
            for _ in range(TIMES * 3):
                try:
                    session.table(name).append(ROWS)
                except TrinityError as error:
                    if error.code not in GONE:
                        raise

        assert at_once([remake, append, append]) == []
        table = session.table(name)
        before = len(table.splits().files)
        assert table.append(ROWS).rows == 2
        assert len(table.splits().files) == before + 1
        assert all(Path(f.path).is_file() for f in table.splits().files)
        assert [e.operation for e in table.connector.metadata.history(table.handle)][:1] == ["create"]


def _make(session: Session, fmt: str) -> str:
    return str(session.create_table(f"{fmt}.default.t", [Column("k", "int")]).name)
