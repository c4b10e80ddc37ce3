"""MERGE: one join of the source with the live rows, one searched CASE, one list of changes."""

from __future__ import annotations

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.assignments import assignments
from trinity.journal.changes import Action, Changes, chosen_action
from trinity.journal.locks import Lock, is_locked, lock_of
from trinity.journal.reading import VERSION, live_rows
from trinity.journal.returning import expand
from trinity.journal.tables import JournalTable
from trinity.journal.writing import Names, RewrittenChange
from trinity.predicates.comparisons import conjuncts, equalities

_PRESENT = "_trinity_in_source"


def merge(node: exp.Merge, table: JournalTable, alias: exp.Identifier, dialect: str, names: Names) -> RewrittenChange:
    """Rewrite a MERGE; references in its source and conditions have been replaced already."""
    source, name = node.args["using"], source_name(node)
    whens = list(node.args["whens"].expressions)
    by_source = any(w.args.get("source") for w in whens)
    actions = [_action(w, table, alias, name, dialect) for w in whens]
    on: exp.Expr = node.args["on"]
    key = key_of_source(on, table, alias)
    lock = Lock(table)
    plain = source.copy()
    if key is not None and not by_source and not table.unique_keys and _inserts_key(actions, table, key):
        base = trees.select([], plain.copy())
        if (clause := node.args.get("with_")) is not None:
            base.set("with_", clause.copy())
        lock = lock_of(table, base, key, [base, on])
    base = trees.select([], _with_source_mark(plain, name) if by_source else plain)
    if lock.keys is not None and key is not None:
        base = trees.select([], trees.derived(_only_locked(plain, name, table, key), name))
    live = trees.derived(live_rows(table, dialect, versioned=True), alias)
    base.append("joins", exp.Join(this=live, side="FULL" if by_source else "LEFT", on=on.copy()))
    changes = Changes(table, alias, base, actions, _is_duplicate(actions, table, alias))
    return changes.build(lock, names, expand(node, table, alias, [source]))


def source_name(node: exp.Merge) -> exp.Identifier:
    """Return the alias, or the name, of the source of a MERGE. Raise SYNTAX_ERROR without one."""
    name = trees.alias_name(node.args["using"])
    if not isinstance(name, exp.Identifier):
        raise TrinityError("SYNTAX_ERROR", "The source of MERGE needs an alias.")
    return name


def _action(when: exp.When, table: JournalTable, alias: exp.Identifier, source: exp.Identifier, dialect: str) -> Action:
    by_source = bool(when.args.get("source"))
    matched = bool(when.args.get("matched"))
    missing = trees.column(_PRESENT, source) if by_source else trees.column(VERSION, alias)
    condition: exp.Expr = exp.Is(this=missing, expression=exp.Null())
    if matched and not by_source:
        condition = exp.Not(this=condition)
    extra = when.args.get("condition")
    if extra is not None:
        extra = extra.copy()
        if not matched and not by_source:
            extra = _of_source(extra, source)
        condition = exp.and_(condition, extra, copy=False)
    then = when.args["then"]
    if isinstance(then, exp.Update):
        return Action("U", condition, assignments(then.expressions, table, dialect))
    if isinstance(then, exp.Insert):
        return Action("I", condition, _inserted_values(then, table, source, dialect))
    if str(then.name).upper() == "DELETE":
        return Action("D", condition, {})
    return Action("N", condition, {})


def _inserted_values(
    then: exp.Insert, table: JournalTable, source: exp.Identifier, dialect: str
) -> dict[str, exp.Expr]:
    """Return a value for each column: the given one, or the DEFAULT."""
    given = {name: _of_source(v.copy(), source) for name, v in listed_values(then, table) if not trees.is_default(v)}
    return {c.name: given.get(c.name) or trees.default_of(c, dialect) for c in table.written}


def listed_values(then: exp.Insert, table: JournalTable) -> list[tuple[str, exp.Expr]]:
    """Return the columns and values of the INSERT of a WHEN clause; without a list the first columns."""
    values = list(then.expression.expressions) if isinstance(then.expression, exp.Tuple) else []
    columns = list(table.visible)[: len(values)]
    if isinstance(then.this, exp.Tuple) and then.expression is not None:
        columns = [table.visible_column(trees.folded(c.this)) for c in then.this.expressions]
    if len(columns) != len(values):
        raise TrinityError(
            "SYNTAX_ERROR", f"MERGE INTO {table}: INSERT lists {len(columns)} columns, {len(values)} values."
        )
    return [(c.name, v) for c, v in zip(columns, values, strict=True)]


def _of_source(node: exp.Expr, source: exp.Identifier) -> exp.Expr:
    """Qualify an expression's bare columns with the source; the target has no row there."""
    outside = node.walk(prune=lambda inner: isinstance(inner, exp.Query))
    for column in [found for found in outside if isinstance(found, exp.Column)]:
        if column.args.get("table") is None:
            column.set("table", source.copy())
    return node


def key_of_source(on: exp.Expr, table: JournalTable, alias: exp.Identifier) -> list[exp.Expr] | None:
    """Return the source's expressions that ON equates with the key; None unless it does so for the whole key."""
    name = trees.folded(alias)

    def key_column(side: exp.Expr) -> str | None:
        if not isinstance(side, exp.Column) or side.args.get("table") is None:
            return None
        own = trees.folded(side.args["table"]) == name and trees.folded(side.this) in table.key
        return trees.folded(side.this) if own else None

    found, _ = equalities(conjuncts(on), key_column, lambda value: not _mentions(value, name))
    return [found[k] for k in table.key] if set(found) == set(table.key) else None


def _mentions(value: exp.Expr, name: str) -> bool:
    """Return True when a column may be the target's: it is qualified with the target, or not at all."""
    columns = list(value.find_all(exp.Column))
    return any(c.args.get("table") is None or trees.folded(c.args["table"]) == name for c in columns)


def _inserts_key(actions: list[Action], table: JournalTable, key: list[exp.Expr]) -> bool:
    """Return True when the statement writes only keys that ON equates: UPDATE sets none, and INSERT writes those."""
    for action in actions:
        if action.kind == "U" and action.values.keys() & set(table.key):
            return False
        if action.kind == "I" and any(action.values[k] != e for k, e in zip(table.key, key, strict=True)):
            return False
    return True


def _only_locked(source: exp.Expr, name: exp.Identifier, table: JournalTable, key: list[exp.Expr]) -> exp.Select:
    every = exp.Column(this=exp.Star(), table=name.copy())
    return trees.select([every], source.copy(), [is_locked(table, key)])


def _with_source_mark(source: exp.Expr, name: exp.Identifier) -> exp.Subquery:
    """Add a column to the source that marks its rows, which those added by a FULL JOIN lack."""
    every = exp.Column(this=exp.Star(), table=name.copy())
    return trees.derived(trees.select([every, exp.alias_(exp.true(), _PRESENT)], source), name)


def _is_duplicate(actions: list[Action], table: JournalTable, alias: exp.Identifier) -> exp.Expr:
    """Return a condition that is true when another source row changes the same target row."""
    changing = [i for i, a in enumerate(actions) if a.kind in "UD"]
    if not changing:
        return exp.false()
    numbers = [exp.Literal.number(i) for i in changing]
    hits = exp.Window(
        this=exp.Filter(
            this=exp.Count(this=exp.Star(), big_int=True),
            expression=exp.Where(this=exp.In(this=chosen_action(), expressions=numbers)),
        ),
        partition_by=[trees.column(k, alias) for k in table.key],
    )
    several = exp.GT(this=hits, expression=exp.Literal.number(1))
    present = exp.Not(this=exp.Is(this=trees.column(VERSION, alias), expression=exp.Null()))
    return exp.and_(present, several, copy=False)
