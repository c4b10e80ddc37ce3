"""ALTER TABLE: columns, constraints, properties, and the name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from sqlglot import TokenType, exp

from trinity.definition import evolve
from trinity.engine.values.altering import set_not_null
from trinity.errors import TrinityError
from trinity.spi import TableDefinition
from trinity.sql.parsing.columns import default_text, read_check, read_column
from trinity.sql.parsing.names import existing_table, parts, target_name
from trinity.sql.parsing.properties import table_properties
from trinity.sql.queries.results import Rows, no_rows
from trinity.syntax.collations import not_collated
from trinity.syntax.parse import Statement, parse
from trinity.syntax.reader import Piece, Reader
from trinity.syntax.types import type_text

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.table import Table


def alter_table(session: Session, statement: Statement) -> Rows:
    """Run ALTER TABLE t: RENAME TO, ADD, DROP, RENAME and ALTER COLUMN, ADD and DROP CONSTRAINT, SET TBLPROPERTIES.

    All changes of columns by one statement are one commit.

    Raises:
        TrinityError: COLUMN_ALREADY_EXISTS, COLUMN_NOT_FOUND, INVALID_TABLE_PROPERTY, TYPE_MISMATCH,
            CONSTRAINT_VIOLATION (SET NOT NULL); NOT_SUPPORTED for other changes.
    """
    alter = statement.tree
    assert isinstance(alter, exp.Alter)
    if str(alter.args.get("kind")) != "TABLE":
        raise _unsupported(statement)
    if alter.args.get("exists") and session.find_table(target_name(session, alter.this)) is None:
        return no_rows()
    return _alter(session, existing_table(session, alter.this), statement)


def _alter(session: Session, table: Table, statement: Statement) -> Rows:
    """Apply the changes of a statement to a table; the name in the statement does not matter."""
    alter = statement.tree
    actions = list(_flattened(alter.args.get("actions") or []))
    if actions and isinstance(actions[0], exp.AlterRename):
        session.rename_table(table.name, session.table_name(parts(actions[0].this), within=table.name))
        return no_rows()
    if len(actions) == 1 and _constraint(table, actions[0], statement):
        return no_rows()
    changes = [change for action in actions for change in _changes(action, statement)]
    columns = table.definition
    not_null = {
        action.name: not action.args["allow_null"]
        for action in actions
        if isinstance(action, exp.AlterColumn)
        and "allow_null" in action.args
        and (not action.args.get("exists") or _has_column(columns, action.name))
    }
    settings = [a for a in actions if isinstance(a, exp.AlterSet)]
    if len([c for c in (changes, not_null, settings) if c]) > 1:
        raise TrinityError(
            "NOT_SUPPORTED", "ALTER TABLE changes columns, NOT NULL or properties; write a statement for each of them."
        )
    if changes:
        table.alter(*changes)
    if not_null:
        set_not_null(table, not_null)
    for setting in settings:
        _set_properties(table, setting, statement)
    return no_rows()


def _constraint(table: Table, action: exp.Expr, statement: Statement) -> bool:
    """Add or drop a CHECK constraint, and return True; return False for another action."""
    if isinstance(action, exp.Drop) and str(action.args.get("kind")) == "CONSTRAINT":
        table.drop_check(action.args["tables"][0].name, if_exists=bool(action.args.get("exists")))
        return True
    if not isinstance(action, exp.AddConstraint):
        return False
    named = action.expressions[0]
    rules = named.expressions if isinstance(named, exp.Constraint) else []
    if len(action.expressions) != 1 or len(rules) != 1 or not isinstance(rules[0], exp.CheckColumnConstraint):
        raise _unsupported(statement)
    table.add_check(named.name, read_check(rules[0].this, table.definition.visible, statement.dialect))
    return True


def _flattened(actions: list[exp.Expr]) -> Iterator[exp.Expr]:
    for action in actions:
        if isinstance(action, exp.Schema):
            yield from action.expressions
        else:
            yield action


def _changes(action: exp.Expr, statement: Statement) -> list[evolve.Change]:
    """Return the changes of columns that an action makes; none for SET."""
    if isinstance(action, exp.ColumnDef):
        return [_addition(action, statement.dialect)]
    if isinstance(action, exp.RenameColumn):
        old, new = _top_level(action.this, statement), _top_level(action.args["to"], statement)
        renaming = partial(evolve.rename_column, old=old, new=new)
        return [_if_exists(old, renaming) if action.args.get("exists") else renaming]
    if isinstance(action, exp.Drop) and str(action.args.get("kind")) in ("COLUMN", "COLUMNS"):
        names = [_top_level(node, statement) for node in _flattened(action.args["tables"])]
        if not names:
            raise _unsupported(statement)
        drops = {name: partial(evolve.dropped, name=name) for name in names}
        return [_if_exists(n, drop) if action.args.get("exists") else drop for n, drop in drops.items()]
    if isinstance(action, exp.AlterColumn):
        return _column_changes(action, statement)
    if isinstance(action, exp.AlterSet):
        return []
    raise _unsupported(statement)


def _addition(node: exp.ColumnDef, dialect: str) -> evolve.Change:
    column, key = read_column(node, dialect)
    if key:
        raise TrinityError("NOT_SUPPORTED", f"Column '{column.name}': a primary key cannot be added to a table.")
    if any(isinstance(constraint.kind, exp.CheckColumnConstraint) for constraint in node.constraints):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{column.name}': add it without the CHECK, then the constraint: ALTER TABLE ... ADD "
            "CONSTRAINT name CHECK (...).",
        )
    position = node.args.get("position")
    position = None if position is None else position.this.name if position.this is not None else evolve.FIRST
    adding = partial(evolve.added, column=column, position=position)
    return _if_not_exists(column.name, adding) if node.args.get("exists") else adding


def _column_changes(action: exp.AlterColumn, statement: Statement) -> list[evolve.Change]:
    name, args = action.name, action.args
    changes: list[evolve.Change] = []
    if args.get("collate"):
        raise not_collated(name, args["collate"].sql(dialect=statement.dialect))
    if args.get("using"):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{name}': USING is not supported; change the type without it, then UPDATE the rows.",
        )
    if args.get("dtype") is not None:
        kind = type_text(args["dtype"], statement.dialect, name)
        changes.append(partial(evolve.with_type, name=name, type_text=kind))
    if args.get("comment"):
        changes.append(partial(evolve.with_comment, name=name, comment=args["comment"].name))
    if args.get("default") is not None:
        default = default_text(args["default"], statement.dialect)
        changes.append(partial(evolve.with_default, name=name, default=default))
    if args.get("drop") and "allow_null" not in args:
        changes.append(partial(evolve.with_default, name=name, default=None))
    if args.get("rename_to") is not None and args["rename_to"].name.lower() != name.lower():
        changes.append(partial(evolve.rename_column, old=name, new=args["rename_to"].name))
    if not changes and "allow_null" not in args and "rename_to" not in args:
        raise _unsupported(statement)
    return [_if_exists(name, change) for change in changes] if args.get("exists") else changes


def _top_level(node: exp.Expr, statement: Statement) -> str:
    if isinstance(node, exp.Column) and node.table:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"'{statement.text.strip()[:120]}': fields within a column keep their names and types; only whole columns "
            "are changed.",
        )
    return str(node.name)


def _has_column(definition: TableDefinition, name: str) -> bool:
    return any(c.name.lower() == name.lower() for c in definition.columns)


def _if_exists(name: str, change: evolve.Change) -> evolve.Change:
    return lambda definition: change(definition) if _has_column(definition, name) else definition


def _if_not_exists(name: str, change: evolve.Change) -> evolve.Change:
    return lambda definition: definition if _has_column(definition, name) else change(definition)


def _set_properties(table: Table, action: exp.AlterSet, statement: Statement) -> None:
    nodes = [n for p in action.expressions for n in (p.expressions if isinstance(p, exp.Properties) else [p])]
    if not nodes:
        raise _unsupported(statement)
    table.set_properties(table_properties(nodes))


def _unsupported(statement: Statement) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"'{' '.join(statement.text.split())[:120]}' is not supported; ALTER TABLE adds, drops, renames and alters "
        "columns (TYPE, SET and DROP NOT NULL, SET and DROP DEFAULT, COMMENT, FIRST, AFTER), and sets and unsets "
        "properties.",
    )


_POSITIONS: Final = ("FIRST", "AFTER")


def alter_as_text(session: Session, statement: Statement) -> Rows:
    """Run ALTER TABLE in the spellings that sqlglot leaves as text.

    SET PROPERTIES a = 'b', UNSET TBLPROPERTIES [IF EXISTS] ('a'), ADD COLUMN (a INT), ALTER COLUMN a FIRST | AFTER b,
    CHANGE a b BIGINT.
    """
    if statement.words(2) != ("ALTER", "TABLE"):
        raise _unsupported(statement)
    reader = Reader(Piece.of(statement), 2)
    table = session.table(session.table_name(reader.name()))
    if reader.take("SET", "PROPERTIES") and not reader.done:
        whole = reader.opens()
        listed = reader.rest("a property").text
        text = f"CREATE TABLE t (a INT) WITH {listed if whole else f'({listed})'}"
        source = parse(text, statement.dialect).tree
        table.set_properties(table_properties(source.args["properties"].expressions))
    elif reader.take("UNSET", "TBLPROPERTIES"):
        _unset_properties(table, statement, reader)
    elif reader.take("ADD", "COLUMN") and reader.opens():
        return _alter(session, table, parse(f"ALTER TABLE t ADD COLUMNS {reader.rest('a column').text}", "spark"))
    elif reader.take("CHANGE") and not reader.words("COLUMN") and not reader.done:
        return _alter(session, table, parse(f"ALTER TABLE t CHANGE COLUMN {reader.rest('a column').text}", "spark"))
    elif reader.take("ALTER", "COLUMN") and not reader.done:
        _move(table, statement, reader)
    else:
        raise _unsupported(statement)
    return no_rows()


def _unset_properties(table: Table, statement: Statement, reader: Reader) -> None:
    """Unset the properties that the statement lists next, as quoted texts or as dotted names."""
    if_exists = reader.take("IF", "EXISTS")
    listed = reader.tokens[reader.at :]
    if len(listed) < 3 or (listed[0].text, listed[-1].text) != ("(", ")"):
        raise _unsupported(statement)
    names = [""]
    for token in listed[1:-1]:
        if token.token_type is TokenType.COMMA:
            names.append("")
        else:
            names[-1] += token.text
    table.unset_properties(*names, if_exists=if_exists)


def _move(table: Table, statement: Statement, reader: Reader) -> None:
    column = reader.name()
    rest = reader.tokens[reader.at :]
    position = rest[0].text.upper() if rest else ""
    if len(column) != 1 or position not in _POSITIONS or len(rest) != 1 + _POSITIONS.index(position):
        raise _unsupported(statement)
    behind = rest[1].text if position == "AFTER" else evolve.FIRST
    table.alter(partial(evolve.moved, name=column[0], position=behind))
