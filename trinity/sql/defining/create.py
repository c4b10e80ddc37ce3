"""CREATE TABLE (with LOCATION it registers an external table), CREATE TABLE AS SELECT and CREATE TEMPORARY VIEW."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa
from sqlglot import exp

from trinity.calls import spark_errors
from trinity.creation import check_owned, create_or_replace
from trinity.engine.appending.append import append_rows
from trinity.engine.appending.first_rows import columns_of_rows
from trinity.engine.changing.statement import rerun
from trinity.engine.changing.whole_table import replace_table, truncate
from trinity.engine.executes import execute
from trinity.errors import TrinityError
from trinity.merge.properties import commit_timeout_s, is_own_property
from trinity.spark.settings import check_late_settings
from trinity.spi import Column, TableDefinition, parse_type
from trinity.sql.changing.overwrite import Overwrite, overwrite
from trinity.sql.local.insert import with_names
from trinity.sql.local.run import local_query
from trinity.sql.parsing.columns import Elements, read_column, read_elements
from trinity.sql.parsing.names import existing_table, parts, target_name
from trinity.sql.parsing.properties import Options, read_options
from trinity.sql.queries.query import run_query, run_text
from trinity.sql.queries.references import resolve
from trinity.sql.queries.results import Rows, counts, no_rows
from trinity.storage.commits import statement_retries
from trinity.syntax.parse import Statement, parse
from trinity.syntax.quoting import quoted
from trinity.syntax.reader import Piece, Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.names import TableName
    from trinity.session import Session
    from trinity.table import Table


def create_table(session: Session, statement: Statement) -> Rows:
    """Run CREATE [OR REPLACE] TABLE [IF NOT EXISTS], with or without AS SELECT or LIKE.

    The spelling is Spark's, Trino's or Flink's. The result has no rows; with AS SELECT it is one row of counts.

    Raises:
        TrinityError: TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND, NOT_SUPPORTED, INVALID_TABLE_PROPERTY, ...
    """
    create = statement.tree
    assert isinstance(create, exp.Create)
    _refuse_other_tables(create)
    if create.args.get("replace") and create.args.get("exists"):
        raise TrinityError("SYNTAX_ERROR", "CREATE TABLE takes OR REPLACE or IF NOT EXISTS, not both.")
    name = target_name(session, create.this)
    if (like := create.find(exp.LikeProperty)) is not None:
        return _create_like(session, create, name, like)
    nodes = list(create.this.expressions) if isinstance(create.this, exp.Schema) else []
    given = read_elements(nodes, statement.dialect)
    options = read_options(_properties(create))
    columns = [*given.columns, *(read_column(node, statement.dialect)[0] for node in options.partition_columns)]
    key = _primary_key(name, given.key, options)
    exists = bool(create.args.get("exists"))
    if _is_external(create, options):
        _refuse_checks(name, given, "is another writer's, who would not see them")
        _register_table(session, name, columns, key, options, exists=exists, query=create.expression is not None)
        return no_rows()
    _check_format(session, name, options)
    if create.expression is not None:
        if columns:
            raise TrinityError(
                "NOT_SUPPORTED", f"Table '{name}': AS SELECT takes the columns from the query; leave their types out."
            )
        _refuse_checks(name, given, "takes its columns from the query; add them with ALTER TABLE ... ADD CONSTRAINT")
    elif given.names:
        raise TrinityError("SYNTAX_ERROR", f"Column '{given.names[0]}' of table '{name}' has no type.")
    defined: _TableClauses = {
        "primary_key": key,
        "partition_by": options.partition_by,
        "properties": options.properties,
        "checks": given.named_checks(name.table, columns, statement.dialect),
    }
    if create.expression is not None:
        return _create_as(session, statement, name, given.names, defined, options.with_data, exists)

    def make() -> Rows:
        session.create_table(name, columns, **defined, if_not_exists=exists)
        return no_rows()

    wanted = Replacement(lambda _: session.checked_definition(name, columns, **defined))
    return _create_or_replace(session, create, name, make, wanted)


class _TableClauses(TypedDict):
    """The clauses of a CREATE TABLE, except for its columns."""

    primary_key: list[str]
    partition_by: list[str]
    properties: dict[str, str]
    checks: dict[str, str]


def _create_or_replace(
    session: Session, create: exp.Create, name: TableName, make: Callable[[], Rows], wanted: Replacement
) -> Rows:
    """Create a table by ``make``; if the statement says OR REPLACE, replace the table that is there."""
    if not create.args.get("replace"):
        return make()

    def find() -> Table | None:
        return session.find_table(name)

    return create_or_replace(find(), find, make, lambda table: replace(session, table, wanted), repeatable=True)


def _create_like(session: Session, create: exp.Create, name: TableName, like: exp.LikeProperty) -> Rows:
    """Run CREATE [OR REPLACE] TABLE a LIKE b [USING format]."""
    elements = create.this.expressions if isinstance(create.this, exp.Schema) else []
    options = read_options([node for node in _properties(create) if node is not like])
    if [e for e in elements if e is not like] or options.properties or options.partition_by or options.location:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{name}': LIKE takes columns, key and options from the other table; leave yours out, and change "
            "them afterwards with ALTER TABLE.",
        )
    _check_format(session, name, options)
    definition = existing_table(session, like.this).definition

    def make() -> Rows:
        session.create_like(name, definition, if_not_exists=bool(create.args.get("exists")))
        return no_rows()

    wanted = Replacement(lambda _: session.definition_like(name, definition))
    return _create_or_replace(session, create, name, make, wanted)


def _refuse_checks(name: TableName, given: Elements, reason: str) -> None:
    if given.checks:
        raise TrinityError("NOT_SUPPORTED", f"Table '{name}' cannot be given CHECK constraints here: it {reason}.")


def _refuse_other_tables(create: exp.Create) -> None:
    if create.args.get("replace") and create.find(exp.LocationProperty, exp.ExternalProperty):
        raise TrinityError(
            "NOT_SUPPORTED",
            "CREATE OR REPLACE TABLE takes no LOCATION: a table there is another writer's, whose rows Trinity does not "
            "replace. To give a name another location: DROP TABLE, which leaves the files, then CREATE TABLE.",
        )
    for node in _properties(create):
        if isinstance(node, exp.TemporaryProperty):
            raise TrinityError("NOT_SUPPORTED", "Temporary tables are not supported; use CREATE TEMPORARY VIEW.")


def _is_external(create: exp.Create, options: Options) -> bool:
    external = any(isinstance(node, exp.ExternalProperty) for node in _properties(create))
    if external and options.location is None:
        raise TrinityError("SYNTAX_ERROR", "CREATE EXTERNAL TABLE says where its files are: LOCATION '/folder'.")
    return options.location is not None


def _properties(create: exp.Create) -> list[exp.Expr]:
    properties = create.args.get("properties")
    return list(properties.expressions) if properties is not None else []


def _primary_key(name: TableName, key: list[str], options: Options) -> list[str]:
    given = options.primary_key
    if key and given and [k.lower() for k in key] != [k.lower() for k in given]:
        raise TrinityError(
            "INVALID_TABLE_PROPERTY",
            f"Table '{name}': PRIMARY KEY ({', '.join(key)}) and the option primary_key = '{','.join(given)}' differ.",
        )
    return key or given


def _check_format(session: Session, name: TableName, options: Options) -> None:
    has = session.format_name(name.catalog)
    if options.format is not None and options.format != has:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{name}': catalog '{name.catalog}' holds {has} tables, not {options.format}; leave USING out, "
            f"or name a catalog of {options.format} tables.",
        )


def _query_after_as(statement: Statement) -> Statement:
    """Return the query of CREATE ... AS or CACHE ... AS."""
    reader = Reader(Piece.of(statement))
    reader.until("AS", wanted="CREATE")
    if not reader.take("AS") or reader.done:
        raise TrinityError("SYNTAX_ERROR", "The query is missing; write AS SELECT ... at the end.")
    words = [t.text.upper() for t in statement.tokens]
    data_clause = 2 * (words[-2:] == ["WITH", "DATA"]) + 3 * (words[-3:] == ["WITH", "NO", "DATA"])
    first, last = statement.tokens[reader.at], statement.tokens[len(words) - data_clause - 1]
    return parse(statement.text[first.start : last.end + 1], statement.dialect)


def _create_as(
    session: Session,
    statement: Statement,
    name: TableName,
    names: list[str],
    defined: _TableClauses,
    with_data: bool,
    exists: bool,
) -> Rows:
    if exists and session.find_table(name) is not None:
        return counts()
    query = _query_after_as(statement)

    def by_spark() -> Rows:
        check_late_settings(session.spark, statement.text)
        return run_query(session, query)

    def queried() -> Any:
        found = execute(
            session, f"CREATE TABLE '{name}' AS", lambda process: local_query(session, query, process), by_spark
        )
        return _renamed(found() if callable(found) else found, names, f"TABLE '{name}'")

    def make() -> Rows:
        rows, written = queried(), list[int]()

        def fill(made: Table) -> None:
            if with_data:
                written.append(_write(made, rows))

        session.create_table(name, columns_of_rows(rows), **defined, if_not_exists=exists, fill=fill)
        return counts(inserted=sum(written))

    def definition(rows: Any) -> TableDefinition:
        return session.checked_definition(name, columns_of_rows(rows), **defined)

    assert isinstance(statement.tree, exp.Create)
    wanted = Replacement(definition, queried, query.to_spark().text if with_data else None)
    return _create_or_replace(session, statement.tree, name, make, wanted)


def _write(table: Table, rows: Any) -> int:
    with nullcontext() if isinstance(rows, pa.RecordBatchReader) else spark_errors():
        return append_rows(table, rows, new=True).rows


def _renamed(rows: Any, names: list[str], what: str) -> Any:
    here = isinstance(rows, pa.RecordBatchReader)
    given = rows.schema.names if here else rows.columns
    if names and len(names) != len(given):
        raise TrinityError(
            "INVALID_ARGUMENTS", f"CREATE {what}: {len(names)} columns are named, and the query has {len(given)}."
        )
    if not names:
        return rows
    return with_names(rows, names) if here else rows.toDF(*names)


def create_view(session: Session, statement: Statement) -> Rows:
    """Run CREATE [OR REPLACE] TEMPORARY VIEW, over the present versions of Trinity's tables.

    Raises:
        TrinityError: NOT_SUPPORTED for a view that is not temporary; TABLE_ALREADY_EXISTS.
    """
    create = statement.tree
    assert isinstance(create, exp.Create)
    if not any(isinstance(p, exp.TemporaryProperty) for p in _properties(create)):
        raise TrinityError("NOT_SUPPORTED", "Views are not stored by Trinity; use CREATE TEMPORARY VIEW.")
    if create.expression is None:
        return run_text(session, statement.text)
    nodes = create.this.expressions if isinstance(create.this, exp.Schema) else []
    view = create.this.this if isinstance(create.this, exp.Schema) else create.this
    rows = _renamed(run_query(session, _query_after_as(statement)), [n.name for n in nodes], f"VIEW '{view.name}'")
    is_global = "GLOBAL" in statement.words(4)
    full = f"global_temp.{quoted(view.name)}" if is_global else quoted(view.name)
    if create.args.get("exists") and session.spark.catalog.tableExists(full):
        return no_rows()
    with spark_errors():
        _register(rows, view.name, is_global, bool(create.args.get("replace")))
    return no_rows()


def _register(rows: DataFrame, view: str, is_global: bool, replace: bool) -> None:
    name = quoted(view)  # quoted, since Spark parses the name
    if is_global:
        rows.createOrReplaceGlobalTempView(name) if replace else rows.createGlobalTempView(name)
    else:
        rows.createOrReplaceTempView(name) if replace else rows.createTempView(name)


def cache(session: Session, statement: Statement) -> Rows:
    """Run CACHE [LAZY] TABLE name [AS query].

    It caches a query over the present versions of tables, or a temporary view.

    Raises:
        TrinityError: NOT_SUPPORTED for a Trinity table.
    """
    node = statement.tree
    assert isinstance(node, exp.Cache)
    if node.expression is not None:
        rows = run_query(session, _query_after_as(statement))
        with spark_errors():
            rows.createTempView(quoted(node.this.name))
        lazy = "LAZY " if node.args.get("lazy") else ""
        return run_text(session, f"CACHE {lazy}TABLE {quoted(node.this.name)}")
    if resolve(session, parts(node.this)) is not None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"CACHE TABLE {node.this.sql(dialect='spark')}: a table changes under its cache; "
            "cache a query: CACHE TABLE name AS SELECT ...",
        )
    return run_text(session, statement.text)


@dataclass(frozen=True)
class Replacement:
    """The table that a CREATE OR REPLACE puts in the place of another one.

    Attributes:
        definition: returns the new definition for the rows of the query (None without a query).
        rows: runs the query after AS at each call, and returns its rows; None without a query.
        query: the query's text; None without a query, and for WITH NO DATA.
    """

    definition: Callable[[Any], TableDefinition]
    rows: Callable[[], Any] | None = None
    query: str | None = None


class _Redefined(Exception):
    """The table has got another definition since it was compared with that of CREATE OR REPLACE."""


def replace(session: Session, table: Table, wanted: Replacement) -> Rows:
    """Replace a table in one commit; only its rows, if the new definition equals the present one.

    The result is one row of counts; without a query it has no rows.

    Raises:
        TrinityError: NOT_SUPPORTED for a table that Trinity did not make; as CREATE TABLE, or INSERT OVERWRITE.
    """
    check_owned(lambda: table, "CREATE OR REPLACE")

    def attempt() -> Rows | TableDefinition:
        """Replace the table, or remove its rows; return its definition if the rows of a query are to be written."""
        seen = table.splits()  # pinned before the query runs, since that may read the table
        rows = wanted.rows() if wanted.rows else None
        definition, now = wanted.definition(rows), seen.definition
        inserted = 0
        if _facts(now) != _facts(definition) or (wanted.query is not None and now.keyed):
            inserted = replace_table(table, seen, definition, rows if wanted.query is not None else None).rows
        elif wanted.query is not None:
            return now
        else:
            truncate(table, seen=seen)
        return counts(inserted=inserted) if wanted.rows else no_rows()

    with statement_retries() as retries:
        while True:
            found = rerun(table, attempt)
            if not isinstance(found, TableDefinition):
                return found
            try:
                return _overwrite(session, table, wanted, found)
            except _Redefined as error:
                if not retries.pause(commit_timeout_s(found.properties)):
                    raise TrinityError(
                        "TRANSACTION_CONFLICT", f"Others kept changing the columns of '{table.name}'; run it again."
                    ) from error


def _overwrite(session: Session, table: Table, wanted: Replacement, definition: TableDefinition) -> Rows:
    """Replace the rows of a table that has a definition. Raises _Redefined if it has another one meanwhile."""

    def check(now: TableDefinition) -> None:
        if _facts(now) != _facts(definition):
            raise _Redefined

    assert wanted.query is not None
    return overwrite(session, table, Overwrite(wanted.query, definition.visible, None), None, check)


def _facts(definition: TableDefinition) -> tuple[Any, ...]:
    """Return the parts of a definition that CREATE TABLE states, to compare two definitions."""
    columns = [Column(c.name, c.type, c.nullable, c.default, c.comment) for c in definition.visible]
    options = {k: v for k, v in definition.properties.items() if not is_own_property(k)}
    return columns, definition.primary_key, definition.partition_by, options, definition.checks


def _register_table(
    session: Session,
    name: TableName,
    columns: Sequence[Column],
    key: Sequence[str],
    options: Options,
    *,
    exists: bool,
    query: bool,
) -> None:
    """Register the table of a CREATE TABLE with a location. ``columns`` are empty, or must be those of the table.

    Raises:
        TrinityError: NOT_SUPPORTED for AS SELECT; INVALID_ARGUMENTS where the statement and the table differ in their
            columns or partitions; as ``Session.register``.
    """
    if query:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{name}': AS SELECT makes a table of Trinity's, whose folder Trinity chooses; leave LOCATION out.",
        )
    format_name = options.format or session.format_name(name.catalog)
    properties = {**options.properties, **({"primary-key": ",".join(key)} if key else {})}

    def check(definition: TableDefinition) -> None:
        _check_declared(definition, columns, options.partition_by)

    session.register(name, format_name, options.location, properties, if_not_exists=exists, check=check)


def _check_declared(definition: TableDefinition, columns: Sequence[Column], partition_by: Sequence[str]) -> None:
    declared = [(c.name.lower(), str(parse_type(c.type))) for c in columns]
    present = [(c.name.lower(), c.type) for c in definition.visible]
    if declared and sorted(declared) != sorted(present):
        wanted, has = (", ".join(f"{n} {t}" for n, t in found) for found in (declared, present))
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{definition.full_name}' is declared with the columns ({wanted}), and the files have ({has}); "
            "leave the columns out to take those.",
        )
    if partition_by and [p.lower() for p in partition_by] != [p.lower() for p in definition.partition_by]:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{definition.full_name}' is declared with the partitions ({', '.join(partition_by)}), and the "
            f"files have ({', '.join(definition.partition_by)}); leave PARTITIONED BY out to take those.",
        )
