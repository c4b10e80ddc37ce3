"""The rewriter for journals that Trinity stores.

They are ``deduplicate`` tables whose watermark is the version and whose tombstone is the subsequent version. They are
read merged already, and an append is an UPDATE or a MERGE of the journal itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import trees
from trinity.journal.binding import generated
from trinity.journal.ddl import rewrite_ddl
from trinity.journal.merges import key_of_source
from trinity.journal.refusals import check_unread, mentions, words_of
from trinity.journal.rewrite import numbered_and_parsed
from trinity.journal.scopes import Scopes
from trinity.journal.tables import JournalModel, JournalTable

__all__ = ["Merged", "rewrite_merged"]

_NEW: Final = "new"


@dataclass(frozen=True)
class Merged:
    """What is sent to Trinity.

    Attributes:
        sql: the statement, in Spark's SQL; as it was written when it names no journalled table.
        versions_of: the table whose ``versions_view`` has to be there, since keys come to life in it.
        defines: the statement changes a definition.
    """

    sql: str
    versions_of: JournalTable | None = None
    defines: bool = False


def rewrite_merged(sql: str, model: JournalModel) -> Merged:
    """Rewrites one statement without parameters.

    Raises:
        TrinityError: as :func:`trinity.journal.rewrite.rewrite`.
    """
    numbered, parse = numbered_and_parsed(sql, "spark")
    if not mentions(numbered, model):
        return Merged(sql)
    if check_unread(words_of(numbered), model, numbered):
        return Merged(sql)
    scopes = Scopes(model, "spark")
    found = _rewritten(parse(), scopes)
    return found if scopes.met else Merged(sql)


def _rewritten(tree: exp.Expr, scopes: Scopes) -> Merged:
    if (definition := rewrite_ddl(tree, scopes)) is not None:
        return Merged(generated(definition, "spark"), defines=True)
    clause = tree.args.get("with_")
    if isinstance(clause, exp.With) and any(isinstance(c.this, exp.DML) for c in clause.expressions):
        raise TrinityError("NOT_SUPPORTED", "INSERT, UPDATE, DELETE and MERGE in WITH need PostgreSQL.")
    if isinstance(tree, exp.Query):
        if any(s.args.get("locks") for s in tree.find_all(exp.Select)):
            raise TrinityError("NOT_SUPPORTED", "FOR UPDATE needs PostgreSQL.")
        scopes.replace(tree)
        return Merged(generated(tree, "spark"))
    if not isinstance(tree, (exp.Insert, exp.Update, exp.Delete, exp.Merge)):
        raise TrinityError("NOT_SUPPORTED", f"{tree.key.upper()} of a journalled table is not supported.")
    return _change(tree, scopes)


def _change(tree: exp.Insert | exp.Update | exp.Delete | exp.Merge, scopes: Scopes) -> Merged:
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    table = scopes.journalled(target)
    scopes.replace(tree, target=target)
    if table is None:
        return Merged(generated(tree, "spark"))
    if tree.args.get("returning") is not None or tree.args.get("conflict") is not None:
        raise TrinityError("NOT_SUPPORTED", "RETURNING and ON CONFLICT need PostgreSQL; use MERGE on Trinity tables.")
    alias = trees.alias_name(target)
    target.replace(_aliased(table, alias))
    if isinstance(tree, exp.Insert):
        return Merged(generated(_insert(tree, table), "spark"), table)
    if isinstance(tree, exp.Merge):
        _merge(tree, table, alias)
        return Merged(generated(tree, "spark"), table)
    if isinstance(tree, exp.Delete):
        tree = _delete(tree, table, alias)
        return Merged(generated(tree, "spark"))
    moves = _set_version(tree, table, alias)
    return Merged(generated(tree, "spark"), table if moves else None)


def _aliased(table: JournalTable, alias: exp.Identifier) -> exp.Table:
    found = trees.journal(table)
    found.set("alias", exp.TableAlias(this=alias.copy()))
    return found


# -- versions -------------------------------------------------------------------------------------------


def _after(table: JournalTable, newest: exp.Expr) -> exp.Expr:
    """The version after this one; NULL counts as none."""
    if table.version_type == "BIGINT":
        known = exp.Coalesce(this=newest, expressions=[exp.Literal.number(0)])
        return exp.Add(this=known, expression=exp.Literal.number(1))
    tick = exp.Add(this=newest, expression=exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="MICROSECOND")))
    return exp.Anonymous(this="greatest", expressions=[exp.CurrentTimestamp(), tick])


def _newest_of(table: JournalTable, key: list[exp.Expr]) -> exp.Expr:
    """The newest stored version of a key, deleted or not."""
    same = [exp.EQ(this=trees.column(k, "v"), expression=e.copy()) for k, e in zip(table.key, key, strict=True)]
    source = exp.Table(this=trees.identifier(table.versions_view), alias=exp.TableAlias(this=trees.identifier("v")))
    return exp.Subquery(this=trees.select([exp.Max(this=trees.column(table.version, "v"))], source, same))


def _assigned(column: str, value: exp.Expr) -> exp.EQ:
    return exp.EQ(this=trees.column(column), expression=value)


# -- statements -----------------------------------------------------------------------------------------


def _set_version(node: exp.Update, table: JournalTable, alias: exp.Identifier) -> bool:
    """Adds the next version to SET; whether a key column is SET, so that rows may come to keys with a history."""
    values: dict[str, exp.Expr] = {}
    for assignment in node.expressions:
        if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
            raise TrinityError("NOT_SUPPORTED", f"UPDATE {table}: write SET column = value for each column.")
        name = trees.folded(assignment.this.this)
        table.visible_column(name)
        values[name] = assignment.expression
    own = trees.column(table.version, alias)
    moves = bool(values.keys() & set(table.key))
    if moves:
        key = [values.get(k) or trees.column(k, alias) for k in table.key]
        least = exp.Coalesce(this=_newest_of(table, key), expressions=[own.copy()])
        own = exp.Anonymous(this="greatest", expressions=[own, least])  # type: ignore[assignment]
    node.append("expressions", _assigned(table.version, _after(table, own)))
    return moves


def _deleting(table: JournalTable, alias: exp.Identifier) -> list[exp.Expr]:
    next_one = _after(table, trees.column(table.version, alias))
    return [_assigned(table.version, next_one), _assigned(table.subsequent, next_one.copy())]


def _delete(node: exp.Delete, table: JournalTable, alias: exp.Identifier) -> exp.Update:
    """DELETE as an UPDATE of both version columns; USING becomes EXISTS, since a row may meet several others."""
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


def _insert(node: exp.Insert, table: JournalTable) -> exp.Merge:
    """INSERT as a MERGE that matches nothing: Trinity refuses keys that are live or come twice (M4)."""
    if isinstance(node.this, exp.Schema):
        columns = [table.visible_column(trees.folded(c)).name for c in node.this.expressions]
    else:
        columns = [c.name for c in table.visible]
    missing = [k for k in table.key if k not in columns]
    if missing:
        raise TrinityError("CONSTRAINT_VIOLATION", f"INSERT INTO {table} leaves out key column '{missing[0]}'.")
    source = node.expression
    if isinstance(source, exp.Values) and any(trees.is_default(v) for r in source.expressions for v in r.expressions):
        raise TrinityError("NOT_SUPPORTED", f"INSERT INTO {table}: leave a column out instead of writing DEFAULT.")
    query = source.unnest() if isinstance(source, exp.Subquery) else source
    if isinstance(query, exp.Values):
        query = trees.select([exp.Star()], query)
    assert isinstance(query, exp.Query)
    if node.args.get("with_") is not None:
        query.set("with_", node.args["with_"])
    given = trees.derived(query, _NEW, [trees.identifier(c) for c in columns])
    newest = _newest_of(table, [trees.column(k, _NEW) for k in table.key])
    values = [*(trees.column(c, _NEW) for c in columns), _after(table, newest)]
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    inserting = exp.When(matched=False, then=_inserting([*columns, table.version], values))
    return exp.Merge(this=target, using=given, on=exp.false(), whens=exp.Whens(expressions=[inserting]))


def _inserting(columns: list[str], values: list[exp.Expr]) -> exp.Insert:
    return exp.Insert(
        this=exp.Tuple(expressions=[trees.column(c) for c in columns]), expression=exp.Tuple(expressions=values)
    )


def _merge(node: exp.Merge, table: JournalTable, alias: exp.Identifier) -> None:
    """Adds versions to each clause; DELETE becomes an UPDATE of both version columns."""
    for when in node.args["whens"].expressions:
        then = when.args["then"]
        if isinstance(then, exp.Update):
            if not then.expressions:
                raise TrinityError("NOT_SUPPORTED", f"MERGE INTO {table}: list the columns instead of UPDATE SET *.")
            _set_version(then, table, alias)
        elif isinstance(then, exp.Insert):
            when.set("then", _merge_insert(then, table, node, alias))
        elif str(then.name).upper() == "DELETE":
            when.set("then", exp.Update(expressions=_deleting(table, alias)))


def _merge_insert(then: exp.Insert, table: JournalTable, node: exp.Merge, alias: exp.Identifier) -> exp.Insert:
    values = list(then.expression.expressions) if isinstance(then.expression, exp.Tuple) else []
    if not values:
        raise TrinityError("NOT_SUPPORTED", f"MERGE INTO {table}: list the values instead of INSERT *.")
    if isinstance(then.this, exp.Tuple):
        columns = [table.visible_column(trees.folded(c.this)).name for c in then.this.expressions]
    else:
        columns = [c.name for c in table.visible][: len(values)]
    given = dict(zip(columns, values, strict=False))
    key = (
        [given[k] for k in table.key] if set(table.key) <= set(given) else key_of_source(node.args["on"], table, alias)
    )
    if key is None or len(columns) != len(values):
        raise TrinityError(
            "CONSTRAINT_VIOLATION", f"MERGE INTO {table}: INSERT has to give the key and as many values."
        )
    return _inserting([*columns, table.version], [*(v.copy() for v in values), _after(table, _newest_of(table, key))])
