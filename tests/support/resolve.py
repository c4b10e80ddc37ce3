"""A keyed table of numbers with a watermark and a tombstone, in four buckets, for tests of resolves (R1)."""

from __future__ import annotations

import pyarrow as pa

from trinity import Column, Session, Table
from trinity.spi import DataFile, Tier

COLUMNS = [Column("k", "bigint"), Column("ts", "bigint"), Column("gone", "boolean"), Column("v", "string")]
OPTIONS = {"watermark-key": "ts", "tombstone-key": "gone", "bucket": "4"}


def numbers_table(session: Session, fmt: str, **options: str) -> Table:
    """Create the table with further options, or without one that is given as empty."""
    options = {name.replace("_", "-"): value for name, value in options.items()}
    given = {name: value for name, value in {**OPTIONS, **options}.items() if value}
    return session.create_table(f"{fmt}.default.numbers", COLUMNS, primary_key=["k"], properties=given)


def fill(table: Table, start: int, stop: int, ts: int, v: str, gone: bool = False) -> None:
    k = range(start, stop)
    table.upsert(pa.table({"k": k, "ts": [ts] * len(k), "gone": [gone] * len(k), "v": [v] * len(k)}))


def values_by_key(table: Table, version: int | None = None) -> dict[int, str]:
    found = table.to_df(version=version).collect()
    assert len({r.k for r in found}) == len(found)
    return {r.k: r.v for r in found}


def base(table: Table) -> list[DataFile]:
    return [f for f in table.splits().files if f.tier is Tier.BASE]


def expected(*parts: tuple[range, str]) -> dict[int, str]:
    return {k: v for part, v in parts for k in part}
