"""Descriptions of tables and sessions: text for a console, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

import pyarrow as pa

from trinity.display import as_html
from trinity.merge.roles import roles_of
from trinity.spark.frames import small_table
from trinity.spi import SplitSource, TableDefinition, Tier
from trinity.target import Target


def _column_rows(definition: TableDefinition) -> list[tuple[str, str, bool, str, str | None]]:
    """Return for each visible column its name, type, whether it may be NULL, its roles and its comment."""
    roles = roles_of(definition)
    return [
        (c.name, c.type, c.nullable and c.name not in definition.primary_key, ", ".join(roles[c.name]), c.comment)
        for c in definition.visible
    ]


def describe_rows(definition: TableDefinition) -> pa.Table:
    """Return the rows of ``table.describe()``."""
    kinds = {"column": "string", "type": "string", "nullable": "boolean", "role": "string", "comment": "string"}
    return small_table(kinds, _column_rows(definition))


def table_text(table: Target, splits: SplitSource) -> str:
    """Return a table's name, columns with their roles, partitions, version, and number of rows by statistics."""
    rows = [
        (name, kind, " ".join(_words(null, roles))) for name, kind, null, roles, _ in _column_rows(splits.definition)
    ]
    widths = [max(len(row[n]) for row in rows) for n in range(2)]
    lines = [f"  {name:<{widths[0]}}  {kind:<{widths[1]}}  {role}".rstrip() for name, kind, role in rows]
    return "\n".join([f"Table({table.name})", *lines, *(f"  {fact}" for fact in _facts(splits))])


def _words(nullable: bool, roles: str) -> Iterator[str]:
    if roles:
        yield roles
    if not nullable and "key" not in roles.split(", "):
        yield "not null"


def table_html(table: Target, splits: SplitSource) -> str:
    """Return what :func:`table_text` tells, and the comments of columns, as HTML."""
    head = ("column", "type", "nullable", "role", "comment")
    rows = [(name, kind, null, roles, note or "") for name, kind, null, roles, note in _column_rows(splits.definition)]
    facts = "<br>".join(map(escape, _facts(splits)))
    return f"<b>{escape(str(table.name))}</b>\n{as_html(head, rows, False)}{facts}"


def _facts(splits: SplitSource) -> list[str]:
    """Return lines about partitions, version and files."""
    parts = splits.definition.partition_by
    partitioned = [f"partitioned by {', '.join(parts)}"] if parts else []
    return [*partitioned, f"version {splits.version}, {_rows(splits)} in {_number(len(splits.files), 'file')}"]


def _rows(splits: SplitSource) -> str:
    """Return the number of rows by statistics; of row versions, if a keyed table has a log."""
    merged = not splits.definition.keyed or all(f.tier is Tier.BASE for f in splits.files)
    known = all(f.rows_known for f in splits.files)
    count = sum(f.live_rows for f in splits.files)
    what = "row" if merged else "row version"
    return _number(count, what) if known else f"an unknown number of {what}s"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def session_html(current: str, formats: Mapping[str, str], tables: Sequence[str]) -> str:
    """Return a session as HTML: its schema, the formats of its catalogs, and the tables of the schema."""
    catalogs = as_html(("catalog", "format"), list(formats.items()), False)
    return f"<b>Session</b> in {escape(current)}\n{catalogs}{as_html(('table',), [(name,) for name in tables], False)}"
