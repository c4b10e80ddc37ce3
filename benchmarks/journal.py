"""``python -m benchmarks.journal "host=... port=... user=..."``: reads of a journal, or by DISTINCT ON.

Makes and drops the schema ``trinity_bench`` in that database.
"""

from __future__ import annotations

import statistics
import time
from typing import Annotated, Any

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict

from trinity import dbapi

_FACTORY = "org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"
_FILL = """
INSERT INTO trinity_bench.items_journal SELECT k, v, NULL, 'item ' || k || ' ' || v, k * v
FROM generate_series(1, %s) v, generate_series(1, %s) k"""
_BY_HAND = """
SELECT {columns} FROM (SELECT DISTINCT ON (id) id, name, amount, subsequent_version_number
FROM trinity_bench.items_journal ORDER BY id DESC, version_number DESC) AS newest
WHERE subsequent_version_number IS NULL {where}"""
_CASES = {
    "all rows": ("*", ""),
    "an aggregate": ("count(*), max(name), sum(amount)", ""),
    "one key": ("*", "AND id = 77"),
}


def main(
    conninfo: Annotated[str, typer.Argument(help="libpq connection string.")],
    keys: Annotated[int, typer.Option(min=1)] = 10_000,
    versions: Annotated[int, typer.Option(min=1, help="Versions of each key.")] = 100,
    runs: Annotated[int, typer.Option(min=1, help="Rounds; the median counts.")] = 7,
) -> None:
    """Measure reads of a journal; the budget is 1.5."""
    operand = {
        "dataSource": "org.postgresql.ds.PGSimpleDataSource",
        "journalVersionType": "BIGINT",
        "journalTables": {"items": ["id"]},
    }
    schema = {"name": "trinity_bench", "type": "custom", "factory": _FACTORY, "operand": operand}
    with (
        psycopg.connect(conninfo, autocommit=True) as plain,
        _prepared(plain, keys, versions, {"schemas": [schema]}, conninfo) as journalled,
    ):
        for name, (columns, where) in _CASES.items():
            hand = _BY_HAND.format(columns="id, name, amount" if columns == "*" else columns, where=where)
            rewritten = f"SELECT {columns} FROM trinity_bench.items {where.replace('AND', 'WHERE')}"
            ours, theirs = [], []
            for _ in range(runs):  # in turns: other work disturbs both halves
                ours.append(_seconds(journalled, rewritten))
                theirs.append(_seconds(plain, hand))
            print(f"{name:14} {statistics.median(ours) / statistics.median(theirs):5.2f}x  budget 1.5", flush=True)
        plain.execute("DROP SCHEMA trinity_bench CASCADE")


def _prepared(
    plain: psycopg.Connection[Any], keys: int, versions: int, model: dict[str, Any], conninfo: str
) -> dbapi.Connection:
    plain.execute("DROP SCHEMA IF EXISTS trinity_bench CASCADE")
    plain.execute("CREATE SCHEMA trinity_bench")
    plain.execute(
        "CREATE TABLE trinity_bench.items_journal (id INT, version_number BIGINT DEFAULT 1, "
        "subsequent_version_number BIGINT, name TEXT, amount BIGINT, PRIMARY KEY (id, version_number))"
    )
    plain.execute(_FILL, (versions, keys))
    plain.execute("VACUUM ANALYZE trinity_bench.items_journal")
    options: dict[str, Any] = conninfo_to_dict(conninfo)
    return dbapi.connect(model, autocommit=True, **options)


def _seconds(connection: Any, text: str) -> float:
    started = time.perf_counter()
    connection.execute(text).fetchall()
    return time.perf_counter() - started


if __name__ == "__main__":
    typer.run(main)
