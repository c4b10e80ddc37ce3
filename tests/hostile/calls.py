"""Every public callable, found by introspection, and hostile values for its parameters."""

from __future__ import annotations

import datetime as dt
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import trinity
from trinity import Check, Column, TableName, cdc, dbapi
from trinity.external import ExternalTables

MODULES: Final = (trinity, dbapi, cdc)
"""The modules whose ``__all__`` is public."""

ROW: Final = pa.table({"k": [1], "v": ["x"]})


class Colour(Enum):
    """A value of a type that no parameter accepts."""

    RED = "red"


EXTREME: Final[tuple[Any, ...]] = (
    # of Python
    None, True, 0, -1, 5, 2**31, 2**63, 10**38, 10**4000, 1.5, float("nan"), float("inf"), Decimal("NaN"),
    Decimal("1E+400"), b"", b"x", UUID(int=1), Colour.RED, object(), object, len, Path("a\0b"), Path("nosuch/x"),
    dt.date(1, 1, 1), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, tzinfo=dt.UTC), dt.time(1),
    dt.timedelta(days=1), (), [], {}, set(), [None], [[]], ["k", "k"], ["nosuch"], [1, 2], [("k",)], (1, 2, 3),
    {"k": None}, {None: "k"}, {"k": "1"}, {"nosuch": "1"}, {"bucket": "none"}, {"a": {"connector": None}}, [{"k": 1}],
    {"a": {"connector": "parquet"}},
    # texts
    "", " ", "\n", "\0", "a\0b", "\ud800", "x" * 300, "ž" * 200, "`", '"', '"`"', "a.b.c.d", "..", "../../x", "a/b",
    "%", "${env:HOME}", "it's", ";", "--", "/*", "(", ")", "1", "k", "NULL", "k = ", "k = 1) OR (1 = 1", "SELECT",
    "SELECT 1; SELECT 2", "SELECT * FROM nosuch", "v COLLATE nope = 'x'", "(" * 600 + "1" + ")" * 600,
    "7 days", "-7 days", "9" * 400 + " days", "2026-13-01",
    # of numpy, pandas and Polars
    np.int64(3), np.float32("nan"), np.str_("k"), np.bool_(True), np.datetime64("2026-01-01"), np.array([1, 2]),
    np.array("k"), pd.NaT, pd.NA, pd.Timestamp("2026-01-01"), pd.Series([1]), pd.DataFrame({1: [1]}),
    pd.DataFrame({"k": [1], "v": ["y"]}), pd.DataFrame({"k": [object()]}), pl.Series("k", [1]), pl.DataFrame(),
    pl.DataFrame({"k": [1], "v": ["z"]}), pl.DataFrame({"k": [1], "v": pl.Series(["a"], dtype=pl.Categorical)}),
    # of Arrow
    ROW, ROW.schema, ROW.to_batches()[0], pa.table({}), pa.table([pa.array([1]), pa.array([2])], ["k", "k"]),
    pa.table({"k": [1], "v": pa.array([dt.timedelta(1)])}), pa.table({"k": pa.array([2**40])}), pa.array([1]),
    pa.schema([("a", pa.duration("s"))]), pa.schema([]), pa.field("a", pa.int32()), pa.int32(),
    # of Trinity
    Column("a", "int"), [Column("a", "int")], [Column("", "int")], [Column("a", "nosuch")], Check("c", "k > "),
    [Column("a", "int"), Column("A", "int")], [Column("a", "int", default="java_method('x')")],
    TableName("parquet", "default", "\0"),
)  # fmt: skip
"""Values that some callables do not expect."""

PROPER: Final[dict[str, tuple[Any, ...]]] = {
    "name": ("t", "k", "v", "other", "parquet.default.t"),
    "old": ("v", "k"),
    "new": ("w",),
    "column": (Column("w", "int"),),
    "columns": ([Column("a", "int"), Column("b", "string")], ROW.schema),
    "catalog": ("parquet",),
    "schema": ("default",),
    "table": ("t", "default.t"),
    "parts": (["t"],),
    "type": ("int", "bigint", "string"),
    "type_text": ("bigint",),
    "text": ("USE parquet.default", "SHOW CATALOGS"),
    "operation": ("USE parquet.default",),
    "dialect": ("spark", "trino", "duckdb"),
    "condition": ("k = 1", None),
    "on": ("t.k = s.k",),
    "values": ({"v": "'y'"},),
    "set": ({"v": "'y'"},),
    "data": (ROW,),
    "source": (ROW,),
    "properties": ({"comment": "x"},),
    "primary_key": (["a"], []),
    "connector": ("parquet",),
    "retain": ("7 days",),
    "after": ("k",),
    "default": ("1", None),
    "expression": ("k > 0",),
    "version": (1, 0),
    "code": ("BAD_DATA",),
    "message": ("what",),
    "ticks": (0, 1.5),
    "value": ("x", b"x"),
    "seq_of_parameters": ([], [(1,)]),
    "sizes": ([],),
    "size": (1, 0, 2),
}
"""Parameter name -> valid values."""


@dataclass(frozen=True)
class Call:
    """One public callable.

    Attributes:
        name: its name, such as ``Table.upsert``.
        owner: the class of a method or property, which is called on an instance of it.
        target: the callable; methods take the instance as their first argument.
        parameters: the parameters of the signature, without ``self``.
    """

    name: str
    owner: type | None
    target: Callable[..., Any]
    parameters: tuple[inspect.Parameter, ...]

    def __str__(self) -> str:
        return self.name


def calls() -> Iterator[Call]:
    """Yield all public callables: functions and classes that modules export, and methods and properties of these."""
    classes: dict[type, str] = {ExternalTables: "ExternalTables"}
    for module in MODULES:
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, type) and found.__module__.startswith("trinity") and not issubclass(found, Exception):
                classes[found] = f"{module.__name__}.{name}"
                yield Call(f"{module.__name__}.{name}", None, found, _parameters(found))
            elif isinstance(found, types.FunctionType):
                yield Call(f"{module.__name__}.{name}", None, found, _parameters(found))
    for owner in classes:
        yield from _members(owner)


def _members(owner: type) -> Iterator[Call]:
    """Yield the members of a class and of its bases in Trinity, under the name of the class."""
    inherited = [base for base in reversed(owner.__mro__) if base.__module__.startswith("trinity")]
    for name, member in {name: member for base in inherited for name, member in vars(base).items()}.items():
        full = f"{owner.__name__}.{name}"
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            assert member.fget is not None
            yield Call(full, owner, member.fget, ())
            if member.fset is not None:
                yield Call(f"{full}=", owner, member.fset, _parameters(member.fset)[1:])
        elif isinstance(member, (classmethod, staticmethod)):
            yield Call(full, None, getattr(owner, name), _parameters(getattr(owner, name)))
        elif isinstance(member, types.FunctionType):
            yield Call(full, owner, member, _parameters(member)[1:])


def _parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


class Subjects:
    """Instances of public classes, over a warehouse of their own with a table ``t``.

    Args:
        folder: the warehouse's folder.
        rows: a DataFrame.
        fmt: the format, which is the catalog's name, too.
    """

    def __init__(self, folder: Path, rows: Any, fmt: str = "parquet") -> None:
        self.rows = rows
        self.catalogs = {fmt: {"connector": fmt, "warehouse": str(folder)}}
        self.session = trinity.connect(catalogs=self.catalogs)
        columns = [Column("k", "int"), Column("v", "string")]
        self.table = self.session.create_table("t", columns, primary_key=["k"], properties={"bucket": 2})
        self.table.upsert(ROW)
        self.connection = dbapi.connect(warehouse=folder, catalogs=self.catalogs)

    def of(self, owner: type) -> Any:
        """Return an instance of a public class. Raises KeyError for a class without one."""
        return {
            "Session": lambda: self.session,
            "Result": lambda: trinity.Result(self.session, ROW),
            "Table": lambda: self.table,
            "MergeBuilder": lambda: trinity.MergeBuilder(self.table, self.rows, "t.k = s.k"),
            "TableName": lambda: self.table.name,
            "Check": lambda: Check("c", "k > 0"),
            "Column": lambda: Column("k", "int"),
            "TableDefinition": lambda: self.table.definition,
            "CommitResult": lambda: trinity.CommitResult(1),
            "Counts": lambda: trinity.Counts(1),
            "VacuumResult": lambda: trinity.VacuumResult(0, 0, 0),
            "ExternalTables": lambda: self.session.external,
            "PostgresSlot": lambda: cdc.PostgresSlot("host=/nosuch", "slot", ["publication"]),
            "PostgresChanges": lambda: cdc.PostgresChanges(ROW, 1, True),
            "Connection": lambda: self.connection,
            "Cursor": self.connection.cursor,
        }[owner.__name__]()

    def state(self) -> tuple[Any, ...]:
        """Return the state that a failed call must leave unchanged."""
        with trinity.connect(catalogs=self.catalogs) as other:
            found = other.list_tables("parquet", "default")
            named = [other.table(TableName("parquet", "default", name)) for name in found]
            return (found, *[(t.splits().version, t.definition.to_dict()) for t in named])
