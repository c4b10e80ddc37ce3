"""Tables of other engines that are odd, but legal by their format's specification: read as they are, or refused."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from operator import eq, ge, le
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.delta_by_hand import CHECKPOINT, Log, vector_file
from tests.support.files_of_others import iceberg_table
from tests.support.others import pyiceberg
from tests.support.refusals import refused
from trinity import Column, Session

NAN: Final = float("nan")
IDS: Final = pa.schema([("id", pa.int64())])


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_delta_partitions_of_floats(local: Session, tmp_path: Path, kind: pa.DataType) -> None:
    rows = pa.table({"id": [1, 2, 3, 4, 5], "p": pa.array([0.5, NAN, -0.0, None, float("-inf")], kind)})
    write_deltalake(tmp_path / "theirs", rows, partition_by=["p"])
    table = local.register("theirs", "delta", tmp_path / "theirs")
    assert repr(table.to_arrow().sort_by("id").to_pylist()) == repr(rows.to_pylist())
    assert sorted(row.id for row in local.sql("SELECT id FROM theirs WHERE p > 0.1").collect()) == [1, 2]
    table.append(rows.set_column(0, "id", pa.array([6, 7, 8, 9, 10])))
    theirs = DeltaTable(tmp_path / "theirs").to_pyarrow_table().sort_by("id")
    assert repr(table.to_arrow().sort_by("id").to_pylist()) == repr(theirs.to_pylist())
    assert theirs["p"].slice(5).to_pylist()[3:] == [None, float("-inf")]


@pytest.mark.parametrize("key", ["P", "p"])
@pytest.mark.parametrize("name", ["P", "p"])
def test_delta_partitions_in_another_case(local: Session, tmp_path: Path, name: str, key: str) -> None:
    log = Log.of(tmp_path / "theirs", pa.schema([("id", pa.int64()), ("p", pa.int64())]), partition_by=[name])
    log.append(pa.table({"id": [1]}), "1.parquet", partitionValues={key: "5"})
    table = local.register("theirs", "delta", tmp_path / "theirs")
    table.append(pa.table({"id": [2], "p": [6]}))
    assert table.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "p": 5}, {"id": 2, "p": 6}]


def test_delta_partitions_of_bytes_are_left_to_their_engine(local: Session, tmp_path: Path) -> None:
    log = Log.of(tmp_path / "theirs", pa.schema([("id", pa.int64()), ("p", pa.binary())]), partition_by=["p"])
    log.append(pa.table({"id": [1]}), "1.parquet", partitionValues={"p": "\\u0061"})
    table = local.register("theirs", "delta", tmp_path / "theirs")
    with refused("NOT_SUPPORTED", "needs Spark", "partition column (p)"):
        table.to_arrow()
    with refused("NOT_SUPPORTED", "binary column 'p'"):
        table.append(pa.table({"id": [2], "p": [b"a"]}))
    assert len(DeltaTable(tmp_path / "theirs").file_uris()) == 1


def test_delta_partitions_that_were_widened(local: Session, tmp_path: Path) -> None:
    """Values of older files have the type that the column has now, in tables of others and in Trinity's own."""
    days = [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]
    write_deltalake(tmp_path / "theirs", pa.table({"id": [1, 2], "p": days}), partition_by=["p"])
    theirs = local.register("theirs", "delta", tmp_path / "theirs")
    local.sql("CREATE TABLE delta.default.ours (id BIGINT, p DATE) PARTITIONED BY (p)")
    ours = local.table("delta.default.ours")
    ours.append(pa.table({"id": [1, 2], "p": days}))
    moments = [dt.datetime.combine(day, dt.time()) for day in days]
    for table in (theirs, ours):
        assert sorted(table.to_arrow()["p"].to_pylist()) == days
        _widen(Path(table.location), "p", "timestamp_ntz")
        assert sorted(table.to_arrow()["p"].to_pylist()) == moments
        assert table.to_arrow(where="p = TIMESTAMP_NTZ '2021-01-01 00:00:00'")["id"].to_pylist() == [2]
        table.append(pa.table({"id": [3], "p": moments[1:]}))
        assert sorted(table.to_arrow()["p"].to_pylist()) == [*moments, moments[1]]
    assert local.sql("DELETE FROM delta.default.ours WHERE p > TIMESTAMP_NTZ '2020-06-01 00:00:00'").first()[0] == 2
    assert ours.to_arrow()["id"].to_pylist() == [1]


def _widen(folder: Path, name: str, wider: str) -> None:
    """Widen a column, as Spark's ALTER TABLE does."""
    commits = sorted((folder / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    [protocol, *_] = [action["protocol"] for action in actions if "protocol" in action]
    metadata = [action["metaData"] for action in actions if "metaData" in action][-1]
    features = {"typeWidening", "timestampNtz"}
    protocol |= {"minReaderVersion": 3, "minWriterVersion": 7}
    for key in ("readerFeatures", "writerFeatures"):
        protocol[key] = sorted({*protocol.get(key, ()), *features})
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        if field["name"] == name:
            field["metadata"]["delta.typeChanges"] = [{"fromType": field["type"], "toType": wider}]
            field["type"] = wider
    metadata["schemaString"] = json.dumps(schema)
    now = int(dt.datetime.now().timestamp() * 1000) + 1000
    info = {"timestamp": now, "inCommitTimestamp": now, "operation": "CHANGE COLUMN"}
    lines = map(json.dumps, ({"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata}))
    (folder / "_delta_log" / f"{len(commits):020d}.json").write_text("\n".join(lines))


def test_delta_bounds_that_are_rounded(local: Session, tmp_path: Path) -> None:
    """delta-rs writes bounds of decimals as floating-point numbers: rows outside of them are found nevertheless."""
    values = [Decimal(text) for text in ("12345678901234567890.123456", "-0.000007", "99999999999999.999999")]
    for value in values:
        write_deltalake(tmp_path / "theirs", pa.table({"d": pa.array([value], pa.decimal128(38, 6))}), mode="append")
    table = local.register("theirs", "delta", tmp_path / "theirs")
    for value in (*values, *(-value for value in values)):
        assert table.to_arrow(where=f"d = {value:f}").num_rows == (value in values)
        assert table.to_arrow(where=f"d <= {value:f}").num_rows == sum(other <= value for other in values)
        assert table.to_arrow(where=f"d >= {value:f}").num_rows == sum(other >= value for other in values)


@pytest.mark.parametrize("domain", ["delta.rowTracking", "delta.clustering"])
@pytest.mark.parametrize("content", [None, "", "{", "[]"], ids=str)
def test_malformed_domains_of_delta(local: Session, tmp_path: Path, domain: str, content: str | None) -> None:
    log = Log.of(tmp_path / "theirs", IDS, writers=["domainMetadata", "rowTracking", "clustering"])
    log.commit({"domainMetadata": {"domain": domain, "configuration": content, "removed": False}})
    with refused("BAD_DATA", f"{log.version:020d}.json", "domainMetadata"):
        local.register("theirs", "delta", tmp_path / "theirs").to_arrow()


def test_delta_vectors_by_uri(local: Session, tmp_path: Path) -> None:
    folder = tmp_path / "of 100%"
    log = Log.of(folder, IDS, readers=["deletionVectors"])
    vector = vector_file(folder, [1])
    [file] = folder.glob("*.bin")
    log.append(pa.table({"id": [1, 2]}), "1.parquet", deletionVector={**vector, "storageType": "p", **_at(file)})
    assert local.register("theirs", "delta", folder).to_arrow()["id"].to_pylist() == [1]


def _at(file: Path) -> dict[str, str]:
    return {"pathOrInlineDv": file.as_uri()}


def test_delta_checkpoint_with_late_years(local: Session, tmp_path: Path) -> None:
    """Typed bounds in years that Python does not have do not keep anybody from reading the log."""
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("day", pa.date32())])
    log = Log.of(tmp_path / "theirs", schema, readers=["timestampNtz"])
    rows = pa.table({"id": [1], "at": [dt.datetime(2020, 1, 1)], "day": [dt.date(2020, 1, 1)]}, schema)
    log.append(rows, "1.parquet", stats=None)
    bounds = pa.struct([("id", pa.int64()), ("at", pa.timestamp("us")), ("day", pa.date32())])
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds)])
    add = pa.field("add", pa.struct([*CHECKPOINT.field("add").type, ("stats_parsed", parsed)]))
    late = pa.scalar({"id": 1, "at": 1 << 60, "day": 1 << 30}, pa.struct([(f.name, pa.int64()) for f in bounds]))
    typed = pa.scalar({"numRecords": 1, "minValues": late.as_py(), "maxValues": late.as_py()}, _as_numbers(parsed))
    actions = [{"add": {**a["add"], "stats_parsed": typed.as_py()}} if "add" in a else a for a in log.rows()]
    whole = CHECKPOINT.set(CHECKPOINT.get_field_index("add"), add)
    log.classic(pa.schema([f.with_type(_as_numbers(f.type)) if f.name == "add" else f for f in whole]), actions)
    path = log.name("checkpoint.parquet")
    pq.write_table(pq.read_table(path).cast(whole), path)
    log.commit()
    log.forget(log.version)
    table = local.register("theirs", "delta", tmp_path / "theirs")
    assert table.to_arrow(where="id = 1 AND at < TIMESTAMP_NTZ '2021-01-01 00:00:00'").num_rows == 1
    assert table.to_arrow(where="id = 2").num_rows == 0


def _as_numbers(kind: pa.DataType) -> pa.DataType:
    """Return a type with whole numbers instead of dates and times."""
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_as_numbers(f.type)) for f in kind])
    return pa.int32() if pa.types.is_date(kind) else pa.int64() if pa.types.is_timestamp(kind) else kind


def test_iceberg_defaults_within_columns(local: Session, tmp_path: Path) -> None:
    """Files that lack a field have its default, which this process does not know: it reads no NULL there."""
    folder = tmp_path / "theirs"
    pyiceberg(folder, pa.table({"s": pa.array([{"a": 1}], pa.struct([("a", pa.int64())]))}))
    newest = max((folder / "metadata").glob("*.metadata.json"))
    metadata: dict[str, Any] = json.loads(newest.read_text())
    field = {"id": 9, "name": "b", "required": False, "type": "long", "initial-default": 7, "write-default": 7}
    [schema] = metadata["schemas"]
    schema["fields"][0]["type"]["fields"].append(field)
    rows = {"first-row-id": 0, "added-rows": 1}
    metadata |= {"format-version": 3, "last-column-id": 9, "next-row-id": 1}
    metadata["snapshots"] = [{**snapshot, **rows} for snapshot in metadata["snapshots"]]
    newest.write_text(json.dumps(metadata))
    table = local.register("theirs", "iceberg", folder)
    with refused("NOT_SUPPORTED", "default", "'s.b'"):
        table.to_arrow()


def _write_pages(folder: Path, rows: pa.Table, **options: Any) -> None:
    """Write a file of many pages, with an index by which single pages are read."""
    folder.mkdir(exist_ok=True)
    small = {"write_page_index": True, "data_page_size": 1024, "write_batch_size": 128, "use_dictionary": False}
    pq.write_table(rows, folder / "1.parquet", **small, **options)


@pytest.mark.parametrize("kind", [pa.decimal128(7, 1), pa.decimal128(9, 1), pa.decimal128(18, 1), pa.uint32()], ids=str)
def test_bounds_of_pages_are_in_the_form_of_their_column(local: Session, tmp_path: Path, kind: pa.DataType) -> None:
    """Decimals of others may be stored as bytes, the highest first, and numbers may have no sign."""
    step = 1 << 17 if pa.types.is_integer(kind) else Decimal("0.7")
    values = [number * step for number in range(20_000)]
    _write_pages(tmp_path / "theirs", pa.table({"n": pa.array(values, kind)}))
    table = local.register("theirs", "parquet", tmp_path / "theirs")
    for value in values[:: 20_000 // 7]:
        assert table.to_arrow(where=f"n = {value}")["n"].to_pylist() == [value]


def test_pages_of_old_times(local: Session, tmp_path: Path) -> None:
    """Times in 96 bits read the same by page, also in years that nanoseconds of 64 bits do not reach."""
    times = [dt.datetime(year, 12, 31, 23, 59, 59, 999999, dt.UTC) for year in (1, 1600, 2024, 9999)]
    rows = pa.table({"id": range(20_000), "at": pa.array(times * 5000, pa.timestamp("us", "UTC"))})
    _write_pages(tmp_path / "theirs", rows, use_deprecated_int96_timestamps=True)
    table = local.register("theirs", "parquet", tmp_path / "theirs")
    for number, time in enumerate(times, 1000):
        assert table.to_arrow(where=f"id = {number}")["at"].to_pylist() == [time]


def test_pages_of_the_julian_calendar_are_left_to_spark(local: Session, tmp_path: Path) -> None:
    rows = pa.table({"id": range(20_000), "day": pa.array([dt.date(1500, 1, 1)] * 20_000)})
    _write_pages(tmp_path / "theirs", rows.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}))
    table = local.register("theirs", "parquet", tmp_path / "theirs")
    with refused("NOT_SUPPORTED", "'day'", "1582-10-15"):
        table.to_arrow(where="id = 5")


def test_pages_of_a_file_that_was_replaced(local: Session, tmp_path: Path) -> None:
    """Another engine puts another file under the same name: its pages are elsewhere."""
    folder = tmp_path / "theirs"
    _write_pages(folder, pa.table({"id": range(20_000), "v": range(20_000)}), compression="none")
    tables = [
        local.register("plain", "parquet", folder),
        local.register("keyed", "parquet", folder, {"primary-key": "id"}),
    ]
    for ids in (range(20_000), range(10_000, 0, -1), range(30_000)):
        _write_pages(folder, pa.table({"id": ids, "v": [-number for number in ids]}), compression="none")
        for table in tables:
            assert table.to_arrow(where="id IN (5, 7000)").sort_by("id")["v"].to_pylist() == [-5, -7000]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_integers_and_decimals_in_one_column(local: Session, tmp_path: Path, kind: pa.DataType) -> None:
    (tmp_path / "theirs").mkdir()
    least = -(1 << kind.bit_width - 1)
    for number, values in enumerate((pa.array([least], kind), pa.array([Decimal("1.25")]))):
        pq.write_table(pa.table({"n": values}), tmp_path / "theirs" / f"{number}.parquet")
    table = local.register("theirs", "parquet", tmp_path / "theirs")
    assert table.to_arrow()["n"].to_pylist() == [Decimal(least), Decimal("1.25")]
    wide = pa.table({"n": pa.array([Decimal(1).scaleb(-30)], pa.decimal128(38, 30))})
    pq.write_table(wide, tmp_path / "theirs" / "2.parquet")
    with refused("TYPE_MISMATCH", "'n'", "2.parquet"):  # no column has that many digits
        table.to_arrow()


@pytest.mark.parametrize("names", [("v", "v"), ("v", "V")], ids=str)
def test_columns_of_one_name(local: Session, tmp_path: Path, names: tuple[str, str]) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "folders" / f"{names[0]}=1" / f"{names[1]}=2").mkdir(parents=True)
    pq.write_table(pa.Table.from_arrays([[1], [2]], names), tmp_path / "files" / "1.parquet")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "folders" / f"{names[0]}=1" / f"{names[1]}=2" / "1.parquet")
    for folder in ("files", "folders"):
        with refused("DUPLICATE_COLUMN_NAME", "1.parquet", f"'{names[0]}' and '{names[1]}'"):
            local.register("theirs", "parquet", tmp_path / folder).to_arrow()


def test_a_column_without_a_type(local: Session, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    pq.write_table(pa.table({"id": [1], "v": pa.nulls(1)}), tmp_path / "theirs" / "1.parquet")
    with refused("NOT_SUPPORTED", "'v'", "1.parquet", "all its values are NULL"):
        local.register("theirs", "parquet", tmp_path / "theirs").to_arrow()


def test_long_texts_have_bounds_that_others_read(local: Session, warehouse: Path) -> None:
    """An upper bound that is cut off ends with a character after the last one of the text: there may be none."""
    table = local.create_table("iceberg.default.t", [Column("k", "string", nullable=False)], primary_key=["k"])
    last, before_gap = "\U0010ffff", "\ud7ff"
    texts = ["a" * 70, last * 70, before_gap * 70, "a" * 63 + last + "b", "a" * 63 + before_gap + "b", last * 64]
    for text in texts:
        table.upsert(pa.table({"k": [text]}))
    assert sorted(table.to_arrow()["k"].to_pylist()) == sorted(texts)
    theirs = iceberg_table(warehouse, table)
    for text in texts:
        wanted = sum(other >= text for other in texts)
        assert table.to_arrow(where=f"k >= '{text}'").num_rows == wanted
        assert theirs.scan(row_filter=f"k >= '{text}'").to_arrow().num_rows == wanted


def test_delta_rs_filters_by_bounds(local: Session) -> None:
    """delta-rs leaves out files without bounds of a column: they have some, wherever there is one."""
    columns = [Column("k", "string"), Column("at", "timestamp"), Column("clock", "timestamp_ntz")]
    table = local.create_table("delta.default.t", columns)
    texts = ["a" * 70, "\0decimal", "\ud7ff" * 40, "", "a" * 31 + "\U0010ffff" * 3]
    times = [dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]
    rows = [(text, times[n % 2].replace(tzinfo=dt.UTC), times[n % 2]) for n, text in enumerate(texts)]
    for row in rows:
        table.append([dict(zip(("k", "at", "clock"), row, strict=True))])
    for number, name in enumerate(("k", "at", "clock")):
        for value in [row[number] for row in rows]:
            for operator, holds in (("=", eq), (">=", ge), ("<=", le)):
                found = DeltaTable(table.location).to_pyarrow_table(columns=[name], filters=[(name, operator, value)])
                assert found.num_rows == sum(holds(row[number], value) for row in rows)


def test_statistics_of_odd_values_in_delta(local: Session) -> None:
    columns = [Column("text", "string"), Column("at", "timestamp")]
    table = local.create_table("delta.default.t", columns, primary_key=["text"], properties={"watermark-key": "at"})
    last = dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
    table.upsert(pa.table({"text": ['x"\0decimal:5"y'], "at": pa.array([last], pa.timestamp("us", "UTC"))}))
    log = Path(table.location, "_delta_log", f"{table.version:020d}.json").read_text(encoding="utf-8")
    [added] = [action["add"] for action in map(json.loads, log.splitlines()) if "add" in action]
    assert json.loads(added["stats"])["numRecords"] == 1
    [file] = table.splits().files
    assert file.stats["at"].max == last
