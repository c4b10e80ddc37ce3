"""The general form of a write: a list of changes, computed once, and appends made from it.

``_trinity_changed`` has a row for each row that the statement changes or inserts: the old values and version, the new
values, and the kind of change. From it come the deletions (of deleted rows and of keys that rows move away from) and
the new versions. A key that is vacated and filled by the same statement gets only the new version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlglot import exp

from trinity.journal import tree_parts as trees
from trinity.journal.locks import Lock
from trinity.journal.reading import VERSION, latest_of_key
from trinity.journal.returning import of_target
from trinity.journal.tables import JournalTable
from trinity.journal.versions import fail_where, inserted_version, next_version
from trinity.journal.writing import Names, RewrittenChange, append

_KIND, _ACTION, _AGAIN, _OLD_VERSION = "kind", "action", "again", "old_version"
_CHOSEN: Final = "_trinity_case"
"""The subquery that chooses the action of a row."""
_CHANGED: Final = "_trinity_c"
"""The list of changes, where it is joined with the rows that are written."""


def chosen_action() -> exp.Column:
    """Return the column with the number of a row's action."""
    return trees.column(_ACTION, _CHOSEN)


@dataclass(frozen=True)
class Action:
    """A change of some of the rows.

    Attributes:
        kind: U(pdate), D(elete) or I(nsert); N(othing) keeps rows from later actions.
        when: the condition; None for all rows.
        values: column -> new value; an update keeps the others, an insert has all.
    """

    kind: Literal["U", "D", "I", "N"]
    when: exp.Expr | None
    values: Mapping[str, exp.Expr]


@dataclass(frozen=True)
class Changes:
    """The changes of one statement.

    Attributes:
        alias: its name in the statement, under which ``base`` has its live rows with their version.
        base: a query without projections: FROM, joins, WHERE.
        actions: the possible changes of a row; the first whose condition holds counts.
        again: condition over ``base``, true where a row is changed a second time, which is an error.
    """

    table: JournalTable
    alias: exp.Identifier
    base: exp.Select
    actions: Sequence[Action]
    again: exp.Expr | None = None

    def build(self, lock: Lock, names: Names, returning: Sequence[exp.Expr] | None) -> RewrittenChange:
        """Build the statement: the list of changes, the appends, and a query for the count or RETURNING."""
        changed, vacated, filled = names.new("changed"), names.new("vacated"), names.new("filled")
        other_columns = self._other_columns(returning or ())
        members = [trees.cte(changed, self._changed(other_columns), materialized=True)]
        kinds = {a.kind for a in self.actions}
        moves = any(set(a.values) & set(self.table.key) for a in self.actions if a.kind == "U")
        if "D" in kinds or moves:
            members.append(trees.cte(vacated, self._append_deletions(changed)))
        if kinds & {"U", "I"}:
            members.append(trees.cte(filled, self._append_versions(changed)))
        if returning is None:
            body: exp.Query = trees.select([exp.Count(this=exp.Star(), big_int=True)], exp.to_table(changed))
        else:
            body = self._returning_query(returning, changed, filled if kinds & {"U", "I"} else None, other_columns)
        unique = self.table if self.table.unique_keys and kinds & {"U", "I"} else None
        return RewrittenChange(body, lock, tuple(members), counted=returning is None, unique=unique)

    # -- the list of changes ----------------------------------------------------------------------------

    def _changed(self, other_columns: Sequence[exp.Expr]) -> exp.Select:
        query: exp.Select = self.base.copy()
        conditional = len(self.actions) > 1 or any(a.when is not None for a in self.actions)
        action: exp.Expr | None = None
        if conditional:
            query.append("joins", self._action_join())
            action = chosen_action()
            doing = [exp.Literal.number(i) for i, a in enumerate(self.actions) if a.kind != "N"]
            query.where(exp.In(this=action.copy(), expressions=doing) if doing else exp.false(), copy=False)
        old = [trees.column(c.name, self.alias) for c in self.table.written]
        new = [self._new_value(c.name, action) for c in self.table.written]
        kinds = [(i, exp.Literal.string(a.kind)) for i, a in enumerate(self.actions)]
        again = self.again.copy() if self.again is not None else exp.false()
        columns = [
            (_by_action(action, kinds), _KIND),
            (trees.column(VERSION, self.alias), _OLD_VERSION),
            (again, _AGAIN),
            *((value, f"old_{i}") for i, value in enumerate(old)),
            *((value, f"new_{i}") for i, value in enumerate(new)),
            *((value.copy(), f"out_{i}") for i, value in enumerate(other_columns)),
        ]
        query.set("expressions", [exp.alias_(value, name) for value, name in columns])
        return query

    def _action_join(self) -> exp.Join:
        """Join the number of the first action whose condition holds, as a column for other expressions."""
        cases = [
            exp.If(this=a.when.copy() if a.when is not None else exp.true(), true=exp.Literal.number(i))
            for i, a in enumerate(self.actions)
        ]
        chosen = exp.Select(expressions=[exp.alias_(exp.Case(ifs=cases), _ACTION)])
        alias = exp.TableAlias(this=trees.identifier(_CHOSEN))
        return exp.Join(this=exp.Lateral(this=exp.Subquery(this=chosen), alias=alias), kind="CROSS")

    def _new_value(self, column: str, action: exp.Expr | None) -> exp.Expr:
        """Return the column's new value, evaluated only for rows of its action."""
        kept = trees.column(column, self.alias)
        given = [
            (i, trees.typed_for(a.values[column].copy(), self.table.column(column)))
            for i, a in enumerate(self.actions)
            if column in a.values
        ]
        return _by_action(action, given, kept) if given else kept

    # -- the appends ------------------------------------------------------------------------------------

    def _key(self, age: str, of: str) -> list[exp.Expr]:
        indexes = {c.name: index for index, c in enumerate(self.table.written)}
        return [trees.column(f"{age}_{indexes[k]}", of) for k in self.table.key]

    def _same_key(self, left: list[exp.Expr], right: list[exp.Expr]) -> exp.Expr:
        pairs = zip(left, right, self.table.key, strict=True)
        typed = [
            exp.EQ(
                this=trees.cast(a, self.table.column(k).declared),
                expression=trees.cast(b, self.table.column(k).declared),
            )
            for a, b, k in pairs
        ]
        return exp.and_(*typed, copy=False)

    def _append_deletions(self, changed: str) -> exp.Insert:
        """Append the deletions: of deleted rows, and of keys that rows left and that no row took."""
        count = len(self.table.written)
        leaves_key = exp.or_(
            _is_of_kind("D"),
            exp.and_(
                _is_of_kind("U"),
                exp.Not(this=exp.paren(self._same_key(self._key("new", "c"), self._key("old", "c")))),
            ),
            copy=False,
        )
        takes_key = trees.exists(
            _aliased(changed, "f"),
            [
                exp.NEQ(this=trees.column(_KIND, "f"), expression=exp.Literal.string("D")),
                self._same_key(self._key("new", "f"), self._key("old", "c")),
            ],
        )
        version = self._checked(next_version(self.table, trees.column(_OLD_VERSION, "c")))
        values = [*(trees.column(f"old_{i}", "c") for i in range(count)), version, version.copy()]
        query = trees.select(values, _aliased(changed, "c"), [exp.paren(leaves_key), exp.Not(this=takes_key)])
        columns = [*(c.name for c in self.table.written), self.table.version, self.table.subsequent]
        return append(self.table, columns, query)

    def _append_versions(self, changed: str) -> exp.Insert:
        """Append the new versions: of updated and of inserted rows."""
        vacating = trees.exists(_aliased(changed, "o"), [self._same_key(self._key("old", "o"), self._key("new", "c"))])
        version = inserted_version(
            self.table,
            trees.column(self.table.version, "n"),
            trees.column(self.table.subsequent, "n"),
            vacating,
        )
        values = [*(trees.column(f"new_{i}", "c") for i in range(len(self.table.written))), self._checked(version)]
        written = exp.NEQ(this=trees.column(_KIND, "c"), expression=exp.Literal.string("D"))
        query = trees.select(values, _aliased(changed, "c"), [written])
        query.append("joins", trees.join_lateral(latest_of_key(self.table, self._key("new", "c")), "n"))
        columns = [*(c.name for c in self.table.written), self.table.version]
        return append(self.table, columns, query, [trees.column(c.name) for c in self.table.visible])

    def _checked(self, version: exp.Expr) -> exp.Expr:
        return fail_where(version, trees.column(_AGAIN, "c")) if self.again is not None else version

    # -- RETURNING --------------------------------------------------------------------------------------

    def _other_columns(self, returning: Sequence[exp.Expr]) -> list[exp.Expr]:
        """Return columns of other tables that RETURNING reads; the list of changes has them."""
        found: dict[str, exp.Expr] = {}
        for node in returning:
            if not of_target(node, self.table, self.alias):
                for column in node.find_all(exp.Column):
                    if not of_target(column, self.table, self.alias):
                        found.setdefault(column.sql(), column)
        return list(found.values())

    def _returning_query(
        self, returning: Sequence[exp.Expr], changed: str, filled: str | None, other_columns: Sequence[exp.Expr]
    ) -> exp.Query:
        """Return a query of the new rows as stored, and of deleted rows as they were."""
        names = {column.sql(): trees.column(f"out_{i}", _CHANGED) for i, column in enumerate(other_columns)}
        wanted = [_over_stored_row(e, names) for e in returning]
        queries: list[exp.Query] = []
        if filled is not None:
            query = trees.select(wanted, exp.alias_(exp.to_table(filled), self.alias.copy(), table=True))
            if other_columns:
                stored: list[exp.Expr] = [trees.column(k, self.alias) for k in self.table.key]
                same = self._same_key(self._key("new", _CHANGED), stored)
                query.append("joins", exp.Join(this=_aliased(changed, _CHANGED), on=same))
            queries.append(query)
        if any(a.kind == "D" for a in self.actions):
            rows = [
                exp.alias_(trees.column(f"old_{i}", "c"), trees.identifier(c.name))
                for i, c in enumerate(self.table.written)
            ]
            extra = [trees.column(f"out_{i}", "c") for i in range(len(other_columns))]
            deleted = trees.select([*rows, *extra], _aliased(changed, "c"), [_is_of_kind("D")])
            own = {column.sql(): trees.column(f"out_{i}", self.alias) for i, column in enumerate(other_columns)}
            wanted = [_over_stored_row(e, own) for e in returning]
            queries.append(trees.select(wanted, trees.derived(deleted, self.alias)))
        return queries[0] if len(queries) == 1 else exp.union(*queries, distinct=False, copy=False)


def _by_action(
    action: exp.Expr | None, values: Sequence[tuple[int, exp.Expr]], default: exp.Expr | None = None
) -> exp.Expr:
    """Return the value of a row's action; the only value when there is one action for all rows."""
    if action is None:
        return values[0][1]
    ifs = [exp.If(this=exp.EQ(this=action.copy(), expression=exp.Literal.number(i)), true=value) for i, value in values]
    return exp.Case(ifs=ifs, default=default)


def _is_of_kind(kind: str) -> exp.Expr:
    return exp.EQ(this=trees.column(_KIND, "c"), expression=exp.Literal.string(kind))


def _aliased(name: str, alias: str) -> exp.Table:
    return exp.Table(this=trees.identifier(name), alias=exp.TableAlias(this=trees.identifier(alias)))


def _over_stored_row(node: exp.Expr, names: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return an expression of RETURNING over the stored row, with other tables' columns from the list of changes."""
    copy = node.copy()
    if not names:
        return copy
    holder = exp.Paren(this=copy)
    for column in list(holder.find_all(exp.Column)):
        if column.sql() in names:
            replaced = names[column.sql()].copy()
            top = column.parent is holder
            column.replace(exp.alias_(replaced, column.this.copy()) if top else replaced)
    found: exp.Expr = holder.this
    return found
