"""Histories of Iceberg tables of Trinity that PyIceberg writes, too, and of a Parquet table that Trinity alone writes.

Both take the same steps. Rows that PyIceberg appends to one are upserted into the other; PyIceberg's rewrites change
nothing there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import StringType

from trinity import Column, Session, Table, TrinityError

__all__ = ["COLUMNS", "ENGINES", "add_column", "append", "iceberg_table", "make", "play", "rewrite", "batch", "shown"]

COLUMNS: Final = [
    Column("k", "int"),
    Column("w", "bigint"),
    Column("n", "bigint"),
    Column("v", "string"),
    Column("x", "string"),
    Column("gone", "boolean"),
]
ENGINES: Final[dict[str, Mapping[str, str]]] = {
    "tombstone": {"watermark-key": "w", "tombstone-key": "gone"},
    "hidden_row_kind": {"watermark-key": "w"},
    "arrival": {"tombstone-key": "gone"},
    "partial_update": {"merge-engine": "partial-update"},
    "sequence_group": {
        "merge-engine": "partial-update",
        "fields.w.sequence-group": "n,v",
        "fields.n.aggregate-function": "sum",
    },
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "ordered_aggregation": {
        "merge-engine": "aggregation",
        "sequence.field": "w",
        "fields.v.aggregate-function": "listagg",
    },
    "plain": {},
}
_BY_ARRIVAL: Final = ("arrival", "partial_update", "sequence_group", "aggregation")
"""Kinds of tables in which a rewrite by others reorders upserted rows (L3), so that others add only new keys."""
_REFUSED: Final = ("it is not known any more", "changed or deleted compacted rows")
_STEPS: Final = ("add", "other add", "other add", "rewrite", "delete", "update", "compact", "full")


def batch(keys: list[int], w: int) -> pa.Table:
    """Return a row for each of these keys."""
    return pa.table(
        {
            "k": pa.array(keys, pa.int32()),
            "w": pa.array([w] * len(keys), pa.int64()),
            "n": pa.array(keys, pa.int64()),
            "v": [f"{k}.{w}" for k in keys],
            "x": [None if w % 2 else f"x{w}" for _ in keys],
            "gone": pa.array([False] * len(keys)),
        }
    )


def make(session: Session, fmt: str, engine: str) -> Table:
    """Make an empty table with the options of a merge engine; ``plain`` is a table without a key."""
    key = [] if engine == "plain" else ["k"]
    return session.create_table(f"{fmt}.default.{engine}", COLUMNS, primary_key=key, properties=ENGINES[engine])


def iceberg_table(warehouse: Path, table: Table) -> IcebergTable:
    """Return the table as PyIceberg opens it."""
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{warehouse}/iceberg/catalog.db", warehouse=str(warehouse))
    return catalog.load_table(f"default.{table.name.table}")


def append(other: IcebergTable, added: pa.Table) -> None:
    """Append rows by PyIceberg, which leaves the hidden columns NULL."""
    schema = other.schema().as_arrow()
    columns = [
        added[f.name].cast(f.type) if f.name in added.column_names else pa.nulls(len(added), f.type) for f in schema
    ]
    other.append(pa.Table.from_arrays(columns, schema=schema))


def rewrite(other: IcebergTable, seed: int) -> None:
    """Rewrite all stored rows by PyIceberg into one file, in another order, in one commit."""
    stored, old = other.scan().to_arrow(), [task.file for task in other.scan().plan_files()]
    if not len(stored):
        return
    places = pa.array(random.Random(seed).sample(range(len(stored)), len(stored)), pa.int64())
    with other.transaction() as transaction, transaction.update_snapshot().overwrite() as commit:
        for file in old:
            commit.delete_data_file(file)
        for file in _dataframe_to_data_files(other.metadata, stored.take(places), other.io):
            commit.append_data_file(file)


def shown(table: Table) -> list[str]:
    """Return the merged rows as texts, read by this process."""
    return sorted(map(repr, table.to_arrow().to_pylist()))


def add_column(other: IcebergTable, name: str) -> None:
    """Add a text column by PyIceberg, unless the table has it."""
    if name not in other.schema().column_names:
        with other.update_schema() as change:
            change.add_column(name, StringType())


def play(
    session: Session,
    warehouse: Path,
    engine: str,
    seed: int,
    check: Callable[[Table], object] = shown,
    further: Sequence[str] = (),
) -> bool:
    """Play a history on an Iceberg table and on its Parquet twin.

    Args:
        session: a session that has catalogs of both formats in the warehouse.
        warehouse: the warehouse's folder.
        engine: the name of the options in :data:`ENGINES`.
        seed: the seed of the history.
        check: also checks the Iceberg table after each step.
        further: kinds of steps beside those of every history: ``other column``, ``vacuum``.

    Returns:
        False where it ended early with a refusal: the order of two row versions of a key was no longer known (L3), or
        the rewrite, which PyIceberg calls an overwrite, rewrote rows that the sidecar folds (E3).

    Raises:
        AssertionError: the tables differ; it lists the steps.
    """
    chance, table, twin = random.Random(seed), make(session, "iceberg", engine), make(session, "parquet", engine)
    done = list[str]()

    def both(*steps: Callable[[Table], Any]) -> None:
        for step in steps:
            step(table)
            step(twin)

    if engine != "plain":  # the first row change adds the stamp of arrival (K4)
        both(lambda t: t.upsert(batch([9], 0)), lambda t: t.delete("k = 9"))
    for moment in range(1, 13):
        step, keys = chance.choice((*_STEPS, *further)), chance.sample(range(8), chance.randint(1, 4))
        if step == "other add" and engine in _BY_ARRIVAL:
            keys = [key + 10 * moment for key in keys]
        some = batch(keys, moment)
        done.append(f"{step} {some.to_pylist() if 'add' in step else keys[0]}")
        try:
            match step:
                case "add":
                    both(lambda t: t.append(some) if engine == "plain" else t.upsert(some))  # noqa: B023
                case "other add":
                    append(iceberg_table(warehouse, table), some)
                    twin.append(some) if engine == "plain" else twin.upsert(some)
                case "rewrite":
                    rewrite(iceberg_table(warehouse, table), seed)
                case "other column":
                    add_column(iceberg_table(warehouse, table), "extra")
                    if "extra" not in twin.columns:
                        session.sql(f"ALTER TABLE {twin.name} ADD COLUMN extra STRING")
                    both(lambda t: t.update(f"k <= {keys[0]}", {"extra": f"'e{moment}'"}))  # noqa: B023
                case "delete":
                    both(lambda t: t.delete(f"k = {keys[0]}"))  # noqa: B023
                case "update":
                    both(lambda t: t.update(f"k <= {keys[-1]}", {"x": f"'u{moment}'"}))  # noqa: B023
                case "vacuum":
                    table.vacuum("0 seconds")
                case _:
                    table.compact(full=step == "full")
            check(table)
            assert shown(table) == shown(twin), f"{engine}, seed {seed}:\n" + "\n".join(done)
        except TrinityError as error:
            if not any(words in str(error) for words in _REFUSED):
                raise AssertionError(f"{engine}, seed {seed}:\n" + "\n".join(done)) from error
            return False
    return True
