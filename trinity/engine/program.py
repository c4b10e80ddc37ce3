"""A row-changing statement as the engine takes it: its source, its ON and its WHEN clauses.

SQL text and the builder both end here; UPDATE and DELETE are programs with one case and no source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias, Union

import pyarrow as pa

from trinity.calls import public
from trinity.display import InNotebooks
from trinity.errors import TrinityError
from trinity.spi import Operation, TableDefinition, TableHandle
from trinity.syntax.sql_text import with_tree

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from trinity.predicates.conditions import Names

Expression: TypeAlias = Union[str, "SparkColumn"]
"""Spark SQL text, or a Column. Names are resolved over target and source under their aliases; text may hold
subqueries over views of the session."""


@dataclass(frozen=True)
class Fields:
    """New values for fields of a struct. Its other fields keep their values; in a NULL struct they are NULL (M10).

    Attributes:
        values: name of a field -> its new value.
    """

    values: Mapping[str, Value]


Value: TypeAlias = Union[str, "SparkColumn", Fields]
"""The new value of a column."""


def expressions_of(value: Value) -> Iterator[Expression]:
    """Yield the expressions of a value."""
    if isinstance(value, Fields):
        for inner in value.values.values():
            yield from expressions_of(inner)
    else:
        yield value


def text_of(expression: Expression) -> str:
    """Return the text of an expression. PySpark shows that of a Column by its ``repr`` alone, in both its modes."""
    return expression if isinstance(expression, str) else str(expression).removeprefix("Column<'").removesuffix("'>")


def with_texts(value: Value, changed: Callable[[str], str]) -> Value:
    """Apply a function to every SQL text in a value."""
    if isinstance(value, Fields):
        return Fields({name: with_texts(inner, changed) for name, inner in value.values.items()})
    return changed(value) if isinstance(value, str) else value


class When(str, Enum):
    """The rows of the join to which a WHEN clause applies."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


@dataclass(frozen=True)
class Case:
    """One WHEN clause.

    Attributes:
        when: the rows to which it applies.
        operation: UPDATE, DELETE or INSERT; None for DO NOTHING.
        condition: the condition after AND, or None. UNKNOWN is no match (M1).
        values: column of the target -> its new value; columns that an INSERT leaves out take their DEFAULT, those of
            an UPDATE their old value. None for UPDATE SET * and INSERT *: the source's columns of the same names.
    """

    when: When
    operation: Operation | None
    condition: Expression | None = None
    values: Mapping[str, Value] | None = None

    def __post_init__(self) -> None:
        """Parse each text once, and keep its tree for all who analyse the statement."""
        if isinstance(self.condition, str):
            object.__setattr__(self, "condition", with_tree(self.condition))
        if self.values is not None:
            object.__setattr__(self, "values", {n: with_texts(v, with_tree) for n, v in self.values.items()})


@dataclass(frozen=True)
class Program:
    """One MERGE, UPDATE or DELETE, with its tables pinned.

    Attributes:
        statement: the kind of the statement, for messages.
        cases: the WHEN clauses in order; the first that holds wins (M1).
        source: rows to join with, a DataFrame of Spark or a table in this process. If None, the only case applies to
            every row of the target.
        on: the join's condition; None without a source.
        target_alias: the target's name in expressions.
        source_alias: the source's name in expressions.
        reads: pinned handles of the Trinity tables that source and subqueries read.
        unique: further unique keys of a keyed target: no two live rows may share their values afterwards.
        queries: name -> the rows of a subquery, in this process; expressions select all rows by that name.
        evolves: True when columns that only the source has are added to the target.
        after: the target's definition after a statement that adds columns; None for other statements.
        chars: column of a source in this process -> its type CHAR(n), to whose length text compared with it is padded.
        unguarded: True for texts that are not checked yet: they may be no expressions, or reach code and files (N2).
    """

    statement: Literal["MERGE", "UPDATE", "DELETE", "ALTER TABLE"]
    cases: tuple[Case, ...]
    source: DataFrame | pa.Table | None = None
    on: Expression | None = None
    target_alias: str = "t"
    source_alias: str = "s"
    reads: tuple[TableHandle, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    queries: Mapping[str, pa.Table] = field(default_factory=dict)
    evolves: bool = False
    after: TableDefinition | None = None
    chars: Mapping[str, str] = field(default_factory=dict)
    unguarded: bool = False

    def __post_init__(self) -> None:
        """Parse ON once, and refuse a WHEN clause that no row reaches. Raises INVALID_ARGUMENTS."""
        if isinstance(self.on, str):
            object.__setattr__(self, "on", with_tree(self.on))
        for number, case in enumerate(self.cases):
            if case.condition is None and any(later.when is case.when for later in self.cases[number + 1 :]):
                action = case.operation.name if case.operation else "DO NOTHING"
                raise TrinityError(
                    "INVALID_ARGUMENTS",
                    f"WHEN {case.when.value} THEN {action} takes every row that is {case.when.value}, so a WHEN "
                    f"{case.when.value} after it takes none; give it a condition with AND, or write it last.",
                )

    @property
    def deletes_matches(self) -> bool:
        """True when every row that matches is deleted, so that it may match several rows of the source (M2)."""
        matched = [case for case in self.cases if case.when is When.MATCHED]
        return [(case.operation, case.condition) for case in matched] == [(Operation.DELETE, None)]

    @property
    def source_columns(self) -> list[str]:
        """The names of the source's columns; none without a source."""
        if self.source is None:
            return []
        return names_of_rows(self.source)

    @property
    def names(self) -> Names:
        """The names by which expressions find columns of target and source."""
        from trinity.predicates.conditions import Names

        alias = self.source_alias if self.source is not None else None
        return Names(self.target_alias, alias, self.source_columns)


def names_of_rows(rows: DataFrame | pa.Table) -> list[str]:
    """Return the names of the columns of a source."""
    return rows.column_names if isinstance(rows, pa.Table) else rows.columns


@public
@dataclass(frozen=True)
class Counts(InNotebooks):
    """Rows that a statement changed, by kind (M5).

    Attributes:
        version: version of the table after the statement.
        updated, deleted, inserted: numbers of rows.
        skipped: True when ``txn`` had been recorded before, so that nothing was done (L4).
    """

    version: int
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    skipped: bool = False

    @property
    def affected(self) -> int:
        """The number of updated, deleted and inserted rows together."""
        return self.updated + self.deleted + self.inserted
