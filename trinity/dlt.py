"""A destination for dlt: pipelines load files into Trinity's tables, each file exactly once, in one commit.

Needs the extra ``trinity-merge[dlt]``.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.calls import public
from trinity.errors import TrinityError
from trinity.names import TableName

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.spi import CommitResult, TableDefinition, TransactionId
    from trinity.table import Table

__all__ = ["destination"]

_Hints = Mapping[str, Any]
"""dlt's schema of a table."""

_JOBS: Final = ("new_jobs", "started_jobs", "completed_jobs", "failed_jobs")
"""Folders of a load package; each of its files is in one of them."""


@public
def destination(session: Session, schema: str | None = None, *, name: str = "trinity") -> Any:
    """Return a destination for ``dlt.pipeline(destination=...)``.

    A resource with ``write_disposition="merge"`` and a primary key is loaded into a keyed table by upserts; its hint
    ``hard_delete`` marks rows that are deleted, ``dedup_sort`` says which row of a key in a file is taken. ``append``
    and ``replace`` are loaded into plain tables. The first load creates a table; later loads add new columns.

    Args:
        session: the session, which stays open as long as the pipeline runs.
        schema: ``catalog.schema`` of the tables, or a schema of the current catalog; by default the current one.
        name: name of the destination in dlt's configuration.

    Raises:
        TrinityError: CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND; CONFIGURATION_INVALID without dlt.
    """
    try:
        dlt = import_module("dlt")
    except ModuleNotFoundError as error:
        raise TrinityError(
            "CONFIGURATION_INVALID", f"dlt is not installed ({error}): pip install 'trinity-merge[dlt]'."
        ) from error
    session.tables(schema=schema)  # raises an error for a schema that does not exist
    target_schema = session.full_name(f"{schema}._" if schema else "_")

    def load(items: str, table: dict[str, Any]) -> None:
        with _reporting_to_dlt():
            _load(session, target_schema, Path(items), table)

    load.__annotations__ = {"items": Any, "table": dict[str, Any]}
    made = dlt.destination(
        load,
        name=name,
        batch_size=0,  # whole files
        loader_file_format="parquet",
        max_table_nesting=0,
        naming_convention="direct",
        skip_dlt_columns_and_tables=True,
    )
    return made()


@dataclass(frozen=True)
class _LoadFile:
    """A file of a load package of a pipeline."""

    path: Path

    @property
    def table(self) -> str:
        """The name of the table in dlt."""
        return self.path.name.split(".")[0]

    @property
    def number(self) -> int:
        """The number of the load: later loads of a pipeline have higher ones."""
        return int(Decimal(self.path.parent.parent.name) * 1_000_000)

    @property
    def index(self) -> int:
        """The file's index among those of its table in the package; the same at each attempt."""
        mine, package, pattern = self.path.name.split(".")[1], self.path.parent.parent, f"{glob.escape(self.table)}.*"
        folders = _JOBS * 2  # a file that dlt moves back, to load it again, may be missed once
        found = {file.name.split(".")[1] for folder in folders for file in (package / folder).glob(pattern)}
        return sorted(found | {mine}).index(mine)

    def commit(self, table: Table, word: str, write: Callable[[TransactionId], CommitResult]) -> None:
        """Make a commit of the load once: loads of other pipelines, and of dlt's other tables, do not count.

        Raises:
            TrinityError: INVALID_ARGUMENTS if a later load of a pipeline of the same name came first.
        """
        pipeline = self.path.parents[4].name
        application = f"dlt {pipeline}/{self.table} {word}"
        if not write((application, self.number)).skipped:
            return
        recorded = table.connector.metadata.recorded_txn(table.handle, application)
        if recorded is not None and recorded > self.number:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table.name}' has a later load of pipeline '{pipeline}', so that it is not known whether it "
                f"has the rows of {self.path.name}; let pipelines that run at once have different names.",
            )


def _load(session: Session, target_schema: TableName, file: Path, hints: _Hints) -> None:
    """Load a file of a load package in one commit, unless an earlier attempt has committed it."""
    name, load = TableName(target_schema.catalog, target_schema.schema, hints["name"].lower()), _LoadFile(file)
    rows, disposition = _rows(file, hints), hints.get("write_disposition", "append")
    table = _table(session, name, rows.schema, hints, keyed=disposition == "merge")
    if disposition == "replace":
        load.commit(table, "truncate", lambda txn: table.truncate(txn=txn))
    keyed = table.definition.keyed
    rows = _in_dedup_order(rows, table.definition.primary_key, hints) if keyed else rows
    write = table.upsert if keyed else table.append
    load.commit(table, str(load.index), lambda txn: write(rows, txn=txn, evolve=True))


def _rows(file: Path, hints: _Hints) -> pa.Table:
    """Return the rows of a file, without dlt's own columns."""
    import pyarrow.parquet as pq

    found = pq.read_table(file)
    return found.select([column for column in found.column_names if column in hints["columns"]])


def _table(session: Session, name: TableName, schema: pa.Schema, hints: _Hints, *, keyed: bool) -> Table:
    """Return the table of a resource; create it if it does not exist.

    Raises:
        TrinityError: NOT_SUPPORTED for ``merge`` without a primary key, and for a hint that no table can follow;
            INVALID_ARGUMENTS if the table exists with another key, or without the resource's tombstone-key.
    """
    columns = hints["columns"]
    key = [column for column, given in columns.items() if given.get("primary_key")] if keyed else []
    if keyed and (not key or any(given.get("merge_key") for given in columns.values())):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Resource '{hints['name']}' is merged {'by a merge_key' if key else 'without a primary key'}; give it "
            "primary_key alone, since rows that share a merge_key are not replaced.",
        )
    if keyed and (strategy := hints.get("x-merge-strategy")) not in (None, "delete-insert", "upsert"):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Resource '{hints['name']}' is merged by strategy '{strategy}', and this destination replaces the row of "
            "a key, as 'upsert' and 'delete-insert' do.",
        )
    deleting = [column for column, given in columns.items() if given.get("hard_delete")] if keyed else []
    for column in deleting:
        if not pa.types.is_boolean(schema.field(column).type):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Column '{column}' of resource '{hints['name']}' marks deleted rows and is "
                f"{schema.field(column).type}; give the hint hard_delete to a boolean column.",
            )
    fields = [pa.field(f.name, f.type, nullable=f.name not in key) for f in schema]
    properties = {"tombstone-key": deleting[0]} if deleting else {}
    made = session.create_table(name, pa.schema(fields), primary_key=key, properties=properties, if_not_exists=True)
    why = None
    if made.definition.keyed is not keyed:
        why = f"{'has no' if keyed else 'has a'} primary key, and resource '{hints['name']}' is loaded by "
        why += f"{hints.get('write_disposition')}"
    elif not _same_key(made.definition, key):
        has = ", ".join(made.definition.primary_key)
        why = f"has the primary key ({has}), and resource '{hints['name']}' has ({', '.join(key)})"
    elif deleting and made.properties.get("tombstone-key", "").lower() != deleting[0].lower():
        why = f"has no tombstone-key '{deleting[0]}', by which resource '{hints['name']}' marks deleted rows"
    if why is not None:
        raise TrinityError("INVALID_ARGUMENTS", f"Table '{name}' {why}; load it under another name.")
    return made


def _same_key(made: TableDefinition, key: Sequence[str]) -> bool:
    """Return whether a table has the key of a resource; partition columns may be in it besides (K5)."""
    wanted, has = ({name.lower() for name in names} for names in (key, made.primary_key))
    return wanted <= has <= wanted | {name.lower() for name in made.partition_columns}


def _in_dedup_order(rows: pa.Table, key: tuple[str, ...], hints: _Hints) -> pa.Table:
    """Sort the rows so that the last one of each key is the one that ``dedup_sort`` keeps. NULL comes before values."""
    for column, given in hints["columns"].items():
        if (order := given.get("dedup_sort")) is not None:
            last = "ascending" if order == "desc" else "descending"
            names = {name.lower(): name for name in rows.column_names}
            ranked_by = [rows.column(names[name.lower()]) for name in key if name.lower() in names]
            ranks = [*ranked_by, pc.is_valid(rows.column(column)), rows.column(column)]
            ways = [*("ascending" for _ in ranks[1:]), last]
            ranked = pa.table(ranks, [f"{number}" for number in range(len(ranks))])
            return rows.take(pc.sort_indices(ranked, [*zip(ranked.column_names, ways, strict=True)]))
    return rows


@contextmanager
def _reporting_to_dlt() -> Iterator[None]:
    """Turn a TrinityError of the block into dlt's exception that says whether to load the file again."""
    try:
        yield
    except TrinityError as error:
        exceptions = import_module("dlt.common.destination.exceptions")
        again = error.retryable or error.code == "COMMIT_STATE_UNKNOWN"  # a file's txn keeps it from being loaded twice
        kind = exceptions.DestinationTransientException if again else exceptions.DestinationTerminalException
        raise kind(str(error)) from error
