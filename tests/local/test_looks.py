"""How tables, sessions and results look in a console and in a notebook; what tab completion offers."""

from __future__ import annotations

import trinity
from trinity import Session

DEFINED = """CREATE TABLE iceberg.default.t (id INT, ts TIMESTAMP, gone BOOLEAN, n DECIMAL(9,2) NOT NULL COMMENT '<b>',
    PRIMARY KEY (id, ts)) PARTITIONED BY (days(ts)) TBLPROPERTIES ('watermark-key' = 'ts', 'tombstone-key' = 'gone')"""
LOOKS = """\
Table(iceberg.default.t)
  id    int           key
  ts    timestamp     key, watermark, partition
  gone  boolean       tombstone
  n     decimal(9,2)  not null
  partitioned by days(ts)
  version 1, 0 rows in 0 files"""


def test_a_table_shows_its_columns_and_their_roles(local: Session) -> None:
    local.sql(DEFINED)
    table = local.table("iceberg.default.t")
    assert repr(table) == LOOKS
    html = table._repr_html_()
    assert "<td>key, watermark, partition</td>" in html
    assert "<td>&lt;b&gt;</td>" in html
    rows = table.describe().to_arrow().to_pylist()
    assert [(row["column"], row["nullable"], row["role"]) for row in rows][2:] == [
        ("gone", True, "tombstone"),
        ("n", False, ""),
    ]


def test_rows_are_told_by_statistics(local: Session, local_fmt: str) -> None:
    rows = [{"k": 1, "a": 1}, {"k": 1, "a": 2}]
    options = {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"}
    table = local.create_table(f"{local_fmt}.default.t", rows, primary_key=["k"], properties=options)
    assert repr(table).splitlines()[1:3] == ["  k  bigint  key", "  a  bigint  sum"]
    assert repr(table).endswith(f"version {table.version}, 2 row versions in 1 file")
    table.compact(full=True)
    assert repr(table).endswith(f"version {table.version}, 1 row in 1 file")
    plain = local.create_table(f"{local_fmt}.default.plain", rows)
    assert repr(plain).endswith("2 rows in 1 file")


def test_what_is_gone_still_has_a_name(local: Session) -> None:
    table = local.create_table("t", [{"k": 1}])
    local.drop_table("t")
    assert repr(table) == "Table(parquet.default.t): TABLE_NOT_FOUND"
    local.close()
    assert repr(table) == table._repr_html_() == "Table(parquet.default.t): INVALID_ARGUMENTS"
    assert "INVALID_ARGUMENTS" in local._repr_html_()


def test_a_session_shows_its_catalogs_and_tables(local: Session) -> None:
    local.create_table("orders", [{"k": 1}])
    assert repr(local).startswith("Session(parquet.default; catalogs ")
    html = local._repr_html_()
    assert "<td>iceberg</td><td>iceberg</td>" in html
    assert "<td>parquet.default.orders</td>" in html


def test_results_are_tables_in_a_notebook(local: Session) -> None:
    table = local.create_table("t", [{"k": 1}], primary_key=["k"])
    done = table.upsert({"k": 2})
    assert "<th>version</th><th>rows</th>" in done._repr_html_()
    for result in (table.update("k = 1", {"k": "3"}), table.vacuum(), table.health(), table.history()):
        assert "<table" in str(result._repr_html_())


def test_completion_offers_the_api_alone() -> None:
    assert dir(trinity) == sorted([*trinity.__all__, "__version__"])
