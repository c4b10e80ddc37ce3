"""Connections to Trinity tables with a model, and short ways to run statements."""

from __future__ import annotations

from typing import Any

FACTORY = "org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"


def model(fmt: str, versions: str, tables: dict[str, list[str]], schema: str = "default") -> dict[str, Any]:
    operand = {"jdbcCatalog": fmt, "journalVersionType": versions, "journalTables": tables}
    given = {"name": schema, "type": "custom", "factory": FACTORY, "operand": operand}
    return {"version": "1.0", "defaultSchema": schema, "schemas": [given]}
