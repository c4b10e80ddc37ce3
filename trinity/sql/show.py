"""SHOW and DESCRIBE."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import TokenType, exp

from trinity.errors import TrinityError
from trinity.merge.properties import shown_properties
from trinity.names import split_name
from trinity.spark.frames import small_table
from trinity.spi import Column, TableDefinition
from trinity.sql.parsing.names import catalog_name, parts, quoted_name
from trinity.sql.queries.query import run_query, run_text
from trinity.sql.queries.references import resolve
from trinity.sql.queries.results import Rows
from trinity.syntax.parse import Statement
from trinity.syntax.quoting import text_literal
from trinity.syntax.reader import Piece, Reader
from trinity.zones import zone_of

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.table import Table


def show(session: Session, statement: Statement) -> Rows:
    """Run SHOW CATALOGS, SCHEMAS, [ALL] TABLES, COLUMNS, PARTITIONS, TBLPROPERTIES and CREATE TABLE.

    Any other SHOW is passed on to Spark.

    Raises:
        TrinityError: CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND, TABLE_NOT_FOUND, SYNTAX_ERROR; INVALID_ARGUMENTS for the
            partitions of a table that has none.
    """
    words = statement.words(3)[1:]
    what, arguments = (words[0] if words else ""), _Arguments(Piece.of(statement), 2)
    if what == "CATALOGS":
        return _names("catalog", arguments.matching(sorted(session.catalogs)))
    if what in ("SCHEMAS", "DATABASES", "NAMESPACES"):
        return _schemas(session, arguments)
    if what == "TABLES":
        return _tables(session, arguments)
    if words == ("ALL", "TABLES"):
        return _all_tables(session, _Arguments(Piece.of(statement), 3))
    if what == "COLUMNS":
        return _columns(session, arguments)
    if what == "PARTITIONS":
        return _partitions(session, arguments)
    if what == "TBLPROPERTIES":
        return _tblproperties(session, arguments)
    if words == ("CREATE", "TABLE"):
        table = session.table(session.table_name(_Arguments(Piece.of(statement), 3).name()))
        return _names("createtab_stmt", [create_statement(table)])
    return run_text(session, statement.text)


class _Arguments(Reader):
    """The words after a SHOW: [IN | FROM] name, [LIKE] 'pattern'."""

    def takes_in(self) -> bool:
        """Step over IN or FROM if it is next; return True if so."""
        return self.take("IN") or self.take("FROM")

    def end(self) -> None:
        """Check that no word follows. Raises SYNTAX_ERROR."""
        if not self.done:
            token = self.tokens[self.at]
            raise TrinityError("SYNTAX_ERROR", f"SHOW: '{token.text}' on line {token.line} is not understood.")

    def matching(self, names: Iterable[str]) -> list[str]:
        """Return the names that match the pattern at the end; all names without a pattern."""
        self.take("LIKE")
        if self.done:
            return list(names)
        token = self.tokens[self.at]
        self.at += token.token_type is TokenType.STRING
        self.end()
        pattern = _pattern(token.text, self.piece.dialect != "spark")
        return [n for n in names if pattern.fullmatch(n)]


def _pattern(like: str, sql_like: bool) -> re.Pattern[str]:
    """Compile the pattern of a SHOW: in Spark's dialect ``*`` and ``|`` are special, in others ``_``; ``%`` in all."""
    meaning = {"%": ".*", "_": "."} if sql_like else {"%": ".*", "*": ".*", "|": "|"}
    return re.compile("|".join(["".join(meaning.get(c, re.escape(c)) for c in like)]), re.IGNORECASE | re.DOTALL)


def _names(column: str, names: Iterable[str]) -> Rows:
    return small_table({column: "string"}, [(n,) for n in names])


def _schemas(session: Session, arguments: _Arguments) -> Rows:
    catalog = arguments.name() if arguments.takes_in() else (session.current_catalog,)
    connector = session.connector(catalog_name(catalog))
    return _names("namespace", arguments.matching(connector.metadata.list_schemas()))


def _tables(session: Session, arguments: _Arguments) -> Rows:
    given = arguments.name() if arguments.takes_in() else (session.current_catalog, session.current_schema)
    catalog, schema = session.schema_name(given)
    metadata = session.catalogs[catalog].metadata
    if schema not in metadata.list_schemas():
        raise session.table_missing(session.table_name([catalog, schema, "_"]))
    rows = [(schema, name, False) for name in arguments.matching(session.list_tables(catalog, schema))]
    return small_table({"namespace": "string", "tableName": "string", "isTemporary": "boolean"}, rows)


def _all_tables(session: Session, arguments: _Arguments) -> Rows:
    names = [split_name(name) for name in session.tables(all_schemas=True)]
    wanted = {*arguments.matching(name for *_, name in names)}
    rows = [(*name, False) for name in names if name[-1] in wanted]
    return small_table(
        {"catalog": "string", "namespace": "string", "tableName": "string", "isTemporary": "boolean"}, rows
    )


def _columns(session: Session, arguments: _Arguments) -> Rows:
    if not arguments.takes_in():
        raise TrinityError("SYNTAX_ERROR", "SHOW COLUMNS names its table: SHOW COLUMNS IN t.")
    name = arguments.name()
    if arguments.takes_in():
        name = (*arguments.name(), name[-1])
    return _names("col_name", session.table(session.table_name(name)).columns)


def _partitions(session: Session, arguments: _Arguments) -> Rows:
    table = session.table(session.table_name(arguments.name()))
    arguments.end()
    if not table.definition.partition_by:
        raise TrinityError("INVALID_ARGUMENTS", f"Table '{table.name}' is not partitioned.")
    files = [f for f in table.splits().files if f.live_rows or not f.rows_known]
    return _names("partition", sorted({_partition_path(f.partition, session.timezone) for f in files}))


def _partition_path(values: Mapping[str, Any], timezone: str) -> str:
    """Return partition values as Hive's folders are named: ``day=2024-01-01/region=eu``."""
    return "/".join(f"{_escaped(name)}={_escaped(_value_text(v, timezone))}" for name, v in values.items())


def _value_text(value: Any, timezone: str) -> str:
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(zone_of(timezone)).replace(tzinfo=None)
    return value.hex() if isinstance(value, bytes) else str(value)


def _escaped(text: str) -> str:
    """Return a text with a ``%`` code for each character that Hive escapes in folder names."""
    return "".join(f"%{ord(c):02X}" if ord(c) < 32 or c in "\"#%'*/:=?\\\x7f{[]^" else c for c in text)


def _tblproperties(session: Session, arguments: _Arguments) -> Rows:
    table = session.table(session.table_name(arguments.name()))
    return small_table({"key": "string", "value": "string"}, sorted(shown_properties(table.definition).items()))


def create_statement(table: Table) -> str:
    """Return a CREATE TABLE in Spark's spelling that creates this table again, without its rows."""
    definition = table.definition
    lines = [_column_line(c) for c in definition.visible]
    if definition.primary_key:
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted_name, definition.primary_key))}) NOT ENFORCED")
    if not definition.external:
        lines += [f"CONSTRAINT {quoted_name(c.name)} CHECK ({_on_own_lines(c.expression)})" for c in definition.checks]
    name = ".".join(map(quoted_name, (table.name.catalog, table.name.schema, table.name.table)))
    text = f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + ")"
    text += f"\nUSING {table.format}"
    if definition.partition_by:
        fields = (str(replace(f, column=quoted_name(f.column))) for f in definition.partition_fields)
        text += f"\nPARTITIONED BY ({', '.join(fields)})"
    properties = shown_properties(definition)
    comment = properties.pop("comment", None)
    if comment is not None:
        text += f"\nCOMMENT {text_literal(comment)}"
    if definition.external:
        text += f"\nLOCATION {text_literal(table.location)}"
    if properties:
        listed = ",\n  ".join(f"{text_literal(k)} = {text_literal(v)}" for k, v in sorted(properties.items()))
        text += f"\nTBLPROPERTIES (\n  {listed})"
    return text


def _column_line(column: Column) -> str:
    text = f"{quoted_name(column.name)} {column.type}"
    if not column.nullable:
        text += " NOT NULL"
    if column.default is not None:
        text += f" DEFAULT {_on_own_lines(column.default)}"
    if column.comment is not None:
        text += f" COMMENT {text_literal(column.comment)}"
    return text


def _on_own_lines(expression: str) -> str:
    """Return an expression after which text may follow: a line break ends a ``--`` comment that it may contain."""
    return f"{expression}\n" if "--" in expression else expression


def describe(session: Session, statement: Statement) -> Rows:
    """Run DESCRIBE [TABLE] [EXTENDED | FORMATTED] t: col_name, data_type and comment, as in Spark.

    Queries, temporary views and tables of Spark's own are passed on to Spark.
    """
    node = statement.tree
    assert isinstance(node, exp.Describe)
    if not isinstance(node.this, exp.Table):
        return run_query(session, statement)
    named = parts(node.this)
    table = resolve(session, named)
    if table is None:
        return run_text(session, statement.text)
    definition = table.definition
    rows: list[tuple[str, str, str | None]] = [(c.name, c.type, c.comment) for c in definition.visible]
    rows += _partition_rows(definition)
    if str(node.args.get("style")).upper() in ("EXTENDED", "FORMATTED"):
        rows += _detail_rows(table, definition)
    return small_table({"col_name": "string", "data_type": "string", "comment": "string"}, rows)


def _partition_rows(definition: TableDefinition) -> list[tuple[str, str, str | None]]:
    if not definition.partition_by:
        return []
    columns = [definition.column(f.column) for f in definition.partition_fields if f.identity]
    heading: list[tuple[str, str, str | None]] = [("# Partition Information", "", "")]
    if columns:
        heading += [("# col_name", "data_type", "comment"), *[(c.name, c.type, c.comment) for c in columns]]
    transforms = [f for f in definition.partition_fields if not f.identity]
    return [*heading, *[(f"Part {n}", str(f), "") for n, f in enumerate(transforms)]]


def _detail_rows(table: Table, definition: TableDefinition) -> list[tuple[str, str, str | None]]:
    properties = ",".join(f"{k}={v}" for k, v in sorted(shown_properties(definition).items()))
    return [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Name", str(table.name), ""),
        ("Type", "EXTERNAL" if definition.external else "MANAGED", ""),
        ("Provider", table.format, ""),
        ("Location", table.handle.location, ""),
        ("Primary Key", ", ".join(definition.primary_key), ""),
        ("Table Properties", f"[{properties}]", ""),
    ]
