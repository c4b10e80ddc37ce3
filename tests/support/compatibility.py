"""What Trinity reads, writes and refuses of each format, tried without Spark: for docs/compatibility.md, and its test.

``python -m tests.support.compatibility`` writes the page anew.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

import trinity
from tests.support.delta_by_hand import Log
from tests.support.delta_shapes import PLAIN
from tests.support.paths import ROOT
from tests.support.typed_rows import CASES
from trinity import Column, Session, Table
from trinity.spi import Capability, arrow_type
from trinity_delta import DeltaFormat
from trinity_iceberg import IcebergFormat
from trinity_parquet import ParquetFormat

PAGE: Final = ROOT / "docs/compatibility.md"
FORMATS: Final = {"Parquet": ParquetFormat(), "Delta": DeltaFormat(), "Iceberg": IcebergFormat()}
READERS: Final = (
    "catalogManaged", "columnMapping", "deletionVectors", "geospatial", "timestampNtz", "typeWidening", "v2Checkpoint",
    "vacuumProtocolCheck", "variantShredding", "variantType",
)  # fmt: skip
"""Features of Delta Lake 4.4 for readers and writers."""
WRITERS: Final = (
    "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "checkpointProtection", "clustering",
    "domainMetadata", "generatedColumns", "icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "identityColumns",
    "inCommitTimestamp", "invariants", "materializePartitionColumns", "rowTracking",
)  # fmt: skip
"""Features for writers only."""
ICEBERG_VERSIONS: Final = (1, 2, 3)
LEFT_OUT: Final = ("c_decimal38", "c_decimal38s", "c_deep")
"""Columns whose types behave like another column's."""
_HEAD: Final = """# Compatibility

This page shows what each format's tables can do, how they store each type, and which features of other writers' tables
Trinity reads and writes. A program tries all of it and writes the page (`python -m tests.support.compatibility`), and a
test compares the page with what it finds. What *other* engines see in Trinity's tables is in
[Other engines](other-engines.md#who-sees-what).
"""
_CAPABILITIES: Final = """
## What each format's tables can do

The [conformance suite](glossary.md#conformance-suite) tries each of these: what is marked *yes* works, and everything
else is refused with `NOT_SUPPORTED` before anything is changed.

The tables lie on a disk. In a bucket Parquet and Delta tables [keep their names](tables.md#another-name).
"""
_TYPES: Final = """
## Types

Each cell says how the format stores a column of the type. The rows that were written came back equal. Where a format
lacks a type, the table's properties keep its name, so that Trinity reads and checks the type that you declared
([more](formats.md#types)).
"""
_DELTA: Final = """
## Features of Delta tables that others made

Each feature of Delta Lake 4.4 was put into the protocol of a table by itself. *Read* and *written* say whether Trinity
accepts that table. *Refused* means `NOT_SUPPORTED`, which names the feature. A table that has columns with generated
values, identities or invariants is read, and not written. A column of type VARIANT is refused.
"""
_ICEBERG: Final = """
## Versions of Iceberg tables that others made

Of the delete files of others, Trinity honours [position deletes](glossary.md#position-delete), equality deletes and
[deletion vectors](glossary.md#deletion-vector) in
[external tables](external-tables.md#what-is-honoured-what-is-refused). In its own tables it refuses equality deletes.
"""


def page() -> str:
    """Return the text of the page."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        parts = [
            _HEAD,
            _CAPABILITIES,
            _table(("", *FORMATS), _capabilities()),
            _TYPES,
            _table(("type", *FORMATS), _types(place / "types")),
            _DELTA,
            _table(("feature", "read", "written"), _delta(place / "delta")),
            _ICEBERG,
            _table(("format version", "read", "written"), _iceberg(place / "iceberg")),
        ]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _capabilities() -> Iterator[Sequence[str]]:
    for capability in Capability:
        if not capability.value.startswith("type ") and capability is not Capability.COMMITS_IN_STORAGE:  # the suite's
            have = (capability in found.capabilities for found in FORMATS.values())
            yield capability.value, *("yes" if has else "refused" for has in have)


def _types(place: Path) -> Iterator[Sequence[str]]:
    """Yield a row of the table for each type: how each format stores it."""
    stored = {"Parquet": _in_parquet, "Delta": _in_delta, "Iceberg": _in_iceberg}
    with trinity.connect(place, engine="local") as session:
        for name, (kind, values) in CASES.items():
            if name in LEFT_OUT:
                continue
            cells = (of(_filled(session, f"{fmt.lower()}.default.{name}", kind, values)) for fmt, of in stored.items())
            yield f"`{kind}`", *cells


def _filled(session: Session, name: str, kind: str, values: list[Any]) -> Table:
    table = session.create_table(name, [Column("k", "int"), Column("v", kind)], primary_key=["k"])
    data = pa.array(values, arrow_type(kind))
    table.upsert(pa.table({"k": pa.array(range(len(data)), pa.int32()), "v": data}))
    assert table.to_arrow().sort_by("k")["v"].to_pylist() == data.to_pylist(), name
    return table


def _in_parquet(table: Table) -> str:
    kind = pq.read_schema(table.splits().files[0].path).field("v").type
    return f"`{_nested(kind) or kind}`"


def _in_delta(table: Table) -> str:
    (kind,) = (json.loads(f.to_json())["type"] for f in DeltaTable(table.location).schema().fields if f.name == "v")
    return f"`{kind['type'] if isinstance(kind, Mapping) else kind}`"


def _in_iceberg(table: Table) -> str:
    newest = max(Path(table.location, "metadata").glob("*.metadata.json"))
    kind = StaticTable.from_metadata(str(newest)).schema().find_field("v").field_type
    return f"`{str(kind).partition('<')[0]}`"


def _nested(kind: pa.DataType) -> str | None:
    return next((n for n in ("list", "map", "struct") if getattr(pa.types, f"is_{n}")(kind)), None)


def _delta(place: Path) -> Iterator[Sequence[str]]:
    with trinity.connect(place / "warehouse", engine="local") as session:
        for feature in sorted((*READERS, *WRITERS)):
            readers, writers = ([feature], []) if feature in READERS else ([], [feature])
            Log.of(place / feature, PLAIN, readers=readers, writers=writers)
            register = partial(session.register, f"delta.default.{feature}", "delta", place / feature)
            yield f"`{feature}`", *_tried(session, register)


def _iceberg(place: Path) -> Iterator[Sequence[str]]:
    place.mkdir()
    options = {"uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}"}
    catalog = SqlCatalog("lake", **options)
    catalog.create_namespace("theirs")
    lake = {"connector": "iceberg", "warehouse": str(place), "uri": options["uri"]}
    with trinity.connect(catalogs={"lake": lake}, engine="local") as session:
        for version in ICEBERG_VERSIONS:
            _theirs(catalog, version)
            yield str(version), *_tried(session, partial(session.table, f"lake.theirs.v{version}"))


def _theirs(catalog: SqlCatalog, version: int) -> None:
    """Make an empty table of an Iceberg format version. PyIceberg writes no version 3: its metadata are edited."""
    made = catalog.create_table(f"theirs.v{version}", PLAIN, properties={"format-version": str(min(version, 2))})
    if version == 3:
        path = Path(made.metadata_location.removeprefix("file://"))
        metadata = {**json.loads(path.read_text()), "format-version": 3, "next-row-id": 0}
        path.write_text(json.dumps(metadata))


def _tried(session: Session, table: Callable[[], Table]) -> tuple[str, str]:
    """Return whether Trinity reads a table, and whether it writes it."""
    try:
        found = table()
    except trinity.TrinityError as error:
        if error.code != "NOT_SUPPORTED":
            raise
        return "refused", "refused"
    metadata = session.connector(found.name.catalog).metadata
    return _answer(found.splits), _answer(partial(metadata.begin_insert, found.handle))


def _answer(step: Callable[[], object]) -> str:
    try:
        step()
    except trinity.TrinityError as error:
        if error.code != "NOT_SUPPORTED":
            raise
        return "refused"
    return "yes"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
