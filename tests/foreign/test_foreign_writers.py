"""Other engines rewrite and append; Trinity reads, writes and compacts as if they had not (L3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from tests.support.foreign import Other, shown
from tests.support.iceberg import pyiceberg
from trinity import Column, Session, Table

UTC = dt.UTC
COLUMNS = [
    Column("k", "int"),
    Column("w", "bigint"),
    Column("n", "bigint"),
    Column("v", "string"),
    Column("at", "timestamp"),
    Column("gone", "boolean"),
]
KEYED: dict[str, Mapping[str, str]] = {
    "deduplicate": {"watermark-key": "w", "tombstone-key": "gone"},
    "hidden_row_kind": {"watermark-key": "w"},
    "first_row": {"merge-engine": "first-row"},
    "partial_update": {
        "merge-engine": "partial-update",
        "fields.w.sequence-group": "n,v",
        "fields.n.aggregate-function": "sum",
        "fields.v.aggregate-function": "listagg",
    },
    # without an ordering column all row versions tie, and a rewrite by others may lose their order (L3)
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.default-aggregate-function": "max",
        "fields.n.aggregate-function": "sum",
    },
    "ordered_aggregation": {
        "merge-engine": "aggregation",
        "sequence.field": "w",
        "fields.n.aggregate-function": "sum",
        "fields.v.aggregate-function": "listagg",
    },
}
SHORT = (("iceberg", "deduplicate"),)
CASES = [
    pytest.param(fmt, kind, marks=() if (fmt, kind) in SHORT else pytest.mark.full)
    for fmt in ("delta", "iceberg")
    for kind in KEYED
]


def batch(keys: list[int], w: int, gone: bool | None = None) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(keys, pa.int32()),
            "w": pa.array([w] * len(keys), pa.int64()),
            "n": pa.array([k + w for k in keys], pa.int64()),
            "v": pa.array([f"{k}.{w}" for k in keys], pa.string()),
            "at": pa.array([dt.datetime(2024, 1, 1, tzinfo=UTC)] * len(keys), pa.timestamp("us", "UTC")),
            "gone": pa.array([gone] * len(keys), pa.bool_()),
        }
    )


def rewrite(other: Other) -> None:
    """Rewrite all data files, and Iceberg's manifests too."""
    other.rewrite()
    if other.format == "iceberg":
        other(f"CALL iceberg.system.rewrite_manifests('default.{other.table.name.table}')")


class Twins:
    """Two tables with the same row versions: other engines write one of them, too, Trinity alone writes the other."""

    def __init__(self, session: Session, fmt: str, properties: Mapping[str, str]) -> None:
        self.session = session
        self.shared, self.own = (
            session.create_table(
                f"{catalog}.default.{name}", COLUMNS, primary_key=["k"], partition_by=(), properties=properties
            )
            for catalog, name in ((fmt, "shared"), ("parquet", "own"))
        )

    def both(self, step: Callable[[Table], object]) -> None:
        for table in (self.shared, self.own):
            step(table)

    def check(self) -> None:
        if self.own.properties.get("merge-engine") != "first-row":
            assert shown(self.shared) == shown(self.own)
            return
        # all row versions tie: after another engine's rewrite, any version of a key may be the first (L3)
        keys, found = ([r.k for r in t.to_df().orderBy("k").collect()] for t in (self.own, self.shared))
        assert found == keys
        assert all(r.v == f"{r.k}.{r.w}" and r.n == r.k + r.w for r in self.shared.to_df().collect())


@pytest.mark.full
@pytest.mark.parametrize(("fmt", "kind"), CASES, indirect=["fmt"])
def test_rewrites_and_appends_by_others(session: Session, fmt: str, kind: str) -> None:
    twins = Twins(session, fmt, KEYED[kind])
    other = Other(session, twins.shared)
    twins.both(lambda t: t.upsert(batch([*range(10)], 5)))
    twins.both(lambda t: t.upsert(batch([0, 1, 2], 6, gone=True)))
    rewrite(other)  # the log
    twins.both(lambda t: t.compact(full=True))
    twins.both(lambda t: t.upsert(batch([1, 4, 11], 8)))
    rewrite(other)  # base and log into one
    twins.check()
    twins.both(lambda t: t.upsert(batch([0, 4, 5], 3)))  # late rows, folded with the versions that compaction keeps
    other.add(batch([5, 6, 20], 9))
    twins.own.upsert(batch([5, 6, 20], 9))
    twins.check()
    twins.both(lambda t: t.compact())
    twins.both(lambda t: t.compact(full=True))
    twins.both(lambda t: t.upsert(batch([0, 6, 21], 7)))
    twins.check()


@pytest.mark.full
def test_row_changes_by_delta(session: Session) -> None:
    properties = KEYED["deduplicate"]
    table = session.create_table(
        "delta.default.shared", COLUMNS, primary_key=["k"], partition_by=(), properties=properties
    )
    table.upsert(batch([*range(6)], 5))
    table.compact(full=True)
    table.upsert(batch([0, 1], 6))
    Other(session, table)(
        "UPDATE {t} SET v = 'changed' WHERE k IN (1, 2)",
        "DELETE FROM {t} WHERE k = 3",
        "MERGE INTO {t} t USING (SELECT 4 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 'merged', w = 9",
    )
    expected = {0: "0.6", 1: "changed", 2: "changed", 4: "merged", 5: "5.5"}
    assert {r.k: r.v for r in table.to_df().collect()} == expected
    table.upsert(batch([3, 4], 7))
    table.compact(full=True)
    assert {r.k: r.v for r in table.to_df().collect()} == expected | {3: "3.7"}


def test_appends_by_delta_rs_are_refused_there(session: Session) -> None:
    table = session.create_table(
        "delta.default.shared", COLUMNS, primary_key=["k"], partition_by=(), properties=KEYED["deduplicate"]
    )
    with pytest.raises(DeltaError, match="DomainMetadata"):
        write_deltalake(table.location, batch([1], 1), mode="append")
    assert shown(table) == []


def test_appends_by_pyiceberg(session: Session) -> None:
    twins = Twins(session, "iceberg", KEYED["hidden_row_kind"])
    twins.both(lambda t: t.upsert(batch([1, 2, 3], 5)))
    pyiceberg(twins.shared).append(batch([2, 3, 4], 6).cast(required_key()))
    twins.own.upsert(batch([2, 3, 4], 6))
    twins.both(lambda t: t.delete([3]))
    twins.check()
    twins.both(lambda t: t.compact(full=True))
    twins.both(lambda t: t.upsert(batch([3], 4)))
    twins.check()


def required_key() -> pa.Schema:
    schema = batch([], 0).schema
    return schema.set(0, schema.field("k").with_nullable(False))
