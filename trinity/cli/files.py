"""The subcommands that bring files into a table, and a table's rows into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow as pa
import typer

from trinity.cli.options import AsJson, Executor, Named, Warehouse, open_table, reporting_errors
from trinity.cli.output import json_lines, tell
from trinity.cli.progress import progress
from trinity.errors import TrinityError

if TYPE_CHECKING:
    from trinity.spi import CommitResult
    from trinity.table import Table

_KINDS: Final = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
"""Extension of a file's name -> format of the file; JSON has an object in each line."""
_BLOCK_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a text file that are read at once. The first of them decide the types of a new table's columns."""


def load(
    table: Named,
    files: Annotated[list[Path], typer.Argument(exists=True, help="Parquet, CSV or JSON lines, all alike.")],
    key: Annotated[str, typer.Option(help="Key columns of a new table: 'id' or 'a,b'; a plain one without.")] = "",
    watermark: Annotated[str | None, typer.Option(help="Watermark column of a new table.")] = None,
    tombstone: Annotated[str | None, typer.Option(help="Tombstone column of a new table.")] = None,
    partition: Annotated[str, typer.Option("--partition-by", help="Partition columns of a new table.")] = "",
    txn: Annotated[str | None, typer.Option(help="APPLICATION:NUMBER: a load that is repeated does nothing.")] = None,
    evolve: Annotated[bool, typer.Option("--evolve", help="Add the files' new columns to the table.")] = False,
    warehouse: Warehouse = "warehouse",
    as_json: AsJson = False,
) -> None:
    """Load files into a table in one commit: upserts into a keyed table, appends to a plain one.

    A table that does not exist is made, with the files' columns. So is the warehouse. Where the load fails there is no
    new table.
    """
    application = _txn(txn)
    with reporting_errors():
        from trinity.connecting import connect
        from trinity.engine.appending.append import append_rows

        with connect(warehouse) as session:
            options = {"watermark-key": watermark, "tombstone-key": tombstone}
            made: dict[str, Any] = {
                "primary_key": _names(key),
                "partition_by": _names(partition),
                "properties": {name: value for name, value in options.items() if value is not None},
            }

            results: list[CommitResult] = []

            def write(into: Table, *, new: bool = True) -> None:
                with _counting(_reader(files, into)) as (rows, _):
                    results.append(append_rows(into, rows, application, evolve=evolve, new=new))

            if session.table_exists(table):
                write(found := session.table(table), new=False)
            else:
                found = session.create_table(table, _reader(files).schema, **made, fill=write)
            [done] = results
            text = f"loaded before, by {txn}" if done.skipped else f"version {done.version}, {done.rows:,} rows"
            values = {"table": str(found.name), "version": done.version, "rows": done.rows}
            tell(as_json, values, f"{found.name}: {text}.")


def export(
    table: Named,
    file: Annotated[Path, typer.Argument(help="New file; its name ends in .parquet, .csv or .jsonl.")],
    columns: Annotated[str, typer.Option(help="Some columns: 'id,name'.")] = "",
    where: Annotated[str | None, typer.Option(help="A condition, as in SQL.")] = None,
    version: Annotated[int | None, typer.Option(help="An older version.")] = None,
    warehouse: Warehouse = "warehouse",
    engine: Executor = "auto",
    as_json: AsJson = False,
) -> None:
    """Write the merged rows of a table into a file, which appears when it is whole."""
    kind = _kind_of(file)
    with open_table(table, warehouse, engine) as found:
        if file.exists():
            raise TrinityError("INVALID_ARGUMENTS", f"'{file}' exists already; give the name of a new file.")
        rows = found.to_reader(columns=_names(columns) or None, where=where, version=version)
        unfinished = file.with_name(f".{file.name}.part")
        try:
            with _counting(rows) as (counted, count):
                _WRITERS[kind](unfinished, counted)
            unfinished.rename(file)
        finally:
            unfinished.unlink(missing_ok=True)
    tell(as_json, {"file": str(file), "rows": count()}, f"{file}: {count():,} rows.")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _txn(text: str | None) -> tuple[str, int] | None:
    """Parse APPLICATION:NUMBER. Raise BadParameter."""
    if text is None:
        return None
    application, _, number = text.rpartition(":")
    if not application or not number.isdecimal():
        raise typer.BadParameter(f"'{text}' is not of the form APPLICATION:NUMBER", param_hint="--txn")
    return application, int(number)


def _kind_of(file: Path) -> str:
    """Return the format of a file by the extension of its name. Raise BadParameter for another extension."""
    if (kind := _KINDS.get(file.suffix.lower())) is None:
        raise typer.BadParameter(f"'{file}' ends in none of {', '.join(_KINDS)}")
    return kind


def _reader(files: list[Path], into: Table | None = None) -> pa.RecordBatchReader:
    """Read files of one format, or folders of them: all the columns that one of them has.

    CSV and JSON values get the types of ``into``, if given.
    """
    from pyarrow import csv, dataset, json

    every = [file for given in files for file in _files_in(given)]
    kinds = {_kind_of(file) for file in every}
    if len(kinds) != 1:
        what = f"files of more than one kind: {', '.join(sorted(kinds))}" if kinds else "no file"
        raise typer.BadParameter(f"there are {what}", param_hint="FILES")
    types = None if into is None else into.schema
    forms = {
        "parquet": dataset.ParquetFileFormat,
        "csv": lambda: dataset.CsvFileFormat(
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, null_values=[""]),
        ),
        "json": lambda: dataset.JsonFileFormat(read_options=json.ReadOptions(block_size=_BLOCK_BYTES)),
    }
    (kind,) = kinds
    paths = [str(file) for file in every]
    try:
        form = forms[kind]()
        schema = _columns_of([dataset.dataset(path, format=form).schema for path in paths])
        if types is not None and kind == "csv":
            schema = _with_types(schema, types, _is_local_time)
        if types is None or kind != "json":
            return dataset.dataset(paths, schema=schema, format=form).scanner().to_reader()
        wanted = _with_types(schema, types, _is_not_read_from_json)
        return dataset.dataset(paths, schema=_as_written(wanted), format=form).scanner().to_reader().cast(wanted)
    except pa.ArrowInvalid as error:
        text = str(error).rpartition("input source ")[2]  # before that, Arrow's text repeats this message's beginning
        raise TrinityError("INVALID_ARGUMENTS", f"No rows can be read from {text}") from error


def _columns_of(schemas: list[pa.Schema]) -> pa.Schema:
    """Return the columns of several files, each with its type in the first file that has values of it."""
    found: dict[str, pa.Field] = {}
    for field in (field for schema in schemas for field in schema):
        if field.name not in found or pa.types.is_null(found[field.name].type):
            found[field.name] = field
    return pa.schema(list(found.values()))


def _with_types(schema: pa.Schema, stored: pa.Schema, stays: Callable[[pa.DataType, pa.DataType], bool]) -> pa.Schema:
    """Return columns with the stored types of their names, which may be in another case.

    A column stays as it is where ``stays`` is true of its type and of the stored one.
    """
    types = {field.name.lower(): field.type for field in stored}
    pairs = [(field, types.get(field.name.lower(), field.type)) for field in schema]
    return pa.schema([field if stays(field.type, kind) else field.with_type(kind) for field, kind in pairs])


def _is_local_time(read: pa.DataType, stored: pa.DataType) -> bool:
    """Return whether times without zone, which are in the session's zone, come into a column of instants."""
    return pa.types.is_timestamp(read) and pa.types.is_timestamp(stored) and read.tz is None and stored.tz is not None


def _is_not_read_from_json(read: pa.DataType, stored: pa.DataType) -> bool:
    """Return whether Arrow reads no values of the stored type from JSON's texts."""
    of_others = (pa.types.is_nested, pa.types.is_binary, pa.types.is_time)
    return pa.types.is_nested(read) or any(is_other(stored) for is_other in of_others)


def _as_written(wanted: pa.Schema) -> pa.Schema:
    """Return columns of JSON with the types by which Arrow reads them: dates are texts, and are cast then."""
    return pa.schema([f.with_type(pa.string()) if pa.types.is_date(f.type) else f for f in wanted])


def _files_in(given: Path) -> list[Path]:
    if not given.is_dir():
        return [given]
    return sorted(file for file in given.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))


@contextmanager
def _counting(rows: pa.RecordBatchReader) -> Iterator[tuple[pa.RecordBatchReader, Callable[[], int]]]:
    """Yield the rows, and a counter of the rows read so far; show the count on a terminal."""
    with progress("{task.completed:,} rows") as shown:
        task = shown.add_task("", total=None)

        def each() -> Iterator[pa.RecordBatch]:
            for batch in rows:
                shown.advance(task, batch.num_rows)
                yield batch

        yield pa.RecordBatchReader.from_batches(rows.schema, each()), lambda: int(shown.tasks[0].completed)


def _write_parquet(file: Path, rows: pa.RecordBatchReader) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, rows.schema) as to:
        for batch in rows:
            to.write_batch(batch)


def _write_csv(file: Path, rows: pa.RecordBatchReader) -> None:
    from pyarrow import csv

    for field in rows.schema:
        if pa.types.is_nested(field.type):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Column '{field.name}' is {field.type}, and CSV holds single values alone; leave it out by --columns, "
                "or export to .parquet or .jsonl.",
            )
    with csv.CSVWriter(file, rows.schema) as to:
        for batch in rows:
            to.write_batch(batch)


def _write_json(file: Path, rows: pa.RecordBatchReader) -> None:
    with file.open("w", encoding="utf-8") as to:
        for batch in rows:
            to.writelines(json_lines(batch))


_WRITERS: Final = {"parquet": _write_parquet, "csv": _write_csv, "json": _write_json}
