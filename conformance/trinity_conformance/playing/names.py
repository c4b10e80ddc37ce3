"""The present column names of a table under test: the model's names stay, ALTER TABLE changes the table's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

import pyarrow as pa

from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.values import default_of, sql_literal

WIDER: Final = {"tinyint": "smallint", "smallint": "int", "int": "bigint", "varchar(8)": "string"}
"""Type -> a wider type whose values are the same in every language."""
_EXTRA: Final = "extra"


class Names:
    """The names of one table's columns, now and at earlier versions.

    Attributes:
        now: the model's name -> the table's.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._before: list[tuple[Any, dict[str, str]]] = []
        self._types = {c.name: c.type for c in shape.columns}
        self._extra = False
        self._fresh = (f"renamed{n}" for n in count())
        self._altered: dict[str, str] = {}
        self.now = {name: name for name in shape.names}

    def alter(self, kind: str, columns: Sequence[str]) -> list[str]:
        """Return the statements of an :class:`~trinity_conformance.playing.traces.Alter`, without ``ALTER TABLE t``."""
        self._altered = dict(self.now)
        if kind == "extra":
            self._extra = not self._extra
            return [f"ADD COLUMN {_EXTRA} BIGINT" if self._extra else f"DROP COLUMN {_EXTRA}"]
        names = [self.now[c] for c in columns]
        if kind == "move":
            return [f"ALTER COLUMN {names[0]} FIRST"]
        if kind == "widen":
            wider = self._types[columns[0]] = WIDER.get(self._types[columns[0]], self._types[columns[0]])
            return [f"ALTER COLUMN {names[0]} TYPE {wider}"]
        if kind == "blank":
            return [f"DROP COLUMN {names[0]}", f"ADD COLUMN {names[0]} {self._types[columns[0]]}"]
        through = next(self._fresh)
        if kind == "default":  # the statement that may be refused comes first, so that nothing is half done
            drawn, self._altered[columns[0]] = self._shape.type_of(columns[0]), through
            default = sql_literal(drawn, default_of(drawn))
            return [f"ADD COLUMN {through} {self._types[columns[0]]} DEFAULT {default}", f"DROP COLUMN {names[0]}"]
        self._altered |= {columns[0]: names[1], columns[1]: names[0]}
        pairs = ((names[0], through), (names[1], names[0]), (through, names[1]))
        return [f"RENAME COLUMN {old} TO {new}" for old, new in pairs]

    def happened(self, version: Any) -> None:
        """Record that the statements have been run on top of a version."""
        self._before.append((version, self.now))
        self.now = self._altered

    @property
    def shape(self) -> Shape:
        """The table, for SQL text; without columns once these were altered, so that every INSERT lists its own."""
        return replace(self._shape, columns=()) if self._before else self._shape

    def statement(self, statement: Statement) -> Statement:
        """Return a statement with the table's names."""
        return statement.renamed(self.now, self._shape) if self._before else statement

    def renamed(self, data: Any) -> Any:
        """Return Arrow data or a DataFrame of the model with the table's names."""
        if isinstance(data, pa.Table):
            return data.rename_columns([self.now[n] for n in data.column_names])
        return data.toDF(*[self.now[n] for n in data.columns])

    def sql(self, condition: Condition) -> str:
        """Return a condition as Spark SQL with the table's names."""
        columns = tuple(replace(c, name=self.now[c.name]) for c in self._shape.columns)
        return replace(condition, column=self.now[condition.column]).sql(replace(self._shape, columns=columns))

    def select_list(self, columns: Sequence[str], version: Any = None) -> list[Any]:
        """Return the columns of a read, of the newest version or of another, under the model's names."""
        from pyspark.sql import functions as F

        return [F.col(name).alias(c) for c, name in zip(columns, self.names_at(columns, version), strict=True)]

    def names_at(self, columns: Sequence[str], version: Any = None) -> list[str]:
        """Return the names that columns have in the newest version, or had in another."""
        older = (names for at, names in self._before if version is not None and version <= at)
        names = next(older, self.now)
        return [names[c] for c in columns]
