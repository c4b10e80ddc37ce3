"""The rows of an INSERT: VALUES, a query or DEFAULT VALUES, as one derived table with typed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.locks import MAX_KEYS, Lock, lock_of, repeatable
from trinity.journal.tables import JournalColumn, JournalTable


@dataclass
class Computed:
    """Key values that are computed before the statement, so that they can be locked, such as a sequence's next number.

    Attributes:
        first: number of the first such value among the parameters.
        values: the expressions to compute.
    """

    first: int
    values: list[exp.Expr] = field(default_factory=list)

    def add(self, value: exp.Expr, to: JournalColumn) -> exp.Expr:
        """Add a value to compute; return its parameter."""
        self.values.append(trees.cast(value, "text"))
        return trees.cast(trees.parameter(self.first + len(self.values) - 1), to.type)


@dataclass(frozen=True)
class InsertRows:
    """The rows of an INSERT.

    Attributes:
        columns: the target's columns that the rows fill, in order.
        rows: the query; its columns are in this order.
        constant: True for VALUES whose keys are the same in every snapshot.
    """

    columns: tuple[JournalColumn, ...]
    rows: exp.Values | exp.Query
    constant: bool

    def as_table(self, alias: str) -> exp.Expr:
        """Return the rows for FROM, under an alias, with the target's column names. VALUES are not copied."""
        names = [trees.identifier(c.name) for c in self.columns]
        if isinstance(self.rows, exp.Values):
            self.rows.set("alias", exp.TableAlias(this=trees.identifier(alias), columns=names))
            return self.rows
        return trees.derived(self.rows, alias, names)

    def lock(self, alias: str, insert: exp.Insert, table: JournalTable) -> Lock:
        """Return the lock of the rows' keys; of the whole table where there are too many, or other unique keys."""
        if table.unique_keys or (isinstance(self.rows, exp.Values) and len(self.rows.expressions) > MAX_KEYS):
            return Lock(table)
        found = trees.select([], self.as_table(alias))
        if (clause := insert.args.get("with_")) is not None:
            found.set("with_", clause.copy())
        return lock_of(table, found, [trees.column(k, alias) for k in table.key], [self.rows])


def source_of(
    insert: exp.Insert, table: JournalTable, dialect: str, computed: Computed, whole: bool = False
) -> InsertRows:
    """Return the rows of an INSERT, whose references have been replaced already.

    ``computed`` collects key values that cannot be computed twice. With ``whole`` the rows fill every column, else the
    named columns and the key.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, SYNTAX_ERROR.
    """
    given = insert.args.get("expression")
    if insert.args.get("default"):
        return _values([[]], [], table, whole, dialect, computed)
    columns = _columns(insert, table)
    if isinstance(given, exp.Values):
        rows = [list(r.expressions) for r in given.expressions]
        columns = _columns_for_width(insert, columns, len(rows[0]), table)
        return _values(rows, columns, table, whole, dialect, computed)
    query = given.unnest() if isinstance(given, exp.Subquery) else given
    if not isinstance(query, exp.Query):
        raise TrinityError("SYNTAX_ERROR", "INSERT needs VALUES, a query or DEFAULT VALUES.")
    return _query(insert, query.copy(), columns, table, whole, dialect)


def _default_columns(columns: list[JournalColumn], table: JournalTable, whole: bool) -> list[JournalColumn]:
    """Return the columns that the source lacks, and that are filled with their defaults here."""
    return [c for c in table.written if c not in columns and (whole or c.name in table.key)]


def _columns(insert: exp.Insert, table: JournalTable) -> list[JournalColumn]:
    target = insert.this
    if not isinstance(target, exp.Schema):
        return list(table.visible)
    found = [table.visible_column(trees.folded(c)) for c in target.expressions]
    names = [c.name for c in found]
    for name in names:
        if names.count(name) > 1:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"INSERT INTO {table} names column '{name}' twice.")
    return found


def _columns_for_width(
    insert: exp.Insert, columns: list[JournalColumn], width: int, table: JournalTable
) -> list[JournalColumn]:
    """Return the columns that rows of this width fill: without a list, the first ones."""
    listed = isinstance(insert.this, exp.Schema)
    if width > len(columns) or (listed and width < len(columns)):
        raise TrinityError(
            "SYNTAX_ERROR",
            f"INSERT INTO {table}: {len(columns)} columns are to be filled, and a row has {width} values.",
        )
    return columns[:width]


def _values(
    rows: Sequence[Sequence[exp.Expr]],
    columns: list[JournalColumn],
    table: JournalTable,
    whole: bool,
    dialect: str,
    computed: Computed,
) -> InsertRows:
    rows, columns = _without_generated(rows, columns)
    rest = _default_columns(columns, table, whole)
    built: list[exp.Expr] = []
    constant = True
    for row in rows:
        if len(row) != len(columns):
            raise TrinityError("SYNTAX_ERROR", f"INSERT INTO {table}: the rows of VALUES differ in length.")
        values: list[exp.Expr] = []
        for column, value in [*zip(columns, row, strict=True), *((c, None) for c in rest)]:
            plain = trees.default_of(column, dialect) if value is None or trees.is_default(value) else value
            # the key's value may differ between snapshots: compute it once, beforehand
            if column.name in table.key and not (repeatable(plain) and plain.find(exp.Query) is None):
                if len(computed.values) < MAX_KEYS:
                    plain = computed.add(plain, column)
                else:
                    constant = False
            values.append(trees.typed_for(plain, column))
        built.append(exp.Tuple(expressions=values))
    return InsertRows((*columns, *rest), exp.Values(expressions=built), constant)


def _without_generated(
    rows: Sequence[Sequence[exp.Expr]], columns: list[JournalColumn]
) -> tuple[list[list[exp.Expr]], list[JournalColumn]]:
    """Leave out the columns that the backend computes where all rows say DEFAULT; it refuses other values for them."""
    stays = [
        i
        for i, column in enumerate(columns)
        if not (column.generated and all(trees.is_default(row[i]) for row in rows if i < len(row)))
    ]
    return [[*(row[i] for i in stays if i < len(row)), *row[len(columns) :]] for row in rows], [
        columns[i] for i in stays
    ]


def _query(
    insert: exp.Insert,
    query: exp.Query,
    columns: list[JournalColumn],
    table: JournalTable,
    whole: bool,
    dialect: str,
) -> InsertRows:
    if isinstance(query, exp.Select) and not query.is_star:
        columns = _columns_for_width(insert, columns, len(query.expressions), table)
        typed = [_projection(e, c) for e, c in zip(query.expressions, columns, strict=True)]
        query.set("expressions", typed)
    rest = _default_columns(columns, table, whole)
    if rest:
        given = InsertRows(tuple(columns), query, constant=False).as_table("given")
        defaults = [trees.typed_for(trees.default_of(c, dialect), c) for c in rest]
        query = trees.select([trees.all_of("given"), *defaults], given)
    return InsertRows((*columns, *rest), query, constant=False)


def _projection(node: exp.Expr, to: JournalColumn) -> exp.Expr:
    value = node.this if isinstance(node, exp.Alias) else node
    typed = trees.typed_for(value.copy(), to)
    return exp.alias_(typed, node.args["alias"].copy()) if isinstance(node, exp.Alias) else typed
