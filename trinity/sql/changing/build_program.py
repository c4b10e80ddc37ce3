"""The engine's program of a row-changing statement: names resolved, reads pinned, expressions as Spark SQL text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from trinity.calls import spark_errors
from trinity.engine.changing.fields import AssignedField, assigned_values, resolve_field
from trinity.engine.executes import NotLocal, ThisProcess
from trinity.engine.expressions import Refused, refusals_as_values
from trinity.engine.program import Case, Program, Value, When, names_of_rows
from trinity.engine.sql_permissions import guard_expression
from trinity.engine.values.defaults import default_text
from trinity.errors import TrinityError
from trinity.spark.class_lookups import without_call_sites
from trinity.spark.settings import pinned
from trinity.spark.types import spark_type
from trinity.spi import Column
from trinity.sql.changing.scope import Relation, ResolvedColumn, Scope, Side, name_suffixes
from trinity.sql.changing.source import MergeSource, read_source
from trinity.sql.parsing.row_change import Clause, CommonTable, RowChange
from trinity.sql.queries.query import run_text
from trinity.sql.queries.reads import Reads, spelled_out
from trinity.sql.queries.references import Edit, Reference, apply_edits, resolve
from trinity.syntax.parse import Statement, parse, parse_tokens, tokenize
from trinity.syntax.quoting import quoted
from trinity.syntax.reader import Piece, Reader
from trinity.syntax.translate import to_spark_text

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.spi import SplitSource, TableHandle
    from trinity.sql.changing.local_queries import LocalQueries
    from trinity.table import Table


@contextmanager
def program(session: Session, table: Table, change: RowChange, splits: SplitSource) -> Iterator[Program]:
    """Build the program of a statement, pin its reads, and drop its views at the end of the context.

    Where the statement reads its target, it sees the version that it changes.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, INVALID_ARGUMENTS (arity, ambiguous names), SYNTAX_ERROR,
            NOT_SUPPORTED, TABLE_NOT_FOUND: all before anything is read.
    """
    spark = session.spark
    with pinned(spark), spark_errors(), without_call_sites(), closing(Reads(session, (table, splits))) as reads:
        yield _Builder(reads, table, change).program()


@refusals_as_values
def local_program(
    session: Session, table: Table, change: RowChange, splits: SplitSource, process: ThisProcess
) -> Program | NotLocal:
    """Build the program of a statement without Spark. Its expressions are unguarded: Spark has not checked them.

    Arguments and errors are those of :func:`program`.
    """
    from trinity.sql.changing.local_queries import LocalQueries

    local = LocalQueries(session, process, (table, splits), change.tables)
    found = _Builder(Reads(session, (table, splits)), table, change, local).program()
    return replace(found, reads=tuple(local.reads), queries=local.rows_of, unguarded=True)


class _Builder:
    """The builder of one program: over Spark's DataFrames, or with ``local`` over rows that this process reads."""

    def __init__(self, reads: Reads, table: Table, change: RowChange, local: LocalQueries | None = None) -> None:
        self.local = local
        self.reads = reads
        self.table = table
        self.change = change
        self.columns = {c.name.lower(): c for c in reads.definition(table).visible}
        self.target = self._target_side()

    def program(self) -> Program:
        change = self.change
        assigned = [] if change.evolves else [self._assigned_fields(clause) for clause in change.clauses]
        for common in change.tables:
            query = _parse_common(common)
            if self.local is None:
                self.reads.common[common.name.lower()] = self._common_view(common, query)
        if self.local is not None:
            self.local.check()
        source = self._source()
        if change.evolves:
            self.columns = {**self._new_columns(source), **self.columns}
            assigned = [self._assigned_fields(clause) for clause in change.clauses]
        if source is None:
            case = self._case_without_source(change.clauses[0], assigned[0])
            return Program(change.statement, (case,), target_alias=self.target.alias, reads=self._handles())
        cases = tuple(self._case(c, a, source) for c, a in zip(change.clauses, assigned, strict=True))
        names = self.target.alias, source.side.alias
        return Program(
            *(change.statement, cases, source.rows, self._on(source), *names),
            reads=self._handles(),
            evolves=change.evolves,
            chars=source.chars,
        )

    def _new_columns(self, source: MergeSource | None) -> dict[str, Column]:
        """Return the source's columns that schema evolution may add to the target."""
        if source is None:
            return {}
        names = {name.lower(): name for name in names_of_rows(source.rows)}
        known = source.side.columns.items()
        return {low: Column(names[low], c.type) for low, c in known if c.text and low not in self.columns}

    def _handles(self) -> tuple[TableHandle, ...]:
        return tuple(read.handle for read in self.reads.newest)

    # -- target and source --------------------------------------------------------------------------------

    def _target_side(self) -> Side:
        name = self.table.name
        alias = self.change.alias or self.change.target[-1]
        columns = {
            c: ResolvedColumn(f"{quoted(alias)}.{quoted(column.name)}", spark_type(column.type))
            for c, column in self.columns.items()
        }
        names = frozenset({(alias.lower(),)}) if self.change.alias else name_suffixes(name.parts)
        return Side("target", alias, (Relation(names, columns),), columns)

    def _source(self) -> MergeSource | None:
        piece = self.change.source
        if piece is None:
            return None
        statement = parse(_at_its_position(piece), piece.dialect)
        clauses = {key for key, value in statement.tree.args.items() if value}
        if not isinstance(statement.tree, exp.Select) or clauses - _ONLY_FROM:
            raise TrinityError(
                "SYNTAX_ERROR",
                f"Line {piece.tokens[0].line}: '{piece.text}' is no source; put a query in parentheses and give it an "
                "alias.",
            )
        if self.local is not None:
            return self.local.source(statement, self.target.alias)
        return read_source(self.reads, self._spark(statement), self.target.alias)

    def _common_view(self, common: CommonTable, query: Statement) -> str:
        """Register a view with the rows of a WITH query, and return its name."""
        text = self.reads.rewritten(self._spark(query))
        rows = run_text(self.reads.session, text, self.reads.views)
        if common.columns and len(common.columns) != len(rows.columns):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"WITH {common.name} names {len(common.columns)} columns, and its query has {len(rows.columns)}.",
            )
        return self.reads.register(rows.toDF(*common.columns) if common.columns else rows)

    def _spark(self, statement: Statement) -> Statement:
        """Translate a query to Spark's dialect."""
        if statement.dialect != "spark":
            statement = parse(to_spark_text(statement.tree, statement.dialect, self._table_types), "spark")
        return spelled_out(statement)

    def _table_types(self, node: exp.Table) -> dict[str, str]:
        """Return the types of a table's columns, for the translation from another dialect."""
        session = self.reads.session
        parts = [p.name for p in node.parts]
        view = self.reads.common.get(parts[0].lower()) if len(parts) == 1 else None
        if self.local is not None and len(parts) == 1 and parts[0].lower() in self.local.common_names:
            raise Refused("only Spark tells the types of a WITH query in another dialect")
        table = resolve(session, parts) if view is None else None
        if table is not None:
            return {c.name.lower(): spark_type(c.type) for c in self.reads.definition(table).visible}
        with spark_errors():
            rows = session.spark.table(view or ".".join(map(quoted, parts)))
            return {name.lower(): kind for name, kind in rows.dtypes}

    # -- cases --------------------------------------------------------------------------------------------

    def _on(self, source: MergeSource) -> str:
        if self.change.using:
            sides = [Scope("MERGE USING (...)", (side,)) for side in (self.target, source.side)]
            pairs = ([side.text(name) for side in sides] for name in self.change.using)
            return " AND ".join(" = ".join(pair) for pair in pairs)
        if self.change.on is None:
            return "TRUE"
        clause = "MERGE ON" if self.change.statement == "MERGE" else f"{self.change.statement} WHERE"
        return self._expression_text(self.change.on, Scope(clause, (self.target, source.side)))

    def _case_without_source(self, clause: Clause, fields: Sequence[AssignedField] | None) -> Case:
        """Return the case of an UPDATE or DELETE without a source."""
        where, words = self.change.on, self.change.statement
        condition = self._expression_text(where, Scope(f"{words} WHERE", (self.target,))) if where is not None else None
        values = self._values(clause, fields, Scope(f"{words} SET", (self.target,)))
        return Case(When.MATCHED, clause.operation, condition, values)

    def _case(self, clause: Clause, fields: Sequence[AssignedField] | None, source: MergeSource) -> Case:
        words = f"WHEN {clause.when.value}"
        target, other = self.target, source.side
        sides, absent = {
            When.MATCHED: ((target, other), ()),
            When.NOT_MATCHED: ((other,), (target,)),
            When.NOT_MATCHED_BY_SOURCE: ((target,), (other,)),
        }[clause.when]
        then = "THEN INSERT VALUES" if clause.when is When.NOT_MATCHED else "THEN UPDATE SET"
        condition, values = (Scope(f"{words} {end}", sides, absent) for end in ("AND", then))
        text = self._expression_text(clause.condition, condition) if clause.condition is not None else None
        if clause.by_name:
            return Case(clause.when, clause.operation, text, self._by_name(source))
        return Case(clause.when, clause.operation, text, self._values(clause, fields, values))

    def _by_name(self, source: MergeSource) -> dict[str, Value]:
        """Return the target's columns with the source's columns of the same names as their values.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, INVALID_ARGUMENTS.
        """
        scope, table = Scope("INSERT BY NAME", (source.side,)), str(self.table.name)
        given = [(resolve_field([name], self.columns, (), table), scope.text(name)) for name in source.side.columns]
        return assigned_values(given, scope.clause)

    def _values(self, clause: Clause, fields: Sequence[AssignedField] | None, scope: Scope) -> dict[str, Value] | None:
        if fields is None or clause.values is None:
            return None
        pairs = zip(fields, clause.values, strict=True)
        return assigned_values(((field, self._set(field, value, scope)) for field, value in pairs), scope.clause)

    def _set(self, field: AssignedField, value: Piece, scope: Scope) -> str:
        """Return the value of a column: in ``v = v + 1`` the bare name is the target's, in ``v = v`` ambiguous."""
        if value.is_word("DEFAULT"):
            return self._default(field)
        alone = isinstance(value.tree.unnest(), exp.Column)
        return self._expression_text(
            value, scope if alone or field.path else replace(scope, assigned=field.column.name.lower())
        )

    def _default(self, field: AssignedField) -> str:
        if field.path:
            raise TrinityError("NOT_SUPPORTED", f"'{field.name}' is a field, and only columns have a DEFAULT.")
        return default_text(field.column, lambda: self.reads.session.spark)

    # -- assigned columns -----------------------------------------------------------------------------------

    def _assigned_fields(self, clause: Clause) -> list[AssignedField] | None:
        """Return the columns and fields that a SET or INSERT list assigns; None for ``*``.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, TYPE_MISMATCH for a wrong number of values.
        """
        if clause.values is None:
            return None
        word = clause.operation.name if clause.operation else ""
        found = [AssignedField(column) for column in self.columns.values()]
        if clause.columns is not None:
            names, shown = self.target.relations[0].names, str(self.table.name)
            found = [resolve_field(parts, self.columns, names, shown) for parts in clause.columns]
        assigned_values(((field, "") for field in found), f"{word} of '{self.table.name}'")
        if len(found) != len(clause.values):
            listed = ", ".join(field.name for field in found)
            raise TrinityError(
                "TYPE_MISMATCH",
                f"INSERT into '{self.table.name}' fills {len(found)} columns ({listed}) and has {len(clause.values)} "
                "values.",
            )
        return found

    # -- expressions ----------------------------------------------------------------------------------------

    def _expression_text(self, piece: Piece, scope: Scope) -> str:
        """Return an expression as Spark SQL over the engine's aliases."""
        tree, whole, text, offset = piece.tree, piece.whole, piece.text, piece.start
        _refuse_windows(tree, scope.clause)
        if piece.dialect != "spark":
            text = whole = to_spark_text(tree, piece.dialect, self._table_types, scope.type_of)
            piece, offset = Piece(text, "spark", tuple(tokenize(text))), 0
            tree = parse_tokens(exp.Condition, piece.tokens, text, "spark")
        statement = Statement(whole, "spark", tree, piece.tokens)
        references = self.reads.references(statement)
        edits = {e[0]: e for e in self._query_edits(piece, scope, statement, references)}
        columns = scope.edits(tree, references)
        if self.local is not None:  # the subqueries are replaced as a whole, with the columns in them
            columns = (c for c in columns if not any(a < c[0] < b for a, b, _ in edits.values()))
        edits.update((e[0], e) for e in columns)
        found = apply_edits(text, [(start - offset, end - offset, new) for start, end, new in edits.values()])
        if self.local is None:
            guard_expression(self.reads.session, found)
        return found

    def _query_edits(
        self, piece: Piece, scope: Scope, statement: Statement, references: Sequence[Reference]
    ) -> list[Edit]:
        """Return the edits that make subqueries read views of Spark's, or rows that this process holds."""
        if self.local is None:
            return self.reads.edits(statement, references)
        found = Reader(piece).subqueries()
        return [(q.start, q.tokens[-1].end + 1, self.local.subquery(q, scope, word)) for word, q in found]


def _parse_common(common: CommonTable) -> Statement:
    """Parse a query of WITH. Raise SYNTAX_ERROR, or NOT_SUPPORTED for a statement that is no query."""
    statement = parse(common.rows, common.body.dialect)
    if not isinstance(statement.tree, exp.Query | exp.Values):  # to sqlglot, VALUES is no Query
        raise TrinityError("NOT_SUPPORTED", f"WITH {common.name}: only a query can stand there.")
    return statement


_ONLY_FROM = frozenset({"expressions", "from_", "joins", "laterals"})
"""sqlglot's arguments of a SELECT that has no clause after FROM."""


def _refuse_windows(tree: exp.Expr, clause: str) -> None:
    """Refuse window functions: they would see rows of the engine's join, which the statement's author cannot know."""
    for window in tree.find_all(exp.Window):
        if window.find_ancestor(exp.Query) is None:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"{clause}: '{window.sql(dialect='spark')}' spans several rows, and this is about one; compute it in a "
                "subquery.",
            )


def _at_its_position(piece: Piece) -> str:
    """Return ``SELECT * FROM`` a source, indented so that error messages give the statement's lines and columns."""
    before = piece.whole[: piece.start]
    column = len(before) - before.rfind("\n") - 1
    head = "SELECT * FROM "
    return "\n" * before.count("\n") + " " * max(0, column - len(head)) + head + piece.text
