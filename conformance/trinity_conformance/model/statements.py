"""MERGE, UPDATE and DELETE as data: the parts of generated programs, written as SQL or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from trinity_conformance.model.expressions import Expression, literal_sql
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.values import Json

MATCHED: Final = "MATCHED"
NOT_MATCHED: Final = "NOT MATCHED"
BY_SOURCE: Final = "NOT MATCHED BY SOURCE"

_WITHOUT_STAR: Final = ("duckdb", "postgres")


@dataclass(frozen=True)
class StatementSource:
    """The source that a statement joins its target with, alias ``s``.

    Attributes:
        columns: its columns.
        rows: its rows, encoded, in the order of the columns. Duplicates and NULLs are legal anywhere.
        target: True when it is the target itself, read by a subquery; it then has no rows of its own.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Json, ...], ...] = ()
    target: bool = False

    def sql(self, table: str, dialect: str) -> str:
        """Return a subquery with the alias ``s``."""
        names = ", ".join(c.name for c in self.columns)
        if self.target:
            return f"(SELECT {names} FROM {table}) AS s"
        rows = self.rows or ((None,) * len(self.columns),)
        values = ", ".join(
            "(" + ", ".join(literal_sql(c.type, v, dialect) for c, v in zip(self.columns, row, strict=True)) + ")"
            for row in rows
        )
        if self.rows:
            return f"(VALUES {values}) AS s({names})"
        return f"(SELECT * FROM (VALUES {values}) AS e({names}) WHERE 1 = 0) AS s"


@dataclass(frozen=True)
class Case:
    """One WHEN clause.

    Attributes:
        when: :data:`MATCHED`, :data:`NOT_MATCHED` or :data:`BY_SOURCE`.
        action: ``UPDATE``, ``DELETE``, ``INSERT`` or ``DO NOTHING``.
        condition: what follows AND, or the WHERE of an UPDATE or DELETE.
        values: (column, value) pairs of an UPDATE or INSERT; None for ``SET *`` and ``INSERT *``.
    """

    when: str
    action: str
    condition: Expression | None = None
    values: tuple[tuple[str, Expression], ...] | None = ()

    def sets(self, shape: Shape) -> dict[str, Expression]:
        """Return column -> value, with ``*`` written out: the source's columns of the same names."""
        if self.values is None:
            return {name: Expression("column", ("s", name)) for name in shape.names}
        return dict(self.values)

    def renamed(self, names: Mapping[str, str], shape: Shape) -> Case:
        """Return the clause with columns renamed (see :meth:`Statement.renamed`)."""
        condition = self.condition.renamed(names) if self.condition else None
        sets = self.sets(shape) if self.action in ("UPDATE", "INSERT") else {}
        values = tuple((names.get(name, name), value.renamed(names)) for name, value in sets.items())
        return replace(self, condition=condition, values=values)


@dataclass(frozen=True)
class Statement:
    """One statement.

    Attributes:
        kind: ``MERGE``, ``UPDATE`` or ``DELETE``. The last two have one MATCHED case, whose condition is their WHERE.
        cases: the WHEN clauses, in order.
        source: USING of a MERGE or DELETE, FROM of an UPDATE.
        on: the ON of a MERGE.
        dialect: ``spark`` or ``trino``.
    """

    kind: str
    cases: tuple[Case, ...]
    source: StatementSource | None = None
    on: Expression | None = None
    dialect: str = "spark"

    @property
    def deletes_matches(self) -> bool:
        """True when all that it does to matches is to delete them: a row that matches several times goes once (M2)."""
        return [(c.action, c.condition) for c in self.cases if c.when == MATCHED] == [("DELETE", None)]

    def renamed(self, names: Mapping[str, str], shape: Shape) -> Statement:
        """Return the statement with columns renamed, and ``*`` written out.

        Args:
            names: name -> other name.
            shape: the target under its present names.
        """
        source = self.source
        if source is not None:
            source = replace(source, columns=tuple(replace(c, name=names.get(c.name, c.name)) for c in source.columns))
        on = self.on.renamed(names) if self.on else None
        return replace(self, cases=tuple(c.renamed(names, shape) for c in self.cases), source=source, on=on)

    def sql(self, table: str, shape: Shape, dialect: str | None = None) -> str:
        """Return the statement's text.

        Args:
            table: name of the target.
            shape: the target; ``*`` is written out for PostgreSQL and for DuckDB, where it means something else.
            dialect: ``spark``, ``trino``, ``duckdb`` or ``postgres``; the statement's own by default.
        """
        return _Speller(self, table, shape, dialect or self.dialect).text()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready form."""
        return {
            "kind": self.kind,
            "cases": [_case_json(c) for c in self.cases],
            "source": asdict(self.source) if self.source else None,
            "on": self.on.to_json() if self.on else None,
            "dialect": self.dialect,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Statement:
        """Return the statement that :meth:`to_json` wrote."""
        source, on = data["source"], data["on"]
        return cls(
            data["kind"],
            tuple(map(_case_of, data["cases"])),
            _source_of(source) if source else None,
            Expression.from_json(on) if on else None,
            data["dialect"],
        )


def _case_json(case: Case) -> dict[str, Any]:
    values = case.values
    return {
        "when": case.when,
        "action": case.action,
        "condition": case.condition.to_json() if case.condition else None,
        "values": None if values is None else [[n, e.to_json()] for n, e in values],
    }


def _case_of(data: Mapping[str, Any]) -> Case:
    condition, values = data["condition"], data["values"]
    return Case(
        data["when"],
        data["action"],
        Expression.from_json(condition) if condition else None,
        None if values is None else tuple((n, Expression.from_json(e)) for n, e in values),
    )


def _source_of(data: Mapping[str, Any]) -> StatementSource:
    return StatementSource(tuple(Column(**c) for c in data["columns"]), tuple(map(tuple, data["rows"])), data["target"])


class _Speller:
    def __init__(self, statement: Statement, table: str, shape: Shape, dialect: str) -> None:
        self.statement = statement
        self.table = table
        self.shape = shape
        self.dialect = dialect
        self.bare = statement.source is None

    def text(self) -> str:
        if self.statement.kind == "MERGE":
            return self.merge()
        case, source = self.statement.cases[0], self.statement.source
        target = self.table if source is None else f"{self.table} AS t"
        using = "" if source is None else source.sql(self.table, self.dialect)
        where = "" if case.condition is None else f" WHERE {self.spell(case.condition)}"
        if self.statement.kind == "UPDATE":
            return f"UPDATE {target} SET {self.sets(case)}{using and f' FROM {using}'}{where}"
        return f"DELETE FROM {target}{using and f' USING {using}'}{where}"

    def merge(self) -> str:
        source, on = self.statement.source, self.statement.on
        if source is None or on is None:
            raise ValueError("a MERGE has a source and an ON")
        cases = " ".join(map(self.case, self.statement.cases))
        return f"MERGE INTO {self.table} AS t USING {source.sql(self.table, self.dialect)} ON {self.spell(on)} {cases}"

    def case(self, case: Case) -> str:
        condition = "" if case.condition is None else f" AND {self.spell(case.condition)}"
        return f"WHEN {case.when}{condition} THEN {self.action(case)}"

    def action(self, case: Case) -> str:
        if case.action == "UPDATE":
            return f"UPDATE SET {self.sets(case)}"
        if case.action == "INSERT":
            return f"INSERT {self.inserted(case)}"
        return case.action

    def sets(self, case: Case) -> str:
        if case.values is None and self.dialect not in _WITHOUT_STAR:
            return "*"
        return ", ".join(f"{n} = {self.spell(e)}" for n, e in case.sets(self.shape).items())

    def inserted(self, case: Case) -> str:
        if case.values is None and self.dialect not in _WITHOUT_STAR:
            return "*"
        values = case.sets(self.shape)
        # all columns in table order are written without a list
        names = "" if tuple(values) == self.shape.names else f"({', '.join(values)}) "
        return f"{names}VALUES ({', '.join(map(self.spell, values.values()))})"

    def spell(self, expression: Expression) -> str:
        return expression.sql(self.dialect, self.bare)
