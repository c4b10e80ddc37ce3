"""Dates and times in files of other writers: years beyond Python's, the Julian calendar, INT96."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.edges import AFTER_9999, BEFORE_CHRIST, plain
from tests.support.foreign import Write, cases, delta_rs, delta_rs_by_partition, pyarrow_files, pyiceberg, spark_iceberg
from trinity import Session, TrinityError

DAY: Final = 86_400_000_000
UNABLE: Final = (pyiceberg, delta_rs_by_partition)
"""Writers that cannot write such years, or whose rows must have a column ``p``."""


def batch(*days: int) -> pa.Table:
    """Return a row for each day since the epoch, with the day's midnight in UTC."""
    return pa.table(
        {
            "id": pa.array(range(len(days)), pa.int64()),
            "day": pa.array(days, pa.date32()),
            "at": pa.array([d * DAY for d in days], pa.timestamp("us", "UTC")),
        }
    )


@pytest.mark.parametrize(
    ("connector", "write"), [c for c in cases(pyarrow_files, spark_iceberg) if c.values[1] not in UNABLE]
)
def test_years_that_python_lacks(session: Session, tmp_path: Path, connector: str, write: Write) -> None:
    """Their bounds are unknown, but the table is readable, and the rows are found."""
    folder = tmp_path / "theirs"
    for day in (0, AFTER_9999, BEFORE_CHRIST):
        write(folder, batch(day))
    write(folder, batch(1, AFTER_9999 + 1))
    table = session.register("theirs", connector, folder, {})
    found = table.to_df().toArrow()
    assert sorted(plain(found.column("day"))) == [BEFORE_CHRIST, 0, 1, AFTER_9999, AFTER_9999 + 1]
    assert sorted(plain(found.column("at"))) == [d * DAY for d in sorted(plain(found.column("day")))]
    for where, days in {
        "day > DATE '9999-12-31'": [AFTER_9999, AFTER_9999 + 1],
        "day = DATE '+10000-01-01'": [AFTER_9999],
        "at < TIMESTAMP '0001-01-01 00:00:00Z'": [BEFORE_CHRIST],
        "day IN (DATE '1970-01-02', DATE '1970-01-03')": [1],
    }.items():
        assert sorted(plain(session.sql(f"SELECT day FROM theirs WHERE {where}").toArrow().column("day"))) == days


def test_files_of_the_julian_calendar(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """Spark marks files that count days by the old calendar; their bounds are not days of today's."""
    folder, old = tmp_path / "theirs", dt.date(1200, 1, 1)
    mode = "spark.sql.parquet.datetimeRebaseModeInWrite"
    spark.conf.set(mode, "LEGACY")
    try:
        spark.sql("SELECT DATE '1200-01-01' AS day, 1 AS id").coalesce(1).write.parquet(str(folder))
    finally:
        spark.conf.unset(mode)
    table = session.register("theirs", "parquet", folder, {})
    assert table.splits().files[0].bounds("day") is None
    assert [r.day for r in session.sql("SELECT day FROM theirs WHERE day = DATE '1200-01-01'").collect()] == [old]
    assert table.to_arrow(["day"]).to_pylist() == table.to_polars(["day"]).to_dicts() == [{"day": old}]


@pytest.mark.parametrize("zone", ["America/New_York", pytest.param("UTC", marks=pytest.mark.full)])
def test_int96_is_an_instant(session: Session, spark: SparkSession, tmp_path: Path, zone: str) -> None:
    """INT96, the oldest form of a timestamp, has neither a calendar nor a zone."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    micros = [-30_000 * DAY, 0, 20_000 * DAY + 1]
    given = pa.table({"id": [0, 1, 2], "at": pa.array(micros, pa.timestamp("us", "UTC"))})
    pq.write_table(given, folder / "0.parquet", use_deprecated_int96_timestamps=True)
    before = {key: spark.conf.get(key) for key in ("spark.sql.session.timeZone", "spark.sql.parquet.int96AsTimestamp")}
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.parquet.int96AsTimestamp", "false")
    spark.conf.set("spark.sql.parquet.int96RebaseModeInRead", "LEGACY")
    try:
        table = session.register("theirs", "parquet", folder, {})
        found = table.to_df().orderBy("id").toArrow()
        assert plain(found.column("at")) == micros
        where = F.col("at") >= F.lit(dt.datetime(2000, 1, 1, tzinfo=dt.UTC))
        assert [r.id for r in table.to_df().where(where).collect()] == [2]
    finally:
        spark.conf.unset("spark.sql.parquet.int96RebaseModeInRead")
        for key, value in before.items():
            spark.conf.set(key, str(value))


def test_what_would_change_another_reader_is_refused(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """Delta's own reader takes the calendar only from the session."""
    delta_rs(tmp_path / "theirs", batch(0))
    table = session.register("theirs", "delta", tmp_path / "theirs", {})
    key = "spark.sql.parquet.datetimeRebaseModeInRead"
    spark.conf.set(key, "LEGACY")
    try:
        with pytest.raises(TrinityError, match=key) as refused:
            table.to_df()
        assert refused.value.code == "CONFIGURATION_INVALID"
    finally:
        spark.conf.unset(key)
    assert table.to_df().count() == 1
