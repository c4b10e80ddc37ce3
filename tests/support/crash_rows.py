"""Rows for the tables of crash tests, statements that change them, and the rows afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from trinity import Column, Session, Table

Row = tuple[int, int, bool, str]
"""id, ts, deleted, v."""

FIRST: list[Row] = [(i, 10, False, f"first {i}") for i in range(40)]
SECOND: list[Row] = [(i, 20, i % 4 == 0, f"second {i}") for i in range(0, 60, 2)]
BATCH: list[Row] = [
    *[(i, 30, i % 5 == 0, f"batch {i}") for i in range(0, 70, 3)],
    *[(i, 15, False, f"late {i}") for i in range(1, 30, 3)],  # loses where ts 20 is there
]
LATER: list[Row] = [
    (0, 5, False, "too late"),
    (8, 19, False, "too late"),
    (7, 40, False, "newest"),
    (99, 1, False, "new"),
]

MERGE = """MERGE INTO {table} t USING {rows} s ON t.id = s.id
           WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
PLAIN_MERGE = """MERGE INTO {table} t USING {rows} s ON t.id = s.id
                 WHEN MATCHED AND s.deleted THEN DELETE
                 WHEN MATCHED THEN UPDATE SET v = s.v
                 WHEN NOT MATCHED AND NOT s.deleted THEN INSERT *"""


def merged(*commits: list[Row]) -> list[Row]:
    """Return the winners by U1 and U4 in their plainest form: the largest (ts, arrival), unless it is a tombstone."""
    newest: dict[int, Row] = {}
    for row in (row for commit in commits for row in commit):
        if row[0] not in newest or row[1] >= newest[row[0]][1]:
            newest[row[0]] = row
    return sorted(row for row in newest.values() if not row[2])


def plainly_merged(rows: Sequence[Row] = FIRST) -> list[Row]:
    """Return the rows after PLAIN_MERGE with BATCH as its source."""
    batch = {row[0]: row for row in BATCH}
    updated = [(*row[:3], batch[row[0]][3]) if row[0] in batch else row for row in rows]
    kept = [row for row in updated if row[0] not in batch or not batch[row[0]][2]]
    ids = {row[0] for row in rows}
    return sorted([*kept, *(row for row in BATCH if row[0] not in ids and not row[2])])


def values(rows: Iterable[Row]) -> str:
    """Return SQL text that selects these rows, for use as the source of a statement."""
    texts = ", ".join(f"({i}L, {ts}L, {str(deleted).lower()}, '{v}')" for i, ts, deleted, v in rows)
    return f"(SELECT * FROM VALUES {texts} AS x(id, ts, deleted, v))"


def arrow(rows: list[Row]) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("deleted", pa.bool_()), ("v", pa.string())])
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)], schema=schema
    )


def made_victim(session: Session, name: str, *, plain: bool, base: bool = False) -> Table:
    """Make a table from two commits of rows; a keyed table is compacted in full between them if ``base`` is set."""
    columns = [Column("id", "bigint"), Column("ts", "bigint"), Column("deleted", "boolean"), Column("v", "string")]
    if plain:
        table = session.create_table(name, columns)
        table.append(arrow(FIRST[:25]))
        table.append(arrow(FIRST[25:]))
        return table
    options = {"watermark-key": "ts", "tombstone-key": "deleted"}
    table = session.create_table(name, columns, primary_key=["id"], properties=options)
    table.upsert(arrow(FIRST))
    if base:
        table.compact(full=True)
    table.upsert(arrow(SECOND))
    return table
