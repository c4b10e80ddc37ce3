"""The rewriter for journals in Trinity tables.

They are ``deduplicate`` tables, whose watermark is the version, and whose tombstone is the subsequent version. Their
reads are merged, and an append is an UPDATE or a MERGE of the journal itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.assignments import assignments
from trinity.journal.backends.warehouse.inserts import insert, inserting, newest_version, on_conflict, version_after
from trinity.journal.backends.warehouse.returning import Returning, returning_of
from trinity.journal.binding import generate_sql
from trinity.journal.ddl import rewrite_ddl
from trinity.journal.merges import key_of_source, listed_values, source_name
from trinity.journal.refusals import check_unread, mentions, words_of
from trinity.journal.scopes import Scopes
from trinity.journal.tables import JournalModel, JournalTable
from trinity.syntax.as_written import parsed
from trinity.syntax.parameters import number


@dataclass(frozen=True)
class Merged:
    """A rewritten statement, as it is sent to Trinity.

    Attributes:
        sql: the statement, in Spark's SQL; as written when it names no journalled table.
        changes: the journalled table that it changes; None if it changes none.
        fills: True when it may insert keys, which needs the table's ``versions_view``.
        returning: its RETURNING clause; None without one.
        defines: True for DDL.
    """

    sql: str
    changes: JournalTable | None = None
    fills: bool = False
    returning: Returning | None = None
    defines: bool = False


def rewrite_merged(sql: str, model: JournalModel) -> Merged:
    """Rewrite one statement without parameters. Raise as :func:`trinity.journal.rewrite.rewrite`."""
    numbered = number(sql, "spark")
    if not mentions(numbered, model):
        return Merged(sql)
    if check_unread(words_of(numbered), model, numbered):
        return Merged(sql)
    scopes = Scopes(model, "spark")
    found = _rewritten(parsed(numbered.text, "spark"), scopes)
    return found if scopes.refers_to_model else Merged(sql)


def _rewritten(tree: exp.Expr, scopes: Scopes) -> Merged:
    if (definition := rewrite_ddl(tree, scopes)) is not None:
        return Merged(generate_sql(definition, "spark"), defines=True)
    clause = tree.args.get("with_")
    if isinstance(clause, exp.With) and any(isinstance(c.this, exp.DML) for c in clause.expressions):
        raise TrinityError("NOT_SUPPORTED", "INSERT, UPDATE, DELETE and MERGE in WITH need PostgreSQL.")
    if isinstance(tree, exp.Query):
        if any(s.args.get("locks") for s in tree.find_all(exp.Select)):
            raise TrinityError("NOT_SUPPORTED", "FOR UPDATE needs PostgreSQL.")
        scopes.replace(tree)
        return Merged(generate_sql(tree, "spark"))
    if not isinstance(tree, (exp.Insert, exp.Update, exp.Delete, exp.Merge)):
        raise TrinityError("NOT_SUPPORTED", f"{tree.key.upper()} of a journalled table is not supported.")
    return _change(tree, scopes)


def _change(tree: exp.Insert | exp.Update | exp.Delete | exp.Merge, scopes: Scopes) -> Merged:
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    table = scopes.journalled(target)
    scopes.replace(tree, target=target)
    if table is None:
        return Merged(generate_sql(tree, "spark"))
    alias = trees.alias_name(target)
    returning = returning_of(tree, table, alias)
    target.replace(_aliased(table, alias))
    fills = True
    if isinstance(tree, exp.Insert):
        tree = _insert(tree, table, alias)
    elif isinstance(tree, exp.Merge):
        _merge(tree, table, alias)
    elif isinstance(tree, exp.Delete):
        tree, fills = _delete(tree, table, alias), False
    else:
        fills = _set_version(tree, table, alias)
    tree.set("returning", None)
    return Merged(generate_sql(tree, "spark"), table, fills, returning)


def _aliased(table: JournalTable, alias: exp.Identifier) -> exp.Table:
    found = trees.journal(table)
    found.set("alias", exp.TableAlias(this=alias.copy()))
    return found


# -- statements -----------------------------------------------------------------------------------------


def _insert(node: exp.Insert, table: JournalTable, alias: exp.Identifier) -> exp.Merge:
    if node.args.get("conflict") is None:
        return insert(node, table)
    found, changing = on_conflict(node, table)
    if changing is not None:
        _set_version(changing, table, alias)
    return found


def _set_version(node: exp.Update, table: JournalTable, alias: exp.Identifier) -> bool:
    """Add the next version to SET; return True when SET has a key column, so that rows may get a key with history."""
    values = assignments(_bare(node.expressions, alias), table, "spark")
    own = trees.column(table.version, alias)
    moves = bool(values.keys() & set(table.key))
    if moves:
        key = [values.get(k) or trees.column(k, alias) for k in table.key]
        least = exp.Coalesce(this=newest_version(table, key), expressions=[own.copy()])
        own = exp.Anonymous(this="greatest", expressions=[own, least])  # type: ignore[assignment]
    values[table.version] = version_after(table, own)
    node.set("expressions", [_assigned(c, v) for c, v in values.items()])
    return moves


def _bare(nodes: Sequence[exp.Expr], alias: exp.Identifier) -> list[exp.Expr]:
    """Return assignments with bare columns, as in the standard: Spark allows ``SET t.column = value`` as well."""
    found = [n.copy() for n in nodes]
    for node in found:
        column = node.this if isinstance(node, exp.EQ) else None
        qualifier = column.args.get("table") if isinstance(column, exp.Column) else None
        if column is not None and qualifier is not None and trees.folded(qualifier) == trees.folded(alias):
            column.set("table", None)
    return found


def _assigned(column: str, value: exp.Expr) -> exp.EQ:
    return exp.EQ(this=trees.column(column), expression=value)


def _deleting(table: JournalTable, alias: exp.Identifier) -> list[exp.Expr]:
    next_one = version_after(table, trees.column(table.version, alias))
    return [_assigned(table.version, next_one), _assigned(table.subsequent, next_one.copy())]


def _delete(node: exp.Delete, table: JournalTable, alias: exp.Identifier) -> exp.Update:
    """Turn DELETE into an UPDATE of both version columns; USING becomes EXISTS, as several rows may match one."""
    where = node.args.get("where")
    condition = where.this if where is not None else None
    using = node.args.get("using") or []
    if using:
        query = trees.select([exp.Literal.number(1)], using[0].copy(), [condition] if condition is not None else [])
        for other in using[1:]:
            query.append("joins", exp.Join(this=other.copy(), kind="CROSS"))
        condition = exp.Exists(this=query)
    found = exp.Update(this=node.this, expressions=_deleting(table, alias))
    if condition is not None:
        found.set("where", exp.Where(this=condition))
    if node.args.get("with_") is not None:
        found.set("with_", node.args["with_"])
    return found


def _merge(node: exp.Merge, table: JournalTable, alias: exp.Identifier) -> None:
    """Add versions to each clause; DELETE becomes an UPDATE of both version columns."""
    for when in node.args["whens"].expressions:
        then = when.args["then"]
        if isinstance(then, exp.Update):
            _spell_star(then, table, node, alias)
            _set_version(then, table, alias)
        elif isinstance(then, exp.Insert):
            when.set("then", _merge_insert(then, table, node))
        elif str(then.name).upper() == "DELETE":
            when.set("then", exp.Update(expressions=_deleting(table, alias)))


def _spell_star(then: exp.Update, table: JournalTable, node: exp.Merge, alias: exp.Identifier) -> None:
    """Expand ``UPDATE SET *`` to all columns, with the source's values; a key that ON equates stays."""
    if not isinstance(then.expressions[0], exp.Star):
        return
    stays = set(table.key) if key_of_source(node.args["on"], table, alias) is not None else set()
    source = source_name(node)
    columns = [c.name for c in table.visible if c.name not in stays]
    then.set("expressions", [_assigned(c, trees.column(c, source)) for c in columns])


def _merge_insert(then: exp.Insert, table: JournalTable, node: exp.Merge) -> exp.Insert:
    if isinstance(then.this, exp.Star):
        source = source_name(node)
        pairs: list[tuple[str, exp.Expr]] = [(c.name, trees.column(c.name, source)) for c in table.visible]
    else:
        pairs = listed_values(then, table)
    given = dict(pairs)
    key = [given.get(k) for k in table.key]
    missing = [k for k, value in zip(table.key, key, strict=True) if value is None]
    if missing:
        raise TrinityError("CONSTRAINT_VIOLATION", f"MERGE INTO {table}: INSERT leaves out key column '{missing[0]}'.")
    version = version_after(table, newest_version(table, [value for value in key if value is not None]))
    return inserting([*(name for name, _ in pairs), table.version], [*(v.copy() for _, v in pairs), version])
