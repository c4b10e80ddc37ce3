"""Tables of the merge engines: how tests make and read them."""

from __future__ import annotations

from trinity import Session, Table


def make(session: Session, fmt: str, columns: str, **options: str) -> Table:
    given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    session.sql(f"CREATE TABLE {fmt}.default.t ({columns}, PRIMARY KEY (k)) TBLPROPERTIES ({given})")
    return session.table(f"{fmt}.default.t")
