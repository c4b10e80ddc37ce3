"""Many rows of parameters for one INSERT, without a backend: the statements, their types, and the row that fails."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinity.errors import TrinityError
from trinity.journal.backends.postgres.batches import as_query
from trinity.journal.backends.warehouse.arrays import array_of
from trinity.journal.batches import RowError, batch_of, check_counts, first_failing
from trinity.journal.tables import JournalColumn, JournalTable

pytestmark = pytest.mark.inner


@pytest.mark.parametrize("dialect", ["spark", "postgres"])
@pytest.mark.parametrize(
    ("text", "target", "columns", "items"),
    [
        ("INSERT INTO t VALUES (?,?)", "t", [], ["?", "?"]),
        ("insert into a.t(x, y)values( ? , upper(?)||'?' ) ; -- end", "a.t", ["x", "y"], ["?", "upper(?)||'?'"]),
        (
            "INSERT INTO t (a) VALUES (CASE WHEN ? > 0 THEN f(?, 1) END)",
            "t",
            ["a"],
            ["CASE WHEN ? > 0 THEN f(?, 1) END"],
        ),
        ("INSERT INTO t VALUES (DEFAULT, -1, ?::int)", "t", [], ["DEFAULT", "-1", "?::int"]),
    ],
)
def test_an_insert_of_one_row_is_a_batch(
    text: str, target: str, columns: list[str], items: list[str], dialect: str
) -> None:
    found = batch_of(text, dialect)
    assert found is not None
    texts = [item.piece.text for item in found.items]
    assert (found.target, [c.name for c in found.columns], texts) == (target, columns, items)
    assert sum(i.count for i in found.items) == text.replace("'?'", "").count("?")


@pytest.mark.parametrize("dialect", ["spark", "postgres"])
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (?), (?)", "INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (?) RETURNING a", "INSERT INTO t SELECT ?", "INSERT INTO t VALUES ((SELECT ?))",
        "INSERT INTO t DEFAULT VALUES", "INSERT INTO t AS x VALUES (?)", "INSERT OVERWRITE t VALUES (?)",
        "INSERT INTO t BY NAME SELECT ? AS a", "INSERT INTO t VALUES (*)", "INSERT INTO t VALUES (t.*)",
        "INSERT INTO t VALUES (DISTINCT ?)", "INSERT INTO t VALUES (row_number() OVER ())", "INSERT INTO t VALUES ()",
        "INSERT INTO t VALUES (?,)", "INSERT INTO t", "WITH w AS (SELECT 1) INSERT INTO t VALUES (?)",
        "UPDATE t SET a = ?", "DELETE FROM t WHERE a = ?", "SELECT ?",
    ],
)  # fmt: skip
def test_any_other_statement_is_none(text: str, dialect: str) -> None:
    assert batch_of(text, dialect) is None


@given(st.integers(1, 300), st.data())
def test_the_first_row_that_fails_is_found(count: int, data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.integers(1, count), max_size=5))
    tried: list[int] = []

    def attempt(rows: int) -> None:
        tried.append(rows)
        if any(b <= rows for b in bad):
            raise TrinityError("BAD_DATA", "no")

    found = first_failing(count, attempt)
    assert (found.row if found is not None else None) == min(bad, default=None)
    assert len(tried) <= count.bit_length() + 1


def test_a_list_of_another_length_is_named() -> None:
    check_counts([(1, 2), (3, 4)], 2)
    with pytest.raises(RowError, match=r"Row 2 of 3: .*2 parameters, and 1 values"):
        check_counts([(1, 2), (3,), (4, 5)], 2)


NOON = dt.datetime(2020, 1, 1, 12)
NEW_YORK = dt.timezone(-dt.timedelta(hours=5))


@pytest.mark.parametrize(
    ("values", "kind", "stored"),
    [
        ([1, None, -5], pa.int64(), [1, None, -5]),
        ([2**63, 1], pa.decimal128(38, 0), [Decimal(2**63), Decimal(1)]),
        ([1, Decimal("2.50")], pa.decimal128(3, 2), [Decimal("1.00"), Decimal("2.50")]),
        ([1, 2.5, Decimal("0.1")], pa.float64(), [1.0, 2.5, 0.1]),
        ([True, None], pa.bool_(), [True, None]),
        (["a", UUID(int=1)], pa.string(), ["a", str(UUID(int=1))]),
        ([b"a", bytearray(b"b"), memoryview(b"c")], pa.binary(), [b"a", b"b", b"c"]),
        ([dt.date(2020, 1, 1)], pa.date32(), [dt.date(2020, 1, 1)]),
        (
            [NOON, NOON.replace(tzinfo=NEW_YORK), dt.date(2020, 1, 1)],
            pa.timestamp("us", "UTC"),
            [t.replace(tzinfo=dt.UTC) for t in (NOON, NOON.replace(hour=17), NOON.replace(hour=0))],
        ),
        ([dt.time(1, 2), None], pa.time64("us"), [dt.time(1, 2), None]),
        ([None, None], pa.null(), [None, None]),
        ([], pa.null(), []),
        ([np.int32(5), np.float64(1.5), 2], pa.float64(), [5.0, 1.5, 2.0]),
        ([np.str_("x"), None], pa.string(), ["x", None]),
    ],
)
def test_values_have_the_types_of_their_literals(values: list[Any], kind: pa.DataType, stored: list[Any]) -> None:
    found = array_of(values, 1, "UTC")
    assert found.type == kind
    assert found.to_pylist() == stored


def test_datetimes_without_zone_are_clocks_unless_others_have_one() -> None:
    gap, twice = dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2024, 10, 27, 2, 30)
    found = array_of([NOON, gap, None, dt.date(2020, 1, 1)], 1, "Europe/Berlin")
    assert found.type == pa.timestamp("us")
    assert found.to_pylist() == [NOON, gap, None, NOON.replace(hour=0)]
    other = NOON.replace(tzinfo=NEW_YORK)
    found = array_of([other, NOON, gap, twice], 1, "Europe/Berlin")
    assert found.type == pa.timestamp("us", "UTC")
    assert [t.hour for t in found.to_pylist()] == [17, 11, 1, 0]
    assert array_of([other, NOON], 1, "+02:00").to_pylist()[1].hour == 10


@pytest.mark.parametrize(
    "values",
    [["a", 1], [True, 1], [b"a", "b"], [1.5, "x"], [2**60 + 1, 0.5], [Decimal("0." + "1" * 20), 0.5], [{1}],
     [Decimal("NaN")], [Decimal("Infinity"), None], [10**40], [Decimal(10**30), Decimal("1E-30")], ["\ud800"],
     [dt.time(1, tzinfo=NEW_YORK)]],
)  # fmt: skip
def test_values_without_a_type_are_refused(values: list[Any]) -> None:
    with pytest.raises(TrinityError) as caught:
        array_of(values, 3, "UTC")
    assert caught.value.code == "TYPE_MISMATCH"


DEPTS = JournalTable(
    "hr", "depts", "hr", "depts_journal", ("deptno",), "version", "subsequent", "BIGINT",
    columns=tuple(
        JournalColumn(name, kind, kind)
        for name, kind in [
            ("deptno", "integer"), ("version", "bigint"), ("name", "character varying"), ("tags", "integer[]"),
            ("subsequent", "bigint"),
        ]
    ),
)  # fmt: skip


def test_rows_for_postgresql_are_arrays_without_a_length() -> None:
    found = as_query("INSERT INTO depts VALUES (?,?)", DEPTS, [(1, "a"), (2, None)])
    assert found is not None
    assert found[0] == (
        "INSERT INTO depts (deptno, name) SELECT trinity_parameter_1, trinity_parameter_2 FROM "
        "unnest(CAST(? AS integer[]), CAST(? AS text[])) AS trinity_parameters "
        "(trinity_parameter_1, trinity_parameter_2)"
    )
    assert found[1] == [[1, 2], ["a", None]]
    found = as_query("INSERT INTO depts (name, tags, deptno) VALUES ('x', DEFAULT, ?)", DEPTS, [(1,), (2,)])
    assert found is not None
    assert found[0].startswith("INSERT INTO depts (name, deptno) SELECT 'x', trinity_parameter_1 FROM unnest(")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("INSERT INTO depts VALUES (?, upper(?))", [(1, "a"), (2, "b")]),
        ("INSERT INTO depts VALUES (?, ?, ?)", [(1, "a", [1]), (2, "b", [2])]),  # unnest() would flatten them
        ("INSERT INTO depts VALUES (?, ?)", [(1, "a"), (2, 5)]),
        ("INSERT INTO depts (deptno, version) VALUES (?, ?)", [(1, 1), (2, 2)]),
        ("INSERT INTO depts (deptno) VALUES (DEFAULT)", [(), ()]),
    ],
)
def test_what_is_left_to_single_statements(text: str, rows: list[tuple[Any, ...]]) -> None:
    assert as_query(text, DEPTS, rows) is None
