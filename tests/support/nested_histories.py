"""Histories of an Iceberg table whose nested fields another engine renames, drops, adds, moves and widens.

A history is a list of steps ``[name, number, number]``, whose numbers choose rows and fields. It is drawn from a seed,
printed by a failure, and played again by ``Nested.play``. A value belongs to the id of its field, whatever its name.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyiceberg.types import IntegerType, LongType, StringType
from pyspark.sql import SparkSession

import trinity
from tests.support.iceberg import pyiceberg
from trinity import Session, Table, TrinityError

Step = tuple[str, int, int]

WEIGHTS: Final = {"upsert": 6, "rename": 3, "drop": 3, "add": 3, "widen": 1, "move": 1, "compact": 1}
NAMES: Final = ("a", "b", "z")
TYPES: Final = {"int": IntegerType(), "bigint": LongType(), "string": StringType()}
HOLDERS: Final = ("st", "st.inner", "arr.element", "m.value")
"""Structs whose fields other engines change: in a column, in a struct, in an array, as the values of a map."""
COLUMNS: Final = (
    "id INT PRIMARY KEY, st STRUCT<a: INT, b: STRING, inner: STRUCT<a: INT, b: STRING>>, "
    "arr ARRAY<STRUCT<a: INT, b: STRING>>, m MAP<STRING, STRUCT<a: INT, b: STRING>>"
)


def drawn(seed: int, length: int = 10) -> list[Step]:
    """Return the history of a seed."""
    chance = Random(seed)
    names = ["upsert", *chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=length)]
    return [(name, chance.randrange(1000), chance.randrange(1000)) for name in [*names, "upsert"]]


@dataclass
class Field:
    """A field of a struct: its present name, its type, and a number by which its values are recognized."""

    name: str
    type: str
    number: int


@dataclass
class Nested:
    """A table under test, and the rows that it must hold.

    Args:
        spark: the Spark session that all histories share.
        folder: an empty folder.
        external: whether PyIceberg makes the table, and writes half of its rows.
    """

    spark: SparkSession
    folder: Path
    external: bool = False
    seen: Counter[str] = field(default_factory=Counter)
    """Number of times that each step was taken, and that the table was refused."""

    def __post_init__(self) -> None:
        self.numbers = itertools.count()
        self.holders = {holder: [self._field("a", "int"), self._field("b", "string")] for holder in HOLDERS}
        self.rows: dict[int, dict[str, Any]] = {}

    def play(self, history: list[Step]) -> None:
        """Play the steps, and compare the table with what it must hold after each one."""
        catalogs = {"iceberg": {"connector": "iceberg", "warehouse": str(self.folder)}}
        try:
            with trinity.connect(spark=self.spark, catalogs=catalogs) as session:
                session.sql(f"CREATE TABLE t ({COLUMNS})").collect()
                if self.external:
                    self._replace_by_foreign(session)
                self._play(session.table("t"), history)
        except Exception as error:
            error.add_note(json.dumps(history))
            raise

    def _play(self, table: Table, history: list[Step]) -> None:
        for number, (name, one, other) in enumerate([*history, ("compact", 0, 0)]):
            self.seen[name] += 1
            getattr(self, name)(table, Random(f"{one} {other}"))
            if not self._compare(f"step {number}, {name}", table.to_arrow):
                return
            self._compare(f"merge view at step {number}, {name}", lambda: self._viewed(table))
        assert self._shown(pyiceberg(table).scan().to_arrow()) == self._expected(), "PyIceberg"

    def _compare(self, when: str, read: Callable[[], pa.Table]) -> bool:
        """Compare the rows that are read with the expected ones. Return False when the read is refused."""
        try:
            found = read()
        except TrinityError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            self.seen[f"{when.partition(' ')[0]} refused"] += 1
            return False
        assert self._shown(found) == self._expected(), when
        return True

    def _viewed(self, table: Table) -> pa.Table:
        with duckdb.connect() as connection:
            return connection.sql(table.merge_view_sql("duckdb")).to_arrow_table()

    def _replace_by_foreign(self, session: Session) -> None:
        """Have PyIceberg make a table of the same columns, and register it."""
        found = pyiceberg(session.table("t"))
        session.drop_table("t")
        found.catalog.create_table("default.t", found.schema())
        session.register("iceberg.default.t", "iceberg", None, {"primary-key": "id"})

    # -- steps ----------------------------------------------------------------------------------------------

    def upsert(self, table: Table, chance: Random) -> None:
        schema = pyiceberg(table).schema().as_arrow()  # its fields in their present order
        for key in chance.sample(range(4), 2):
            self.rows[key] = {
                "st": {**self._values("st", chance), "inner": self._values("st.inner", chance)},
                "arr": [self._values("arr.element", chance) for _ in range(chance.randrange(3))],
                "m": {f"k{n}": self._values("m.value", chance) for n in range(chance.randrange(3))},
            }
            rows = pa.Table.from_pylist([self._named(key)], schema)
            if self.external and chance.random() < 0.5:
                pyiceberg(table).append(rows)
            else:
                table.upsert(rows)

    def compact(self, table: Table, chance: Random) -> None:
        table.compact(full=True)

    def rename(self, table: Table, chance: Random) -> None:
        for holder, fields in self._some(chance):
            found, new = chance.choice(fields), self._free(fields, chance)
            if new:
                self._alter(table).rename_column((*holder.split("."), found.name), new).commit()
                found.name = new

    def drop(self, table: Table, chance: Random) -> None:
        for holder, fields in self._some(chance):
            if len(fields) > 1:
                found = fields.pop(chance.randrange(len(fields)))
                self._alter(table).delete_column((*holder.split("."), found.name)).commit()

    def add(self, table: Table, chance: Random) -> None:
        for holder, fields in self._some(chance):
            name = self._free(fields, chance)
            if name:
                fields.append(self._field(name, chance.choice(("int", "string"))))
                self._alter(table).add_column((*holder.split("."), name), TYPES[fields[-1].type]).commit()

    def widen(self, table: Table, chance: Random) -> None:
        for holder, fields in self._some(chance):
            for found in fields:
                if found.type == "int":
                    found.type = "bigint"
                    self._alter(table).update_column((*holder.split("."), found.name), LongType()).commit()

    def move(self, table: Table, chance: Random) -> None:
        for holder, fields in self._some(chance):
            found = chance.choice(fields)
            self._alter(table).move_first((*holder.split("."), found.name)).commit()

    def _alter(self, table: Table) -> Any:
        return pyiceberg(table).update_schema(allow_incompatible_changes=True)

    def _some(self, chance: Random) -> Iterator[tuple[str, list[Field]]]:
        holder = chance.choice(HOLDERS)
        yield holder, self.holders[holder]

    def _free(self, fields: list[Field], chance: Random) -> str | None:
        free = sorted({*NAMES} - {f.name for f in fields})
        return chance.choice(free) if free else None

    # -- values: by the numbers of their fields, by the names that these have now -------------------------------

    def _field(self, name: str, type_: str) -> Field:
        return Field(name, type_, next(self.numbers))

    def _values(self, holder: str, chance: Random) -> dict[Any, Any]:
        values = {f.number: str(chance.randrange(99)) for f in self.holders[holder]}
        return {number: text if chance.random() < 0.9 else None for number, text in values.items()}

    def _now(self, holder: str, values: dict[Any, Any]) -> dict[str, Any]:
        found = {}
        for known in self.holders[holder]:
            text = values.get(known.number)
            found[known.name] = text if text is None or known.type == "string" else int(text)
        return found

    def _named(self, key: int) -> dict[str, Any]:
        row = self.rows[key]
        return {
            "id": key,
            "st": {**self._now("st", row["st"]), "inner": self._now("st.inner", row["st"]["inner"])},
            "arr": [self._now("arr.element", each) for each in row["arr"]],
            "m": [(name, self._now("m.value", each)) for name, each in row["m"].items()],
        }

    def _expected(self) -> list[str]:
        return sorted(json.dumps(self._named(key), sort_keys=True) for key in self.rows)

    def _shown(self, rows: pa.Table) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in rows.select(["id", "st", "arr", "m"]).to_pylist())
