"""Every type as a key and as a watermark, and types with times as partitions, in several zones (K2, K3, N3)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.edges import CASES, PRIMITIVES, edges, literal, plain, within_python
from tests.support.zones import TIMED, ZONED, frame
from trinity import Column, Session
from trinity.spi import arrow_type


@pytest.mark.full
@pytest.mark.parametrize("column", TIMED)
def test_times_partition(session: Session, fmt: str, zone: str, column: str) -> None:
    """Formats store partition values as text, or as numbers, outside of the data files."""
    rows = within_python(edges()).select(["k", column])
    columns = [Column("k", "int"), Column(column, CASES[column][0])]
    table = session.create_table(f"{fmt}.default.t", columns, partition_by=[column])
    table.append(rows)
    table.append(frame(session, rows))
    for key, value in zip(rows.column("k").to_pylist(), plain(rows.column(column)), strict=True):
        if value is not None:
            where = f"{column} = {literal(CASES[column][0], value)}"
            found = session.sql(f"SELECT k, {column} FROM {table.name} WHERE {where}").toArrow()
            assert found.column("k").to_pylist() == [key] * 2
            assert plain(found.column(column)) == [value] * 2
    session.sql(f"DELETE FROM {table.name} WHERE {column} >= {literal(CASES[column][0], CASES[column][1][0])}")
    found = table.to_df().toArrow()
    wanted = [v for v in plain(rows.column(column)) if v is None or v < CASES[column][1][0]]
    assert sorted(plain(found.column(column)), key=str) == sorted(wanted * 2, key=str)


@pytest.mark.full
@pytest.mark.parametrize(("column", "zone"), [z for z in ZONED if z[0] != "c_boolean"], indirect=["zone"])
def test_every_type_is_a_key(session: Session, fmt: str, zone: str, column: str) -> None:
    kind, given = CASES[column]
    values = [v for n, v in enumerate(given) if not (v == 0 and v in given[:n])]  # -0.0 and 0.0 are one key (K2)
    table = session.create_table(f"{fmt}.default.t", [Column("k", kind), Column("v", "int")], primary_key=["k"])
    keys = pa.array(values, arrow_type(kind))
    table.upsert(pa.table({"k": keys, "v": pa.array([1] * len(values), pa.int32())}))
    table.upsert(frame(session, pa.table({"k": keys, "v": pa.array([2] * len(values), pa.int32())})))
    for _ in range(2):
        found = table.to_df().toArrow()
        read = dict(zip(plain(found.column("k")), found.column("v").to_pylist(), strict=True))
        wanted = {("0.0" if p == "-0.0" else p): 2 for p in plain(keys)}
        assert read == wanted
        table.compact(full=True)
    table.delete(pa.table({"k": keys}))
    assert table.to_df().count() == 0


@pytest.mark.full
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_every_type_is_a_watermark(session: Session, fmt: str, zone: str, engine: str) -> None:
    """The row with the largest value wins, in whichever order rows are written (K3)."""
    for column in PRIMITIVES:
        kind, values = CASES[column]
        options = (
            {"watermark-key": "w"}
            if engine == "deduplicate"
            else {"merge-engine": engine, "fields.w.sequence-group": "v"}
        )
        name = f"{fmt}.default.t_{column}"
        table = session.create_table(
            name, [Column("k", "int"), Column("w", kind), Column("v", "int")], primary_key=["k"], properties=options
        )
        rows = pa.table(
            {
                "k": pa.array([n % 2 for n in range(2 * len(values))], pa.int32()),
                "w": pa.array([v for v in values for _ in range(2)], arrow_type(kind)),
                "v": pa.array([n // 2 for n in range(2 * len(values))], pa.int32()),
            }
        )
        table.upsert(rows.slice(0, 3))
        table.upsert(rows.slice(3))
        order = [(_rank(v), n) for n, v in enumerate(values)]
        best = max(order)[1]
        for _ in range(2):
            assert {r.v for r in table.to_df().select("v").collect()} == {best}, column
            table.compact(full=True)


def _rank(value: Any) -> tuple[bool, Any]:
    return (True, 0) if value != value else (False, value)
