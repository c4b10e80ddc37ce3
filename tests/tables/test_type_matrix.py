"""Every type through every kind of write and read, in several zones, under unusual settings of Spark (N3)."""

from __future__ import annotations

import datetime as dt
import operator
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.edges import CASES, COLUMNS, PRIMITIVES, edges, literal, rows_of, within_python
from tests.support.zones import ZONED, ZONES, frame
from trinity import Session, Table, dbapi
from trinity.engine.reading.files import prune
from trinity.engine.reading.predicate import Predicate
from trinity.zones import zone_of

pytestmark = pytest.mark.inner

SHORT: Final = {(False, ZONES[0]), (True, ZONES[1])}
PLACES: Final = [
    pytest.param(keyed, zone, marks=() if (keyed, zone) in SHORT else pytest.mark.full)
    for keyed in (False, True)
    for zone in ZONES
]
TURNS: Final = [pytest.param(n % 2 == 1, zone, marks=pytest.mark.full) for n, zone in enumerate(ZONES)]
"""Tables without and with a key by turns: keys and zones do not interact in writes."""


@dataclass(frozen=True)
class Place:
    """The table of a test, with its names and folders."""

    session: Session
    warehouse: Path
    name: str
    keyed: bool

    def made(self) -> Table:
        return self.session.create_table(self.name, COLUMNS, primary_key=["k"] if self.keyed else [])

    @property
    def table(self) -> Table:
        return self.session.table(self.name)

    def write(self, rows: Any) -> None:
        (self.table.upsert if self.keyed else self.table.append)(rows)

    def view(self) -> None:
        frame(self.session, edges()).createOrReplaceTempView("edge_rows")


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.full)], ids=["plain", "keyed"])
def matrix(request: pytest.FixtureRequest, session: Session, warehouse: Path, tiered_fmt: str) -> Place:
    return Place(session, warehouse, f"{tiered_fmt}.default.t", request.param)


def check(found: pa.Table, given: pa.Table | None = None) -> None:
    """Check that the columns hold the values that were written."""
    wanted = rows_of(edges() if given is None else given)
    values = rows_of(found.select(["k", *wanted]))
    for name in wanted:
        assert values[name] == wanted[name], name


# -- ways in --------------------------------------------------------------------------------------------


def by_arrow(place: Place) -> pa.Table:
    place.made()
    place.write(edges())
    return edges()


def by_frame(place: Place) -> pa.Table:
    place.made()
    place.write(frame(place.session, edges()))
    return edges()


def by_pandas(place: Place) -> pa.Table:
    import pandas as pd

    place.made()
    rows = edges().select(["k", *PRIMITIVES])
    place.write(rows.to_pandas(types_mapper=pd.ArrowDtype))
    return rows


def by_values(place: Place) -> pa.Table:
    place.made()
    rows = edges().select(["k", *PRIMITIVES])
    lines = [", ".join([str(n), *(literal(CASES[c][0], edge(c, n)) for c in PRIMITIVES)]) for n in range(rows.num_rows)]
    place.session.sql(f"INSERT INTO {place.name} (k, {', '.join(PRIMITIVES)}) VALUES ({'), ('.join(lines)})")
    return rows


def edge(column: str, number: int) -> Any:
    values = CASES[column][1]
    return values[number] if number < len(values) else None


def by_insert(place: Place) -> pa.Table:
    place.made()
    place.view()
    place.session.sql(f"INSERT INTO {place.name} SELECT * FROM edge_rows")
    return edges()


def by_merge(place: Place) -> pa.Table:
    place.made()
    place.write(edges().slice(3, 4))
    place.view()
    place.session.sql(f"""
        MERGE INTO {place.name} t USING edge_rows s ON t.k = s.k
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""")
    return edges()


def by_ctas(place: Place) -> pa.Table:
    place.view()
    key = " TBLPROPERTIES ('primary-key' = 'k')" if place.keyed else ""
    place.session.sql(f"CREATE TABLE {place.name}{key} AS SELECT * FROM edge_rows")
    return edges()


def by_parameters(place: Place) -> pa.Table:
    place.made()
    rows = within_python(edges()).select(["k", *PRIMITIVES])
    line = f"({', '.join('?' for _ in rows.column_names)})"
    with dbapi.connect(warehouse=str(place.warehouse)) as connection:
        connection.cursor().execute(
            f"INSERT INTO {place.name} ({', '.join(rows.column_names)}) VALUES {', '.join([line] * rows.num_rows)}",
            [value for row in rows.to_pylist() for value in row.values()],
        )
    return rows


WAYS_IN: Final[dict[str, Callable[[Place], pa.Table]]] = {
    way.__name__.removeprefix("by_"): way
    for way in (by_arrow, by_frame, by_pandas, by_values, by_insert, by_merge, by_ctas, by_parameters)
}


@pytest.mark.parametrize(("matrix", "zone"), TURNS, indirect=True)
@pytest.mark.parametrize("way", WAYS_IN)
def test_what_goes_in_comes_out(matrix: Place, zone: str, way: str) -> None:
    given = WAYS_IN[way](matrix)
    check(matrix.table.to_df().toArrow(), given)


def test_lists_within_nothing_are_written(session: Session, spark: SparkSession) -> None:
    """Spark's pages have no offsets for a list without items, on which Arrow's kernels crash."""
    rows = edges().select(["k", "n_deep"])
    rows = rows.take(list(range(7, rows.num_rows)))  # Spark itself refuses a slice
    table = session.create_table("parquet.default.t", [c for c in COLUMNS if c.name in rows.column_names])
    table.append(frame(session, rows).coalesce(1))
    check(table.to_df().toArrow(), rows)


# -- ways out -------------------------------------------------------------------------------------------


def in_duckdb(table: Table) -> pa.Table:
    return duckdb.connect().sql(table.merge_view_sql("duckdb")).to_arrow_table()


@pytest.mark.parametrize(("matrix", "zone"), PLACES, indirect=True)
def test_values_stay_as_they_are(matrix: Place, zone: str) -> None:
    """Values are read, rewritten by UPDATE and MERGE, compacted, and read by DuckDB, which ignores Spark's zones."""
    by_arrow(matrix)
    check(in_duckdb(matrix.table))
    sql, name = matrix.session.sql, matrix.name
    sql(f"UPDATE {name} SET c_int = c_int, c_ntz = c_ntz, n_list = n_list WHERE k < 6")
    check(in_duckdb(matrix.table))
    matrix.session.table(name).to_df().createOrReplaceTempView("own_rows")
    sql(f"MERGE INTO {name} t USING own_rows s ON t.k = s.k AND t.c_date = s.c_date WHEN MATCHED THEN UPDATE SET *")
    check(sql(f"SELECT * FROM {name}").toArrow())
    matrix.table.compact(full=True)
    check(in_duckdb(matrix.table))
    check(matrix.table.to_df().toArrow())


@pytest.mark.full
def test_every_way_out_tells_the_same(matrix: Place, zone: str) -> None:
    by_arrow(matrix)
    for _ in range(2):
        check(matrix.table.log().toArrow())
        check(matrix.session.spark.sql(matrix.table.merge_view_sql("spark")).toArrow())
        check(in_duckdb(matrix.table))
        matrix.table.compact(full=True)
    as_foreign(matrix)
    check_python(matrix, zone)


def as_foreign(place: Place) -> None:
    """Check the compacted table, registered as an external table in another warehouse."""
    connector = place.name.split(".")[0]
    with trinity.connect(place.warehouse.parent / "elsewhere") as other:
        key = {"primary-key": "k"} if place.keyed else {}
        if connector == "parquet":
            folder = place.warehouse.parent / "folder"
            folder.mkdir()
            for number, file in enumerate(place.table.splits().files):
                shutil.copy(file.path, folder / f"{number}.parquet")
            key.pop("primary-key", None)
        else:
            folder = Path(place.table.location)
        table = other.register("parquet.default.foreign", connector, folder, key)
        check(table.to_df().toArrow())


def check_python(place: Place, zone: str) -> None:
    """Check values converted to Python: timestamps are in the zone of the session and of the process, here the same."""
    rows = within_python(edges()).select(["k", *PRIMITIVES])
    where = f"k IN ({', '.join(map(str, rows.column('k').to_pylist()))})"
    query = f"SELECT k, {', '.join(PRIMITIVES)} FROM {place.name} WHERE {where} ORDER BY k"
    wanted = [tuple(clock(value, zone) for value in row.values()) for row in rows.to_pylist()]
    collected = [tuple(clock(value, zone) for value in row) for row in place.session.sql(query).collect()]
    assert list(map(repr, collected)) == list(map(repr, wanted))
    with dbapi.connect(warehouse=str(place.warehouse)) as connection:
        fetched = connection.cursor().execute(query).fetchall()
    assert [repr(tuple(clock(v, zone) for v in row)) for row in fetched] == list(map(repr, wanted))
    known = [row for row in rows.to_pylist() if row["c_ntz"] is not None and row["c_ntz"].year in range(1678, 2262)]
    where = f"k IN ({', '.join(str(row['k']) for row in known)})"  # pandas has nanoseconds only in these years
    pandas = place.session.sql(f"SELECT c_ntz FROM {place.name} WHERE {where} ORDER BY k").toPandas()
    assert [repr(clock(v.to_pydatetime(), zone)) for v in pandas["c_ntz"]] == [repr(row["c_ntz"]) for row in known]
    assert known


def clock(value: Any, zone: str) -> Any:
    if isinstance(value, dt.datetime):
        return (value.astimezone(zone_of(zone)) if value.tzinfo else value).replace(tzinfo=None, fold=0)
    return bytes(value) if isinstance(value, bytearray) else value


def test_fetched_instants_are_those_of_the_session(session: Session, warehouse: Path, zone: str) -> None:
    """The zone of the process does not matter: a fetched value means what the same naive parameter means."""
    os.environ["TZ"] = "Australia/Eucla"
    time.tzset()
    session.sql("CREATE TABLE t (k INT, at TIMESTAMP, clock TIMESTAMP_NTZ, day DATE, times ARRAY<TIMESTAMP>)")
    gap = dt.datetime(2024, 3, 10, 2, 30)
    values = [1, dt.datetime(2024, 7, 1, 12), gap, dt.date(2024, 7, 1)]
    with dbapi.connect(warehouse=str(warehouse)) as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t VALUES (?, ?, ?, ?, array(TIMESTAMP '2024-07-01 12:00:00'))", values)
        assert cursor.execute("SELECT * FROM t").fetchall() == [(*values, [values[1]])]
        assert cursor.execute("SELECT k FROM t WHERE at = ? AND clock = ?", values[1:3]).fetchall() == [(1,)]
        assert [c[1] for c in cursor.execute("SELECT at, clock FROM t").description or ()] == [
            "timestamp",
            "timestamp_ntz",
        ]


def test_clocks_become_instants_as_in_spark(session: Session, zone: str) -> None:
    """Times that a zone has twice, or not at all, are among them; from Arrow, from SQL, and for a DataFrame."""
    session.sql("CREATE TABLE t (k INT, at TIMESTAMP)")
    texts = ["2024-03-10 02:30:00", "2024-11-03 01:30:00", "1883-11-18 12:01:00", "1000-01-01 00:00:00"]
    clocks = pa.array([dt.datetime.fromisoformat(text) for text in texts], pa.timestamp("us"))
    session.table("t").append(pa.table({"k": pa.array(range(len(texts)), pa.int32()), "at": clocks}))
    session.sql(f"INSERT INTO t VALUES {', '.join(f'({n}, TIMESTAMP_NTZ {t!r})' for n, t in enumerate(texts))}")
    found = session.sql("SELECT k, count(DISTINCT at) AS n, min(CAST(at AS STRING)) AS s FROM t GROUP BY k").collect()
    assert {r.n for r in found} == {1}
    wanted = {n: session.spark.sql(f"SELECT CAST(TIMESTAMP '{t}' AS STRING)").head()[0] for n, t in enumerate(texts)}  # type: ignore[index]
    assert {r.k: r.s for r in found} == wanted


# -- predicates -----------------------------------------------------------------------------------------


OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<=>": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
ORDERED: Final = [c for c in PRIMITIVES if c not in ("c_float", "c_double", "c_boolean")]


def predicates(column: str) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield (a predicate, the keys of the rows for which it is true)."""
    kind, values = CASES[column]
    texts = {n: literal(kind, v) for n, v in enumerate(values)}
    for n, value in enumerate(values):
        for sign, test in OPERATORS.items():
            yield f"{column} {sign} {texts[n]}", frozenset(k for k, v in enumerate(values) if test(v, value))
    for n, m in ((n, m) for n in texts for m in texts if n < m):
        low, high = sorted((n, m), key=lambda k: values[k])
        within = frozenset(k for k, v in enumerate(values) if values[low] <= v <= values[high])
        yield f"{column} BETWEEN {texts[low]} AND {texts[high]}", within
        yield (
            f"{column} IN ({texts[n]}, {texts[m]})",
            frozenset(k for k, v in enumerate(values) if v in (values[n], values[m])),
        )


@pytest.mark.parametrize("whole", [False, True], ids=["row by row", "one file"])
def test_no_file_is_left_out_that_has_a_row(session: Session, tiered_fmt: str, whole: bool) -> None:
    """Every predicate is tried against the statistics of each format, with one row a file, and with all in one."""
    table = session.create_table(f"{tiered_fmt}.default.t", COLUMNS)
    for part in [edges()] if whole else [edges().slice(n, 1) for n in range(edges().num_rows)]:
        table.append(part)
    splits = table.splits()
    files = sorted(splits.files, key=lambda f: f.commit or 0)
    for predicate, keys in (found for column in ORDERED for found in predicates(column)):
        for timezone in ("UTC", "America/New_York"):
            kept = prune(files, Predicate.of(splits.definition, predicate, partial(str, timezone)))
            assert kept or not keys, predicate
            assert whole or all(files[key] in kept for key in keys), predicate


def check_predicates(place: Place, predicates: dict[str, frozenset[int]]) -> None:
    parts = [f"SELECT {n} AS n, k FROM {place.name} WHERE {p}" for n, p in enumerate(predicates)]
    found: dict[int, set[int]] = {n: set() for n in range(len(parts))}
    for row in place.session.sql(" UNION ALL ".join(parts)).collect():
        found[row.n].add(row.k)
    for n, (predicate, keys) in enumerate(predicates.items()):
        assert found[n] == keys, predicate


def test_a_day_that_the_old_calendar_lacks(matrix: Place) -> None:
    """10 October 1582: Spark's own pruning of files must not take it for another day."""
    by_arrow(matrix)
    matrix.table.compact(full=True)
    day, instant, clock = (literal(CASES[c][0], CASES[c][1][n]) for c, n in (("c_date", 2), ("c_ts", 6), ("c_ntz", 6)))
    check_predicates(
        matrix,
        {
            f"c_date = {day}": frozenset((2,)),
            f"c_date >= {day} AND c_date < DATE '1582-10-11'": frozenset((2,)),
            f"c_ts = {instant}": frozenset((6,)),
            f"c_ntz = {clock}": frozenset((6,)),
        },
    )
    assert matrix.table.to_df().where(f"c_date = {day}").count() == 1
    assert matrix.session.sql(f"UPDATE {matrix.name} SET c_int = 1 WHERE c_date = {day}").first()[0] == 1


@pytest.mark.full
def test_predicates_find_their_rows(matrix: Place, zone: str) -> None:
    """Spark's own pruning of files does not lose any. A query costs 0.1 s: some of a column's predicates are drawn."""
    by_arrow(matrix)
    matrix.table.compact(full=True)
    for column in (c for c in ORDERED if (c, zone) in ZONED):
        found, drawn = dict(predicates(column)), random.Random(f"{matrix.name} {matrix.keyed} {zone} {column}")
        check_predicates(matrix, {one: found[one] for one in drawn.sample(sorted(found), min(40, len(found)))})
