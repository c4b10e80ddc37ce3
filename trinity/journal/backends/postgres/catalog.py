"""Journals in PostgreSQL's catalog: columns, types, defaults, keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import psycopg

from trinity.errors import TrinityError, nearest
from trinity.journal.tables import JournalColumn, JournalModel, JournalTable

_COLUMNS: Final = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, -1), format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attidentity <> ''
            THEN format('nextval(%L::regclass)',
                        pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), a.attname))
            ELSE pg_get_expr(d.adbin, d.adrelid) END,
       a.attgenerated <> '', a.attidentity = 'a', t.typcategory
FROM unnest($1::text[], $2::text[]) AS wanted(s, j)
JOIN pg_namespace n ON n.nspname = wanted.s
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.j AND c.relkind IN ('r', 'p', 'f')
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
ORDER BY n.nspname, c.relname, a.attnum"""

_UNIQUE: Final = """
SELECT n.nspname, c.relname, array_agg(a.attname::text)
FROM unnest($1::text[], $2::text[]) AS wanted(s, j)
JOIN pg_namespace n ON n.nspname = wanted.s
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.j
JOIN pg_index i ON i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey[0:i.indnkeyatts - 1])
GROUP BY n.nspname, c.relname, i.indexrelid"""

_RELATIONS: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = ANY($1::text[]) AND c.relkind IN ('r', 'p', 'f', 'v', 'm')"""

_PATH: Final = "SELECT current_schemas(true)::text[]"


def with_catalog(model: JournalModel, connection: psycopg.Connection[Any]) -> JournalModel:
    """Add the tables' columns and indexes in the backend to the model, and check that it fits.

    Raises:
        TrinityError: CONFIGURATION_INVALID, naming the table and the property that does not fit.
    """
    names = ([t.backend_schema for t in model.tables], [t.journal for t in model.tables])
    with psycopg.RawCursor(connection) as cursor:
        columns: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        for schema, table, *rest in cursor.execute(_COLUMNS, names):
            columns.setdefault((schema, table), []).append(tuple(rest))
        unique: dict[tuple[str, str], list[set[str]]] = {}
        for schema, table, found in cursor.execute(_UNIQUE, names):
            unique.setdefault((schema, table), []).append(set(found))
        relations = cursor.execute(_RELATIONS, [[t.name for t in model.tables]]).fetchall()
        [(path,)] = cursor.execute(_PATH).fetchall()
    users = {backend: user for user, backend in model.schemas.items()}
    return replace(
        model,
        tables=tuple(_table(t, columns, unique) for t in model.tables),
        search_path=tuple(users.get(p, p) for p in path),
        relations=frozenset((users.get(s, s), r) for s, r in relations),
    )


def _table(
    table: JournalTable,
    columns: Mapping[tuple[str, str], list[tuple[Any, ...]]],
    unique: Mapping[tuple[str, str], list[set[str]]],
) -> JournalTable:
    table_name = (table.backend_schema, table.journal)
    rows = columns.get(table_name, [])
    if not rows:
        return replace(table, columns=())
    _check(table, rows)
    found = tuple(
        JournalColumn(name, kind, declared, default, made) for name, kind, declared, default, made, *_ in rows
    )
    guarded = {*table.key, table.version} in unique.get(table_name, [])
    return replace(table, columns=found, guarded=guarded)


def _check(table: JournalTable, rows: list[tuple[Any, ...]]) -> None:
    journal = f"{table.backend_schema}.{table.journal}"
    known = [row[0] for row in rows]
    wanted = [
        *((k, "key") for k in table.key),
        (table.version, "journalVersionField"),
        (table.subsequent, "journalSubsequentVersionField"),
        *((u, "journalUniqueKeys") for key in table.unique_keys for u in key),
    ]
    for name, what in wanted:
        if name not in known:
            raise _invalid(table, what, f"{journal} has no column '{name}'.{nearest(name, known)}")
    for name, kind, declared, _, _, always, category in rows:
        if always:
            problem = (
                f"column '{name}' of {journal} is GENERATED ALWAYS, and every version repeats it; make it BY DEFAULT"
            )
            raise _invalid(table, "journalTables", problem)
        if name in (table.version, table.subsequent):
            fits = category == "N" if table.version_type == "BIGINT" else kind.startswith("timestamp")
            if not fits:
                raise _invalid(
                    table, "journalVersionType", f"{table.version_type} does not fit column '{name}' of type {declared}"
                )
            if "(" in declared and kind.startswith("timestamp") and "(6)" not in declared:
                raise _invalid(
                    table, "journalVersionType", f"column '{name}' of type {declared} is too coarse; use (6)"
                )


def _invalid(table: JournalTable, what: str, problem: str) -> TrinityError:
    return TrinityError(
        "CONFIGURATION_INVALID", f"Model: schema '{table.schema}', table '{table.name}', {what}: {problem}."
    )
