"""The user's Spark settings change no result of Trinity's (N3), and Trinity leaves them unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

import trinity.dbapi
from trinity import Session, TrinityError

HOSTILE: Final[dict[str, str]] = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.charVarcharAsString": "true",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.legacy.castComplexTypesToString.enabled": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true",
    "spark.sql.legacy.setopsPrecedence.enabled": "true",
    "spark.sql.legacy.nullInEmptyListBehavior": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "false",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parquet.int96AsTimestamp": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.crossJoin.enabled": "false",
    "spark.sql.sources.bucketing.enabled": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.datetime.java8API.enabled": "false",
}
BY_FOUR: Final = [dict(list(HOSTILE.items())[start::8]) for start in range(8)] + [
    {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"},
    {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.enforceReservedKeywords": "true"},
    {"spark.sql.session.timeZone": "Asia/Kolkata"},
]
"""Settings, four at a time: one that changes an answer is not hidden by all the others."""


@contextmanager
def under(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Run with Spark settings of the user; check at the end that they are unchanged."""
    before = {key: spark.conf.get(key, None) for key in settings}
    given = {key: before[key] for key in settings if key in spark.conf.getAll}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
        kept = {key: spark.conf.get(key) for key in settings if key != "spark.sql.datetime.java8API.enabled"}
        assert kept == {key: value for key, value in settings.items() if key in kept}
    finally:
        for key in settings:
            if key in given:
                spark.conf.set(key, str(given[key]))
            else:
                spark.conf.unset(key)


STATEMENTS: Final = """
    CREATE TABLE {t} (Id INT, V TINYINT, At TIMESTAMP_NTZ, Day DATE, Name CHAR(3), D DECIMAL(38,10), Raw BINARY, `a|b` INT)
    INSERT INTO {t} VALUES (1, 1, TIMESTAMP_NTZ '2024-03-10 02:30:00', DATE '1582-10-10', 'a', 0.1, X'61', 7)
    INSERT INTO {t} (ID, v, name) VALUES (2, 127, 'it\\'s')
    INSERT INTO {t} (id, v) VALUES (3, 300)
    INSERT INTO {t} (id, v) VALUES (3, '3')
    INSERT INTO {t} (id, v) VALUES (CAST('x' AS INT), 3)
    INSERT INTO {t} (id, v) VALUES (4, 4)
    UPDATE {t} SET V = V + CAST(1 AS TINYINT) WHERE ID = 2
    UPDATE {t} SET v = V + 1 WHERE iD = 1
    UPDATE {t} SET day = DATE '1000-01-01' WHERE ID = 4 AND size(NULL) IS NULL
    MERGE INTO {t} T USING (SELECT 1 AS ID, 9 AS v UNION ALL SELECT 5, 5) s ON t.id = S.iD WHEN MATCHED THEN UPDATE SET T.V = s.v WHEN NOT MATCHED THEN INSERT (ID, V) VALUES (S.Id, 10)
    MERGE INTO {t} USING (SELECT 6 AS a, 'x' AS b) s ON {t}.id > s.a WHEN NOT MATCHED THEN INSERT (id, name) VALUES (a, b)
    DELETE FROM {t} WHERE ID = 4 AND Day < DATE '1582-10-10'
    SELECT * FROM {t}
    SELECT ID, `a|b`, id + 1 AS n FROM {t} WHERE DAY = DATE '1582-10-10'
    SELECT id FROM {t} WHERE At = TIMESTAMP_NTZ '2024-03-10 02:30:00'
    SELECT CAST(at AS STRING), CAST(raw AS STRING), D * D AS dd, D / 3 AS dt FROM {t} WHERE id = 1
    SELECT CAST(TIMESTAMP '2024-07-01 12:00:00' AS DATE) AS d, size(NULL) AS s, 'a\\tb' AS e, "x" AS q, CAST('7' AS INT) AS i
    SELECT CAST(NULL AS TIMESTAMP) AS t, concat('x', NULL) AS c, 1 / 4 AS f, CAST(named_struct('a', NULL) AS STRING) AS n
    SELECT CAST('x' AS INT) AS i
    SELECT 1 / 0 AS f
    SELECT id % 2 AS g, count(*) AS n FROM {t} GROUP BY 1 ORDER BY 1 DESC
    SELECT id FROM {t} WHERE name = 'it\\'s' OR id IN (1, '5')
    SELECT id FROM {t} UNION SELECT 9 EXCEPT SELECT 9 INTERSECT SELECT 8 ORDER BY id
"""  # noqa: E501


def answers(session: Session, table: str) -> list[Any]:
    """Return the rows and types of every statement, or the code of its error."""
    found: list[Any] = []
    for line in filter(None, map(str.strip, STATEMENTS.splitlines())):
        try:
            rows = session.sql(line.format(t=table))
            made = sorted(map(repr, rows.toArrow().to_pylist()))
            found.append((line, rows.to_df().schema.simpleString(), made))
        except TrinityError as error:
            found.append((line, error.code))
        except Exception as error:  # as a query that Spark runs late
            found.append((line, type(error).__name__))
    known = session.table(table)
    read = known.to_df(where="ID < 3 AND day IS NOT NULL").toArrow()
    found += [sorted(map(repr, read.to_pylist())), [c.type for c in known.definition.visible]]
    known.append(pa.table({"ID": [7], "v": pa.array([1], pa.int8())}))
    known.compact()
    found.append(sorted(map(repr, known.to_df().toArrow().to_pylist())))
    return found


@pytest.mark.full
def test_no_setting_changes_an_answer(session: Session, spark: SparkSession, tiered_fmt: str) -> None:
    wanted = answers(session, f"{tiered_fmt}.default.t")
    session.drop_table(f"{tiered_fmt}.default.t")
    with under(spark, HOSTILE):
        assert answers(session, f"{tiered_fmt}.default.t") == wanted


@pytest.mark.full
@pytest.mark.parametrize("settings", BY_FOUR, ids=lambda s: ",".join(k.removeprefix("spark.sql.") for k in s))
def test_few_settings_change_no_answer(session: Session, spark: SparkSession, settings: dict[str, str]) -> None:
    wanted = answers(session, "parquet.default.t")
    session.drop_table("parquet.default.t")
    with under(spark, settings):
        assert answers(session, "parquet.default.t") == wanted


def test_what_a_query_would_ask_later_is_refused(session: Session, spark: SparkSession) -> None:
    query = "SELECT to_date('2024-1-5', 'yyyy-MM-dd') AS d"
    with under(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):
        with pytest.raises(TrinityError, match=r"spark\.sql\.legacy\.timeParserPolicy=LEGACY") as refused:
            session.sql(query)
        assert refused.value.code == "CONFIGURATION_INVALID"
        assert session.sql("SELECT 1 AS one").first() is not None
    assert session.sql(query) is not None


def test_a_lazy_read_keeps_its_meaning(session: Session, spark: SparkSession) -> None:
    """Trinity's settings hold when it is analysed, the user's when it is collected."""
    session.sql("CREATE TABLE t (id INT, day DATE, n INT)")
    session.sql("INSERT INTO t VALUES (1, DATE '1582-10-10', 2147483647)")
    rows = session.sql(
        "SELECT ID, try_add(n, 1) AS n, CAST(day AS TIMESTAMP) AS at FROM t WHERE day = DATE '1582-10-10'"
    )
    with under(spark, HOSTILE):
        spark.conf.set("spark.sql.datetime.java8API.enabled", "true")
        assert rows.to_df().schema["at"].dataType.typeName() == "timestamp"
        assert rows.count() == 1
        assert session.table("t").to_df().count() == 1


def test_settings_of_the_users_own_can_be_set_by_sql(session: Session, spark: SparkSession) -> None:
    with under(spark, {"spark.sql.ansi.enabled": "false"}):
        session.sql("SET spark.sql.ansi.enabled = true")
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
        session.sql("SET spark.sql.ansi.enabled = false")


def test_n2_a_variable_of_sparks_in_a_text_is_text(session: Session, warehouse: Path) -> None:
    """Spark would replace it by the environment's value."""
    text = "${env:HOME} and ${spark.app.name}"
    session.spark.conf.set("spark.sql.variable.substitute", "true")  # Spark's default; ours has it off
    assert session.sql(f"SELECT '{text}' AS x").collect() == [Row(x=text)]
    session.sql(f"CREATE TABLE texts (id INT, v STRING DEFAULT '{text}')")
    session.sql(f"INSERT INTO texts VALUES (1, '{text}'), (2, DEFAULT), (3, '')")
    session.sql(f"UPDATE texts SET v = '{text}' WHERE v <> '{text}'")
    assert session.sql(f"SELECT count(*) AS n FROM texts WHERE v = '{text}'").collect() == [Row(n=3)]
    with trinity.dbapi.connect(warehouse=warehouse) as connection:
        assert connection.execute("SELECT id, ? FROM texts WHERE v = ? AND id = 1", (text, text)).fetchall() == [
            (1, text)
        ]


@pytest.mark.parametrize("zone", ["Asia/Tokyo", None])
def test_a_session_without_spark_keeps_its_own_time_zone_beside_a_spark(
    spark: SparkSession, tmp_path: Path, zone: str | None
) -> None:
    settings = {"spark.sql.session.timeZone": zone} if zone else {}
    with trinity.connect(tmp_path / "w", engine="local", spark_settings=settings) as session:
        hour = session.sql("SELECT hour(TIMESTAMP '2026-01-01 00:00:00+00:00') AS h").fetchall()
        shown = (session.timezone, hour)
    running = spark.conf.get("spark.sql.session.timeZone")
    assert shown == (zone or running, [(9 if zone else 0,)])


def test_what_several_catalogs_need_is_there_once(session: Session) -> None:
    """An extension that is listed twice would parse every statement twice."""
    for key in ("spark.sql.extensions", "spark.jars"):
        items = session.spark.sparkContext.getConf().get(key, "").split(",")
        assert sorted(items) == sorted(set(items)), key
