"""The change feed where other engines write: their own tables, and Trinity's tables that they change (C1, C3, C5)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.changes import applied, defined_changes, feed, rows_at
from tests.support.foreign import FIRST, KEYED, SECOND, Other, Write, cases, delta_rs
from tests.support.tables import oldest_version
from trinity import Session


@pytest.mark.full
@pytest.mark.parametrize(("connector", "write"), [case for case in cases(delta_rs) if case.values[0] != "parquet"])
@pytest.mark.parametrize("options", [KEYED, pytest.param({}, marks=pytest.mark.full)], ids=["keyed", "plain"])
def test_tables_that_others_wrote(
    session: Session, tmp_path: Path, connector: str, write: Write, options: dict[str, str]
) -> None:
    folder = tmp_path / "theirs"
    write(folder, FIRST)
    table = session.register("theirs", connector, folder, options)
    first = table.splits().version
    write(folder, SECOND)
    write(folder, FIRST.slice(0, 1))
    assert feed(table, first) == defined_changes(table, first, table.splits().version)
    assert applied(rows_at(table, first), feed(table, first)) == rows_at(table)


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["delta", "iceberg"], indirect=True)
def test_own_tables_that_others_change(session: Session, fmt: str) -> None:
    options = "TBLPROPERTIES ('watermark-key' = 'w')"
    session.sql(f"CREATE TABLE {fmt}.default.t (k INT, w BIGINT, v STRING, PRIMARY KEY (k)) {options}")
    table, other = session.table(f"{fmt}.default.t"), Other(session, session.table(f"{fmt}.default.t"))
    first = oldest_version(table)

    def put(*rows: tuple[int, int, str]) -> None:
        columns = zip(*rows, strict=True)
        kinds = zip(("k", "w", "v"), columns, (pa.int32(), pa.int64(), pa.string()), strict=True)
        table.upsert(pa.table({name: pa.array(values, kind) for name, values, kind in kinds}))

    put((1, 10, "a"), (2, 10, "b"))
    put((1, 20, "c"), (3, 10, "d"))
    session.sql(f"UPDATE {table.name} SET v = 'u' WHERE k = 2")
    before, middle = feed(table, first), table.splits().version
    other.rewrite()
    rewritten = table.splits().version
    assert rewritten > middle
    assert feed(table, first) == before == defined_changes(table, first, rewritten)
    other.append(k=2, w=30, v="theirs")
    put((3, 5, "late"), (4, 1, "e"))
    if fmt == "delta":
        other("DELETE FROM {t} WHERE k = 4", "UPDATE {t} SET v = 'x' WHERE w = 30")
    last = table.splits().version
    assert feed(table, rewritten) == defined_changes(table, rewritten, last)
    assert feed(table, first) == defined_changes(table, first, last)
