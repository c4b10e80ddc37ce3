"""Queries compiled to relations: the part of Spark's SELECT that this process executes; it refuses everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from trinity.engine.expressions import (
    VOID,
    Compiled,
    Refused,
    Scope,
    ScopeColumn,
    SubqueryRows,
    common_type,
    compile_expression,
    compile_predicate,
    or_refuse,
)
from trinity.merge.kernels.keys import canonical_floats
from trinity.predicates.comparisons import conjuncts
from trinity.predicates.conditions import with_lower_names
from trinity.spi import DataType
from trinity.sql.local.aggregates import aggregate_of, as_one_value
from trinity.sql.local.column_names import with_column_names
from trinity.sql.local.generators import Generated
from trinity.sql.local.grouping import GroupBy, keys_replaced
from trinity.sql.local.joins import On, word_of
from trinity.sql.local.refusals import refuse_other_clauses
from trinity.sql.local.relations import Pages, Relation, cast_to, filtered, limited, new_field, projected, union_all
from trinity.sql.local.result_names import column_name
from trinity.sql.local.rewrites import simpler
from trinity.sql.local.subqueries import Subqueries, of_subquery_rows, own_nodes
from trinity.sql.local.values import one_row, value_rows
from trinity.sql.local.windows import Windows, ordering

Scan = Callable[[exp.Table, Sequence[str] | None, exp.Expr | None], Relation]
"""A function that returns the rows of a table: (table, columns or None for all, condition or None) -> rows.

It may leave out rows that do not meet the condition.
"""


def compile_query(
    tree: exp.Expr,
    scan: Scan,
    shape: Callable[[exp.Table], Relation],
    timezone: Callable[[], str],
    *,
    any_order: bool,
) -> Relation:
    """Return the rows of a query in Spark's dialect; nothing is read yet.

    Args:
        tree: the query.
        scan: returns the rows of a table.
        shape: returns a relation without rows that has the columns of a table.
        timezone: returns the session's time zone.
        any_order: True to allow values that depend on the order of the rows, as they do in Spark.

    Raises:
        Refused: for a query that only Spark executes.
        TrinityError: for a table or column that does not exist.
    """
    return _Queries(scan, shape, timezone, any_order).query(tree, {})


_Common: TypeAlias = Mapping[str, tuple[exp.CTE, Any]]
"""Name of a WITH query in lower case -> (the query, the WITH queries that it may use)."""


_Columns: TypeAlias = Sequence[tuple[str, exp.Expr]]
"""Name and expression of each column of a result."""


_Order: TypeAlias = Sequence[tuple[exp.Expr, str]]
"""Each expression of ORDER BY, and the words after it in DuckDB's SQL."""


@dataclass(frozen=True)
class _Queries:
    scan: Scan
    shape: Callable[[exp.Table], Relation]
    timezone: Callable[[], str]
    any_order: bool

    def query(self, tree: exp.Expr, common: _Common) -> Relation:
        """Return the rows of a query. It may use the WITH queries around it, ``common``."""
        common = self._with(tree, common)
        if isinstance(tree, exp.Subquery):
            refuse_other_clauses(tree, "this", "with_")
            return self.query(tree.this, common)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, common)
        if isinstance(tree, exp.Select):
            return _Select(self, tree, common).rows()
        if isinstance(tree, exp.Values):
            refuse_other_clauses(tree, "expressions")
            return value_rows(tree, (), self.timezone)
        raise Refused(f"only Spark runs {tree.key.upper()}")

    def _with(self, tree: exp.Expr, common: _Common) -> _Common:
        clause = tree.args.get("with_")
        if clause is None:
            return common
        refuse_other_clauses(clause, "expressions")
        for cte in clause.expressions:
            refuse_other_clauses(cte, "this", "alias")
            common = {**common, cte.alias.lower(): (cte, common)}
        return common

    def names_in(self, tree: exp.Expr, common: _Common) -> list[str]:
        """Return the names of a query's columns, without planning a read."""
        without_rows = replace(self, scan=lambda node, _names, _condition: self.shape(node))
        return [column.name for column in without_rows.query(tree, common).columns]

    def _set_operation(self, tree: exp.SetOperation, common: _Common) -> Relation:
        """Return the rows of UNION, INTERSECT or EXCEPT."""
        refuse_other_clauses(tree, "this", "expression", "distinct", "with_", "order", "limit", "offset")
        first, second = self.query(tree.this, common), self.query(with_column_names(tree.expression), common)
        if len(first.columns) != len(second.columns):
            raise Refused(f"the parts of {tree.key.upper()} have different numbers of columns")
        pairs = list(zip(first.columns, second.columns, strict=True))
        kinds = [_united_type(one.type, other.type) for one, other in pairs]
        first, second = (cast_to(rows, kinds, self.timezone) for rows in (first, second))
        if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
            found: Relation = union_all(first, second)
        elif isinstance(tree, exp.Union):
            found = _distinct(union_all(first, second))
        else:
            found = _compared_whole(tree, first, second)
        order = _order(tree, [(c.name, _column(c)) for c in found.columns], found)
        scope, keys = Scope(found.columns), list[str]()
        for key, words in order:
            if not isinstance(key, exp.Column):
                raise Refused(f"ORDER BY of {tree.key.upper()} names no column of it")
            keys.append(f"{scope.find(key.text('table'), key.name).field} {words}")
        if not keys:
            return _limited(tree, found)
        return found.query().over(f"SELECT * FROM {{0}} ORDER BY {', '.join(keys)}{_limit(tree)}", found.columns)


def _compared_whole(tree: exp.SetOperation, first: Relation, second: Relation) -> Relation:
    """Return the rows of INTERSECT or EXCEPT."""
    first, second = _with_canonical_floats(first), _with_canonical_floats(second)
    word = f"{tree.key.upper()}{'' if tree.args.get('distinct') else ' ALL'}"
    return first.query().over(f"SELECT * FROM {{0}} {word} SELECT * FROM {{1}}", first.columns, second.query())


def _with_canonical_floats(relation: Relation) -> Relation:
    """Return rows that DuckDB compares as Spark does: 0.0 replaces -0.0, and one NaN all others.

    Raises Refused if a column's type is one that DuckDB compares otherwise.
    """
    for column in relation.columns:
        as_one_value(column.type)
    floats = [index for index, column in enumerate(relation.columns) if column.type.is_floating]
    if not floats:
        return relation
    pages = relation.pages()

    def computed() -> Iterator[pa.RecordBatch]:
        for page in pages.open():
            for index in floats:
                page = page.set_column(index, page.schema.field(index), canonical_floats(page.column(index)))
            yield page

    return Pages(pages.columns, computed)


def _canonical_floats_of(value: Compiled, rows: pa.RecordBatch) -> pa.Array:
    return canonical_floats(value.evaluate(rows))


def _distinct(relation: Relation, ordered: str = "") -> Relation:
    relation = _with_canonical_floats(relation)
    return relation.query().over(f"SELECT DISTINCT * FROM {{0}}{ordered}", relation.columns)


@dataclass(frozen=True)
class _Select:
    queries: _Queries
    tree: exp.Select
    common: _Common
    subquery_rows: dict[str, SubqueryRows] = field(default_factory=dict)

    def rows(self) -> Relation:
        """Return the rows of a SELECT."""
        refuse_other_clauses(
            self.tree, "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
            "distinct", "with_", "laterals",
        )  # fmt: skip
        source, condition = self._source()
        subqueries = self._subqueries(source)
        made = self._generated(source)
        wanted: _Columns = [(name, subqueries.within(tree)) for name, tree in self._columns(source, made)]
        order: _Order = [(subqueries.within(tree), words) for tree, words in _order(self.tree, wanted, source)]
        if made is not None:
            hidden = [replace(column, name=column.field) for column in made.columns]
            source = replace(made, columns=hidden).rows(source if condition is None else filtered(source, condition))
            condition = None
        wanted = [(name, self._simpler(tree, source)) for name, tree in wanted]
        order = [(self._simpler(tree, source), words) for tree, words in order]
        windows = any(tree.find(exp.Window) for tree in (*(tree for _, tree in wanted), *(tree for tree, _ in order)))
        if made is not None and (windows or self._aggregates(wanted, order)):
            raise Refused("only Spark combines EXPLODE with groups or window functions")
        if self._aggregates(wanted, order):
            source, wanted, order, condition = self._grouped(source, condition, wanted, order)
        elif self.tree.args.get("having"):
            raise Refused("HAVING without groups")
        if windows:
            source, wanted, order = self._with_windows(source, condition, wanted, order)
            condition = None
        found = self._projected(source, condition, wanted, order)
        return _limited(self.tree, found)

    def _subqueries(self, source: Relation) -> Subqueries:
        """Return the subqueries of expressions over ``source``, which put their rows into ``subquery_rows``."""
        rows_of = partial(self.queries.query, common=self.common)
        names_in = partial(self.queries.names_in, common=self.common)
        return Subqueries(rows_of, names_in, Scope(source.columns), self.subquery_rows)

    # -- FROM and WHERE ---------------------------------------------------------------------------------

    def _source(self) -> tuple[Relation, Compiled | None]:
        """Return the rows of FROM, and the condition that is still to be applied."""
        if self.tree.args.get("from_") is None:
            if self._stars():
                raise Refused("a SELECT without FROM has no columns")
            where = self.tree.args.get("where")
            return one_row(), self._where(where.this, one_row()) if where is not None else None
        joins, where = self.tree.args.get("joins") or [], self.tree.args.get("where")
        condition = where.this if where is not None else None
        views = self.tree.args.get("laterals") or []
        if views and joins and [*self.tree.args].index("laterals") < [*self.tree.args].index("joins"):
            raise Refused("a JOIN follows LATERAL VIEW")
        whole = conjuncts(condition) if condition is not None else ()
        parts = [part for part in whole if not part.find(exp.Query) and not _names_some(part, views)]
        relation = self._table(self.tree.args["from_"].this, None if joins or not parts else exp.and_(*parts))
        inner = all(word_of(join) in ("INNER", "CROSS") for join in joins)
        parts = parts if joins and inner else []
        relation = self._filter_by_own_conditions(relation, parts)
        for join in joins:
            relation = self._joined(relation, join, parts)
        for view in views:
            relation = self._viewed(relation, view)
        return relation, self._where(condition, relation) if condition is not None else None

    def _where(self, condition: exp.Expr, source: Relation) -> Compiled:
        return self._predicate(self._subqueries(source).within(condition), Scope(source.columns))

    def _filter_by_own_conditions(self, relation: Relation, parts: Sequence[exp.Expr]) -> Relation:
        """Filter rows by those parts of a condition that name columns of this table alone."""
        scope, names = Scope(relation.columns), {c.qualifier.lower() for c in relation.columns}
        for part in parts:
            columns = list(part.find_all(exp.Column))
            if columns and all(column.text("table").lower() in names for column in columns):
                relation = filtered(relation, self._predicate(part, scope))
        return relation

    def _table(self, node: exp.Expr, condition: exp.Expr | None) -> Relation:
        """Return the rows of an item of FROM; the condition may leave some of them out."""
        alias = node.args.get("alias")
        if alias is not None and isinstance(alias.this, exp.Parameter | exp.Placeholder):  # the version of t@v1, say
            raise Refused(f"'{alias.this.name}' is no alias; an earlier version is read by VERSION AS OF")
        if isinstance(node, exp.Values):
            refuse_other_clauses(node, "expressions", "alias")
            names = [column.name for column in alias.columns] if alias is not None else []
            return _with_qualifier(value_rows(node, names, self.queries.timezone), node.alias)
        if isinstance(node, exp.Subquery):
            refuse_other_clauses(node, "this", "alias")
            return _with_column_aliases(_with_qualifier(self.queries.query(node.this, self.common), node.alias), alias)
        if alias is not None and alias.columns:
            raise Refused("a table's alias names columns")
        if not isinstance(node, exp.Table):
            raise Refused(f"only Spark reads '{node.sql(dialect='spark')}'")
        refuse_other_clauses(node, "this", "db", "catalog", "alias", "version")
        named = self.common.get(node.name.lower()) if len(node.parts) == 1 else None
        if named is not None:
            cte, around = named
            found = _with_column_aliases(self.queries.query(cte.this, around), cte.args["alias"])
            return _with_qualifier(found, node.alias or node.name)
        above = () if node.alias else tuple(part.name for part in node.parts[:-1])
        return _with_qualifier(
            self.queries.scan(node, self._mentioned_columns(), condition), node.alias or node.name, above
        )

    def _stars(self) -> bool:
        stars = (node for node in own_nodes(self.tree) if isinstance(node, exp.Star))
        return any(not isinstance(star.parent, exp.Count) for star in stars)

    def _mentioned_columns(self) -> list[str] | None:
        """Return the names of all columns that the SELECT mentions; None if a star mentions all."""
        if self._stars():
            return None
        parts = [part for column in self.tree.find_all(exp.Column) for part in column.parts]
        merged = [name for join in self.tree.args.get("joins") or [] for name in join.args.get("using") or []]
        return sorted({part.name.lower() for part in (*parts, *merged)})

    def _joined(self, left: Relation, join: exp.Join, parts: Sequence[exp.Expr]) -> Relation:
        refuse_other_clauses(join, "this", "side", "kind", "on", "using")
        word, using = word_of(join), [name.name for name in join.args.get("using") or []]
        if word is None or (join.args.get("on") is None and not using and word != "CROSS"):
            raise Refused(f"only Spark joins as in '{join.sql(dialect='spark')}'")
        word = "INNER" if word == "CROSS" and join.args.get("on") is not None else word
        right = self._filter_by_own_conditions(self._table(join.this, None), parts)
        one, other = Scope(left.columns), Scope(right.columns)
        if using:
            on = On.of_names(using, one, other, self.queries.timezone)
        elif word == "CROSS":
            on = On.within(parts, one, other, self.queries.timezone)
        else:
            on = On.of(conjuncts(join.args["on"]), one, other, self.queries.timezone)
        columns = [*left.columns] if word in ("SEMI", "ANTI") else [*left.columns, *right.columns]
        values = {column: column.field for column in columns}
        if using:
            values = _merged(values, [(one.find("", name), other.find("", name)) for name in using], word)
        left, right, how = on.applied(word, left, right)
        listed = ", ".join(f"{value} AS {column.field}" for column, value in values.items())
        found: Relation = left.query().over(f"SELECT {listed} FROM {{0}} {how}", tuple(values), right.query())
        for condition in on.of_both:
            found = filtered(found, condition)
        return found

    def _viewed(self, source: Relation, view: exp.Lateral) -> Relation:
        """Return the rows with the columns of a LATERAL VIEW."""
        refuse_other_clauses(view, "this", "view", "outer", "alias")
        alias = view.args.get("alias")
        if not isinstance(view.this, exp.Explode) or not view.args.get("view") or alias is None or not alias.name:
            raise Refused(f"only Spark reads '{view.sql(dialect='spark')}'")
        value, names = self._expression(view.this.this, Scope(source.columns)), [c.name for c in alias.columns]
        return Generated.of(view.this, value, names, alias.name, outer=bool(view.args.get("outer"))).rows(source)

    # -- SELECT -----------------------------------------------------------------------------------------

    def _generated(self, source: Relation) -> Generated | None:
        """Return the rows of an EXPLODE or POSEXPLODE in the SELECT list; None without such a call."""
        nodes = [node for node in self.tree.expressions if isinstance(_unnamed(node), exp.Explode)]
        if not nodes:
            return None
        node, names = nodes[0], list[str]()
        if isinstance(node, exp.Alias):
            names = [column_name(node, source.columns)]
        elif isinstance(node, exp.Aliases):
            names = [name.name for name in node.expressions]
        if len(nodes) > 1:
            raise Refused("a SELECT makes rows by more than one function")
        function = _unnamed(node)
        return Generated.of(function, self._expression(function.this, Scope(source.columns)), names)

    def _columns(self, source: Relation, made: Generated | None) -> list[tuple[str, exp.Expr]]:
        """Return the name and the expression of each column of the result."""
        found = list[tuple[str, exp.Expr]]()
        for node in self.tree.expressions:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                refuse_other_clauses(node, *(("this", "table") if isinstance(node, exp.Column) else ("except_",)))
                found += [(c.name, _column(c)) for c in _of_star(source.columns, node)]
            elif made is not None and _unnamed(node) is made.node:
                found += [(c.name, exp.column(c.field, quoted=True)) for c in made.columns]
            else:
                found.append((column_name(node, source.columns), node.this if isinstance(node, exp.Alias) else node))
        _refuse_earlier_aliases(found, source)
        return found

    def _projected(self, source: Relation, condition: Compiled | None, wanted: _Columns, order: _Order) -> Relation:
        scope = Scope(source.columns)
        values = [(name, self._expression(tree, scope)) for name, tree in wanted]
        columns = [(ScopeColumn(name, new_field(), _shown_type(value)), value) for name, value in values]
        shown = tuple(column for column, _ in columns)
        if self.tree.args.get("distinct"):
            refuse_other_clauses(self.tree.args["distinct"])
            fields = [column.field for column in shown]
            named = self.tree.args["order"].expressions if order else []
            keys = [
                f"{fields[_result_position(node.this, wanted)]} {words}"
                for node, (_, words) in zip(named, order, strict=True)
            ]
            ordered = f" ORDER BY {', '.join(keys)}{_limit(self.tree)}" if keys else ""
            return _distinct(projected(source, columns, condition), ordered)
        keys = list[str]()
        for tree, words in order:
            value = self._expression(tree, scope)
            if value.type.nested or value.type == VOID:
                raise Refused(f"only Spark orders by {value.type}")
            columns.append((ScopeColumn("", new_field(), _result_type(value.type)), value))
            keys.append(f"{columns[-1][0].field} {words}")
        found = projected(source, columns, condition)
        if not keys:
            return found
        listed = ", ".join(column.field for column in shown)
        return found.query().over(f"SELECT {listed} FROM {{0}} ORDER BY {', '.join(keys)}{_limit(self.tree)}", shown)

    def _expression(self, tree: exp.Expr, scope: Scope) -> Compiled:
        return or_refuse(compile_expression(tree, replace(scope, queries=self.subquery_rows), self.queries.timezone))

    def _predicate(self, tree: exp.Expr, scope: Scope) -> Compiled:
        return or_refuse(compile_predicate(tree, replace(scope, queries=self.subquery_rows), self.queries.timezone))

    def _simpler(self, tree: exp.Expr, source: Relation) -> exp.Expr:
        """Return an expression whose aggregate functions are those that DuckDB computes."""
        return simpler(tree, lambda argument: self._expression(argument, Scope(source.columns)).type)

    def _with_windows(
        self, source: Relation, condition: Compiled | None, wanted: _Columns, order: _Order
    ) -> tuple[Relation, _Columns, _Order]:
        """Return the rows with the values of window functions, and the result's columns and order in terms of these."""
        windows = Windows(self._expression, Scope(source.columns), any_order=self.queries.any_order)
        shown = [(name, windows.within(tree)) for name, tree in wanted]
        ordered = [(windows.within(tree), words) for tree, words in order]
        return windows.rows(source if condition is None else filtered(source, condition)), shown, ordered

    # -- GROUP BY ---------------------------------------------------------------------------------------

    def _aggregates(self, wanted: _Columns, order: _Order) -> bool:
        trees = [*(tree for _, tree in wanted), *(tree for tree, _ in order)]
        return bool(self.tree.args.get("group")) or any(map(_aggregated, trees))

    def _keys(self, wanted: _Columns, source: Relation) -> exp.Group:
        """Return GROUP BY with its aliases and numbers replaced by expressions over the rows of FROM."""
        clause = self.tree.args.get("group")
        if clause is None:
            return exp.Group()
        if clause.args.get("all"):
            refuse_other_clauses(clause, "all")
            return exp.Group(expressions=_plain_columns(wanted))
        return keys_replaced(clause, lambda key: _resolve_aliases(key, wanted, source, outer=False))

    def _grouped(
        self, source: Relation, condition: Compiled | None, wanted: _Columns, order: _Order
    ) -> tuple[Relation, _Columns, _Order, Compiled | None]:
        """Group the rows.

        Returns:
            the groups; the columns and the order of the result in terms of keys and aggregates; the condition of
            HAVING, or None.
        """
        groups = _Groups(self, Scope(source.columns))
        groups.group(self._keys(wanted, source))
        having = self.tree.args.get("having")
        of_groups = None
        if having is not None:
            meant = _resolve_aliases(having.this, wanted, source, outer=False)
            of_groups = groups.within(self._simpler(self._subqueries(source).within(meant), source))
        shown = [(name, groups.within(tree)) for name, tree in wanted]
        ordered = [(groups.within(tree), words) for tree, words in order]
        found = groups.rows(source, condition)
        return found, shown, ordered, None if of_groups is None else self._predicate(of_groups, Scope(found.columns))


class _Groups:
    """The keys and aggregates of a SELECT with groups, each under a field of its own.

    ``inner`` are the columns that DuckDB groups, ``outer`` those of the groups with their text in DuckDB's SQL.
    """

    def __init__(self, select: _Select, scope: Scope) -> None:
        self.select, self.scope = select, scope
        self.fields: dict[str, str] = {}
        self.inner: list[tuple[ScopeColumn, Compiled]] = []
        self.outer: list[tuple[ScopeColumn, str]] = []
        self.by = GroupBy("", ())

    def group(self, clause: exp.Group) -> None:
        """Set the keys of GROUP BY. Raises Refused for keys that only Spark groups by."""
        self.by = GroupBy.of(clause, self._key)

    def _key(self, tree: exp.Expr) -> str:
        if (known := self.fields.get(self._text(tree))) is not None:
            return known
        value = self.select._expression(tree, self.scope)
        as_one_value(value.type)
        if value.type.is_floating:  # groups of 0.0 and -0.0 are one, under 0.0
            value = replace(value, run=partial(_canonical_floats_of, value), column=False)
        kind, field = _shown_type(value), new_field()
        self.inner.append((ScopeColumn(field, field, kind), value))
        self.outer.append((ScopeColumn(field, field, kind), field))
        self.fields[self._text(tree)] = field
        return field

    def within(self, tree: exp.Expr) -> exp.Expr:
        """Return an expression in terms of the fields of keys and aggregates."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Grouping | exp.GroupingId):
                fields = [self.fields.get(self._text(key)) for key in node.expressions]
                return _column(self._added(*self.by.grouping(node, fields)))
            if isinstance(node, exp.AggFunc) and not _over_window(node):
                return _column(self._aggregate(node))
            if isinstance(node, exp.Column) and of_subquery_rows(node):
                raise Refused("only Spark runs a correlated subquery beside groups")
            field = self.fields.get(self._text(node))
            return exp.column(field, quoted=True) if field is not None else node

        found = tree.copy().transform(replaced)
        fields = {column.name for column, _ in self.outer}
        if any(column.name not in fields for column in found.find_all(exp.Column)):
            raise Refused(f"'{tree.sql(dialect='spark')}' has a column that is no key of the groups")
        return found

    def _aggregate(self, node: exp.AggFunc) -> ScopeColumn:
        call = aggregate_of(node, any_order=self.select.queries.any_order)
        text = node.sql(dialect="spark")
        known = next((c for c, _ in self.outer if c.qualifier == text), None)
        if known is not None:
            return replace(known, qualifier="")
        arguments = [self.select._expression(argument, self.scope) for argument in call.arguments]
        columns = [ScopeColumn("", new_field(), _result_type(argument.type)) for argument in arguments]
        self.inner += zip(columns, arguments, strict=True)
        kind = call.type_of([argument.type for argument in arguments])
        return self._added(kind, call.text([column.field for column in columns], kind))

    def _added(self, kind: DataType, text: str) -> ScopeColumn:
        """Add a column of the groups, which DuckDB computes by ``text``, and return it."""
        self.outer.append((ScopeColumn(field := new_field(), field, kind), text))
        return self.outer[-1][0]

    def rows(self, source: Relation, condition: Compiled | None) -> Relation:
        """Return the groups."""
        if not self.inner:
            true = self.select._expression(exp.true(), self.scope)
            self.inner.append((ScopeColumn("", new_field(), true.type), true))
        columns = [column for column, _ in self.outer]
        listed = ", ".join(f"{text} AS {column.field}" for column, text in self.outer)
        text = f"SELECT {listed} FROM {{0}}{self.by.text}"
        return projected(source, self.inner, condition).query().over(text, columns)

    def _text(self, tree: exp.Expr) -> str:
        """Return a text that is the same for expressions that are the same key, whatever the case of names."""
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier):
            return f"column {self.scope.find(tree.text('table'), tree.name).field}"
        return f"text {with_lower_names(tree).sql(dialect='spark')}"


# -- parts of trees -------------------------------------------------------------------------------------


def _order(tree: exp.Expr, wanted: _Columns, source: Relation) -> list[tuple[exp.Expr, str]]:
    """Return the expressions of a query's ORDER BY, each with the words after it."""
    clause = tree.args.get("order")
    if clause is None:
        return []
    refuse_other_clauses(clause, "expressions")
    found = []
    for node in clause.expressions:
        tree, words = ordering(node)
        found.append((_resolve_aliases(tree, wanted, source, outer=True), words))
    return found


def _plain_columns(wanted: _Columns) -> list[exp.Expr]:
    """Return the expressions by which GROUP BY ALL groups: the result's columns without aggregate functions."""
    plain = [tree for _, tree in wanted if not _aggregated(tree)]
    if any(tree.find(exp.Window) or not tree.find(exp.Column) for tree in plain):
        raise Refused("only Spark groups by all of constants and window functions")
    return plain


def _refuse_earlier_aliases(wanted: _Columns, source: Relation) -> None:
    """Refuse an expression that names a column of the result before it, which only Spark finds."""
    known, earlier = {column.name.lower() for column in source.columns}, set[str]()
    for name, tree in wanted:
        nodes = (node for node in own_nodes(tree) if isinstance(node, exp.Column))
        used = {column.name.lower() for column in nodes if not column.text("table")}
        if found := (used & earlier) - known:
            raise Refused(f"'{min(found)}' is a column of the same SELECT")
        earlier.add(name.lower())


def _over_window(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _aggregated(tree: exp.Expr) -> bool:
    """Return whether an expression has an aggregate function that is not a window function."""
    return any(not _over_window(node) for node in tree.find_all(exp.AggFunc))


def _names_some(part: exp.Expr, views: Sequence[exp.Lateral]) -> bool:
    """Return whether a part of a condition may name a column of a LATERAL VIEW."""
    names = {name.name.lower() for view in views for name in view.find_all(exp.Identifier)}
    names |= {"pos", "col", "key", "value"} if views else set()
    return any(names & {part.name.lower() for part in column.parts} for column in part.find_all(exp.Column))


def _unnamed(node: exp.Expr) -> exp.Expr:
    """Return an expression of a SELECT list without its alias or aliases."""
    return node.this if isinstance(node, exp.Alias | exp.Aliases) else node


def _result_position(tree: exp.Expr, wanted: _Columns) -> int:
    """Return the index of the result's column that an expression of ORDER BY names, or gives by number."""
    if isinstance(tree, exp.Literal):
        return int(tree.name) - 1
    indexes = [index for index, (name, _) in enumerate(wanted) if name.lower() == tree.name.lower()]
    if not isinstance(tree, exp.Column) or len(indexes) != 1 or (tree.table and wanted[indexes[0]][1] != tree):
        raise Refused(f"SELECT DISTINCT has no column '{tree.sql(dialect='spark')}' to be ordered by")
    return indexes[0]


def _limit(tree: exp.Expr) -> str:
    """Return a query's LIMIT and OFFSET in DuckDB's SQL."""
    limit, offset = _number(tree.args.get("limit")), _number(tree.args.get("offset"))
    return (f" LIMIT {limit}" if limit is not None else "") + (f" OFFSET {offset}" if offset is not None else "")


def _limited(tree: exp.Expr, found: Relation) -> Relation:
    """Apply a query's LIMIT and OFFSET, unless they were applied together with its ORDER BY."""
    limit, offset = _number(tree.args.get("limit")), _number(tree.args.get("offset"))
    if (limit is None and offset is None) or tree.args.get("order"):
        return found
    return limited(found, 2**62 if limit is None else limit, offset or 0)


def _result_type(kind: DataType) -> DataType:
    """Return the type of a value, where CHAR and VARCHAR are strings."""
    return DataType("string") if kind.has_length else kind


def _shown_type(value: Compiled) -> DataType:
    """Return the type of a column of a result. A bare CHAR column stays CHAR, for text compared with it is padded."""
    return value.type if value.column and value.type.name == "char" else _result_type(value.type)


def _united_type(one: DataType, other: DataType) -> DataType:
    """Return the type of a column of UNION, INTERSECT or EXCEPT: CHAR, as in Spark, if the first part's is CHAR."""
    kind = _result_type(common_type(one, other))
    return one if one.name == "char" else kind


def _column(column: ScopeColumn) -> exp.Expr:
    return exp.column(column.name, table=column.qualifier or None, quoted=True)


def _number(clause: exp.Expr | None) -> int | None:
    if clause is None:
        return None
    value = clause.args.get("expression")
    refuse_other_clauses(clause, "expression")
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise Refused(f"only Spark evaluates '{clause.sql(dialect='spark')}'")
    return int(value.name)


def _resolve_aliases(node: exp.Expr, wanted: _Columns, source: Relation, *, outer: bool) -> exp.Expr:
    """Replace numbers and names of the result's columns in an expression of GROUP BY, HAVING or ORDER BY.

    A name that the source has, too, means the result's column only with ``outer``, and if it stands alone.
    """
    if isinstance(node, exp.Literal):
        if node.is_string or not node.name.isdigit() or not 1 <= int(node.name) <= len(wanted):
            raise Refused(f"only Spark groups or orders by {node.sql(dialect='spark')}")
        return wanted[int(node.name) - 1][1]
    columns = {column.name.lower() for column in source.columns}

    def meant(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.text("table"):
            return part
        named = [tree for name, tree in wanted if name.lower() == part.name.lower()]
        if not named or all(isinstance(tree, exp.Column) and tree.name.lower() == part.name.lower() for tree in named):
            return part
        if len(named) > 1 or (part.name.lower() in columns and not (outer and part is node)):
            raise Refused(f"'{part.name}' may mean a column of the result, or of a table")
        return named[0].copy()

    return node.transform(meant, copy=False) if isinstance(node, exp.Column) else node.copy().transform(meant)


def _with_qualifier(relation: Relation, alias: str, above: tuple[str, ...] = ()) -> Relation:
    """Return the rows with the qualifier of an item of FROM; ``above`` are the parts of its name before that."""
    columns = tuple(replace(c, qualifier=alias, above=above) for c in relation.columns)
    return replace(relation, columns=columns)


def _with_column_aliases(relation: Relation, alias: exp.Expr | None) -> Relation:
    """Return the rows with the names of columns that an alias gives. Raises Refused for another number of them."""
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    if names and len(names) != len(relation.columns):
        raise Refused("an alias names a different number of columns")
    columns = (replace(c, name=name) for c, name in zip(relation.columns, names, strict=True))
    return replace(relation, columns=tuple(columns)) if names else relation


def _merged(
    values: Mapping[ScopeColumn, str], pairs: Sequence[tuple[ScopeColumn, ScopeColumn]], word: str
) -> dict[ScopeColumn, str]:
    """Return the columns of a join with USING -> DuckDB's text of each. The merged columns come first.

    ``values`` is the same without USING; ``pairs`` are the (left, right) columns that are merged. In a LEFT or RIGHT
    join the merged column is that of the side whose rows are all kept; in a FULL join it is the one that is not NULL.
    """
    first, hidden = dict[ScopeColumn, str](), list[ScopeColumn]()
    for one, other in pairs:
        if word != "FULL":
            shown, merged = (other, one) if word == "RIGHT" else (one, other)
            first[shown] = shown.field
            hidden.append(merged)
            continue
        if one.type != other.type:
            raise Refused(f"only Spark merges {one.type} with {other.type}")
        first[ScopeColumn(one.name, new_field(), _result_type(one.type))] = f"COALESCE({one.field}, {other.field})"
        hidden += [one, other]
    others = {column: value for column, value in values.items() if column not in (*first, *hidden)}
    return {
        **first,
        **others,
        **{replace(column, merged=True): values[column] for column in hidden if column in values},
    }


def _of_star(columns: Sequence[ScopeColumn], node: exp.Expr) -> list[ScopeColumn]:
    """Return the columns that a star means. ``t.*`` includes the columns of t that USING merged, which come first.

    Raises:
        Refused: for a star of no table, and for EXCEPT with a name that is not exactly one of its columns.
    """
    qualifier, star = node.text("table").lower(), node.this if isinstance(node, exp.Column) else node
    refuse_other_clauses(star, "except_")
    shown = [column for column in columns if not column.merged]
    if qualifier:
        its = (column for column in columns if column.qualifier.lower() == qualifier)
        shown = sorted(its, key=lambda column: not column.merged)
    for left_out in star.args.get("except_") or ():
        named = [column for column in shown if column.name.lower() == left_out.name.lower()]
        if len(named) != 1 or not isinstance(left_out, exp.Column) or left_out.table:
            raise Refused(f"'{left_out.sql(dialect='spark')}' is no single column of '*'")
        shown.remove(named[0])
    if not shown:
        raise Refused(f"'{node.sql(dialect='spark')}' names no columns")
    if len({(column.name.lower(), column.qualifier.lower()) for column in shown}) < len(shown):
        raise Refused(f"'{node.sql(dialect='spark')}' has two columns of one name")
    return shown
