"""Columns whose names SQL wants quoted: dots, backticks, letters beyond ASCII."""

from __future__ import annotations

import pyarrow as pa
import pytest

from trinity import Column, Session

KEY, TIME, VALUE = "k.1", "w`s", "ünï-x"


@pytest.mark.parametrize("partitioned", [False, pytest.param(True, marks=pytest.mark.full)])
def test_names_that_want_quotes(session: Session, tiered_fmt: str, partitioned: bool) -> None:
    table = session.create_table(
        f"{tiered_fmt}.default.odd",
        [Column(KEY, "int"), Column(TIME, "bigint"), Column(VALUE, "string")],
        [KEY],
        partition_by=[KEY] if partitioned else [],
        properties={"watermark-key": TIME},
    )
    key, time, value = (f"`{name.replace('`', '``')}`" for name in (KEY, TIME, VALUE))

    def put(*rows: tuple[int, int, str]) -> None:
        table.upsert(pa.table(dict(zip((KEY, TIME, VALUE), map(list, zip(*rows, strict=True)), strict=True))))

    def read(where: str | None = None) -> set[tuple[object, ...]]:
        return {tuple(r) for r in table.to_df(where=where).collect()}

    put((1, 1, "a"), (2, 2, "b"), (3, 1, "c"))
    put((1, 2, "a2"), (2, 1, "late"))
    for full in (False, True):
        table.compact(full=full)
        assert read() == {(1, 2, "a2"), (2, 2, "b"), (3, 1, "c")}
    put((4, 1, "d"), (3, 0, "late"))
    assert read(f"{key} >= 3 AND {value} <> 'x'") == {(3, 1, "c"), (4, 1, "d")}
    session.sql(f"USE {tiered_fmt}.default")
    session.sql(f"UPDATE odd SET {value} = concat({value}, '!') WHERE {key} = 1")
    session.sql(
        f"MERGE INTO odd t USING (VALUES (2, 'm'), (5, 'e')) s(id, {value}) ON t.{key} = s.id WHEN MATCHED THEN "
        f"UPDATE SET {value} = s.{value} WHEN NOT MATCHED THEN INSERT ({key}, {time}, {value}) "
        f"VALUES (s.id, 1, s.{value})"
    )
    session.sql(f"DELETE FROM odd WHERE {key} = 3 OR {value} = 'none'")
    table.delete([4])
    assert read() == {(1, 2, "a2!"), (2, 2, "m"), (5, 1, "e")}
    table.compact(full=True)
    assert read() == {(1, 2, "a2!"), (2, 2, "m"), (5, 1, "e")}
