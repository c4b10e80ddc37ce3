"""CREATE SCHEMA, USE and DROP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.sql.parsing.names import catalog_name, target_name
from trinity.sql.queries.query import run_text
from trinity.sql.queries.results import Rows, no_rows
from trinity.syntax.parse import Statement
from trinity.syntax.quoting import quoted
from trinity.syntax.reader import Piece, Reader

if TYPE_CHECKING:
    from trinity.session import Session


def _schema_of(node: exp.Expr) -> str:
    given = [node.args.get(k) for k in ("catalog", "db", "this")]
    return ".".join(quoted(p.name) for p in given if p is not None)


def create_schema(session: Session, statement: Statement) -> Rows:
    """Run CREATE SCHEMA [IF NOT EXISTS] [catalog.]schema. Raise SCHEMA_ALREADY_EXISTS, CATALOG_NOT_FOUND."""
    create = statement.tree
    assert isinstance(create, exp.Create)
    if create.args.get("properties") or create.args.get("replace"):
        raise TrinityError("NOT_SUPPORTED", "CREATE SCHEMA takes no further clauses; Trinity chooses the folder.")
    session.create_schema(_schema_of(create.this), if_not_exists=bool(create.args.get("exists")))
    return no_rows()


def use(session: Session, statement: Statement) -> Rows:
    """Run USE [SCHEMA | DATABASE | NAMESPACE | CATALOG] name; a catalog alone means its schema ``default``.

    Raises:
        TrinityError: SCHEMA_NOT_FOUND, CATALOG_NOT_FOUND.
    """
    words = statement.words(3)
    kind = words[1] if len(words) > 2 and words[1] in ("SCHEMA", "DATABASE", "NAMESPACE", "CATALOG") else ""
    reader = Reader(Piece.of(statement), 2 if kind else 1)
    given = reader.name()
    if not reader.done:
        raise TrinityError("SYNTAX_ERROR", f"USE {'.'.join(given)}: '{reader.tokens[reader.at].text}' is left over.")
    first = given[0].lower()
    current = session.catalogs[session.current_catalog].metadata
    is_catalog = len(given) == 1 and first in session.catalogs and not kind and first not in current.list_schemas()
    if kind == "CATALOG" or is_catalog:
        session.use(catalog_name(given), "default")
    else:
        session.use(*session.schema_name(given))
    return no_rows()


def drop(session: Session, statement: Statement) -> Rows:
    """Run DROP TABLE and DROP SCHEMA; pass DROP VIEW on to Spark.

    Raises:
        TrinityError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND, SCHEMA_NOT_EMPTY; NOT_SUPPORTED for anything else.
    """
    node = statement.tree
    assert isinstance(node, exp.Drop)
    kind = str(node.args.get("kind"))
    if_exists = bool(node.args.get("exists"))
    if kind == "TABLE":
        for table in node.args["tables"]:
            session.drop_table(target_name(session, table), if_exists=if_exists)
    elif kind in ("SCHEMA", "DATABASE"):
        for schema in node.args["tables"]:
            session.drop_schema(_schema_of(schema), if_exists=if_exists, cascade=bool(node.args.get("cascade")))
    elif kind == "VIEW" or node.args.get("temporary"):
        return run_text(session, statement.to_spark().text)
    else:
        raise TrinityError("NOT_SUPPORTED", f"DROP {kind} is not supported; Trinity has tables and schemas.")
    return no_rows()
