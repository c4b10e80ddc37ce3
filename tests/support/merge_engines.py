"""Tables of the merge engines: how tests make and read them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from trinity import Session, Table


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in table.to_df().collect()), key=str)


def make(session: Session, fmt: str, columns: str, **options: str) -> Table:
    given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    session.sql(f"CREATE TABLE {fmt}.default.t ({columns}, PRIMARY KEY (k)) TBLPROPERTIES ({given})")
    return session.table(f"{fmt}.default.t")


def put(table: Table, *versions: dict[str, Any]) -> None:
    names = [c.name for c in table.definition.visible]
    kinds = [c.to_arrow() for c in table.definition.visible]
    table.upsert(pa.Table.from_pylist([{n: v.get(n) for n in names} for v in versions], pa.schema(kinds)))
