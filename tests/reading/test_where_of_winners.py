"""A predicate that may differ between the versions of a key is tested on merged rows alone (L9)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from trinity import Column, Session
from trinity.engine.reading.plan import plan_read
from trinity.spi import DataFile, SplitSource, TableDefinition, Tier

COLUMNS = (Column("k", "int", nullable=False), Column("s", "string", nullable=False), Column("v", "string"))
TABLE = TableDefinition("default", "t", COLUMNS, ("k", "s"))
FILES = (DataFile("/t/base", 1, 9, Tier.BASE, 1), DataFile("/t/log", 1, 9, Tier.LOG, 2))


@pytest.mark.inner
@pytest.mark.parametrize(
    ("where", "below"),
    [
        ("k > 0", True),
        ("k IN (1, 2) OR NOT k + 1 <=> -4 % 3", True),
        ("K BETWEEN 2 AND 5 AND (s LIKE 'a!%' ESCAPE '!' OR s IS NULL)", True),
        ("CAST(s AS DATE) >= DATE '2024-01-01' - INTERVAL 1 DAY", True),
        ("true", True),
        ("k > 0 AND v = 'x'", False),
        ("rand() < 0.5", False),
        ("k > 0 AND rand() < 0.5", False),
        ("k > 0 AND random() < 0.5", False),
        ("input_file_name() LIKE '%log%'", False),
        ("k = 1 OR monotonically_increasing_id() = 1", False),
        ("spark_partition_id() = 0", False),
        ("s < uuid()", False),
        ("shuffle(array(k, 2))[0] = 2", False),
        ("CASE WHEN k > 0 THEN rand() END < 0.5", False),
        ("registered(k) = 1", False),
        ("upper(s) = 'A'", False),  # a session may register a function of its own under this name
    ],
)
def test_what_is_tested_below_the_fold(where: str, below: bool) -> None:
    schema = pa.schema([column.to_arrow() for column in COLUMNS])
    assert (plan_read(SplitSource(2, 0, TABLE, schema, FILES, ()), where).key_filter is not None) == below


def test_a_row_that_was_replaced_stays_so_where_its_successor_does_not_match(session: Session) -> None:
    session.sql("CREATE TABLE parquet.default.t (id INT, v STRING, PRIMARY KEY (id)) TBLPROPERTIES ('bucket' = '1')")
    table, ids = session.table("parquet.default.t"), pa.array(range(200), pa.int32())
    table.upsert(pa.table({"id": ids, "v": ["old"] * 200}))
    table.compact(full=True)
    table.upsert(pa.table({"id": ids, "v": ["new"] * 200}))
    rows = table.to_df(where="id < 0 OR rand() < 0.5").collect()
    assert {row.v for row in rows} == {"new"}
