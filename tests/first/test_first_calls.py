"""Every public callable as the first call of a process, and as one of sixteen first calls in threads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import FORMATS
from tests.first.one_call import FORMS, Outcome, outcomes
from tests.hostile.calls import calls

NAMES: Final = (*(call.name for call in calls()), *FORMS)
SOME: Final = tuple(dict.fromkeys(["Table.to_df", "trinity.cdc.follow", *FORMS, *NAMES[::15]]))
"""The calls of the short tier."""


def bad(found: list[Outcome]) -> list[Outcome]:
    """Return the outcomes that are neither a result nor an error of Trinity about the call."""
    return [outcome for outcome in found if outcome.code is not None and not outcome.is_refusal]


@pytest.mark.parametrize(
    "names", [pytest.param(SOME, id="some"), pytest.param(NAMES, id="all", marks=pytest.mark.full)]
)
def test_a_callable_is_the_first_call_of_a_process(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Without a Java, calls that need Spark get as far as its start, and report that."""
    found = outcomes(names, "parquet", tmp_path, java=str(tmp_path / "nosuch"))
    assert bad(found) == []
    wanting = {outcome.call for outcome in found if outcome.wants_spark}
    assert wanting > {"Table.to_df", "trinity.cdc.follow"}
    assert not wanting & {"Table.compact", "Table.changes", "Table.delete", "Session.sql", "SELECT", "merge", "MERGE"}


@pytest.mark.full
@pytest.mark.parametrize("fmt", FORMATS[1:])
def test_every_callable_is_the_first_call_on_other_formats(tmp_path: Path, fmt: str) -> None:
    assert bad(outcomes(NAMES, fmt, tmp_path, java=str(tmp_path / "nosuch"))) == []


@pytest.mark.full
@pytest.mark.parametrize("fmt", FORMATS)
def test_every_way_to_use_spark_is_the_first_call_of_a_process(tmp_path: Path, fmt: str) -> None:
    found = outcomes([*FORMS, "trinity.cdc.follow"], fmt, tmp_path)
    assert [outcome for outcome in found if outcome.code is not None] == []


THREADS: Final = 16
AT_ONCE = """
import json, os, threading
start, failed = threading.Barrier({threads}), []

def first(number):
    start.wait()
    try:
        import pyarrow as pa
        import trinity
        fmt = ("parquet", "delta", "iceberg")[number % 3]
        with trinity.connect({folder!r}) as session:
            columns = [trinity.Column("k", "bigint"), trinity.Column("v", "string")]
            table = session.create_table(fmt + ".default.t", columns, primary_key=["k"], if_not_exists=True)
            {work}
    except BaseException as error:
        failed.append((number, repr(error)))

threads = [threading.Thread(target=first, args=(number,)) for number in range({threads})]
for thread in threads: thread.start()
for thread in threads: thread.join()
import trinity
with trinity.connect({folder!r}) as session:
    tables = [session.table(fmt + ".default.t") for fmt in ("parquet", "delta", "iceberg")]
    keys = [sorted(table.to_arrow()["k"].to_pylist()) for table in tables]
print(json.dumps([failed, keys]))
"""
ARROW: Final = """
            rows = pa.table({"k": [number], "v": ["x"]})
            assert not table.upsert(rows).skipped
            assert number in table.to_arrow()["k"].to_pylist()
            (table.health, table.splits, lambda: table.definition, lambda: session.timezone)[number % 4]()
            assert session.list_tables(fmt, "default") == ["t"]
"""
SPARK: Final = """
            rows = pa.table({"k": [number], "v": ["x"]})
            insert = f"INSERT INTO {fmt}.default.t VALUES ({number}, 'x')"
            (
                lambda: table.upsert(session.spark.createDataFrame([(number, "x")], "k bigint, v string")),
                lambda: session.sql(insert),
                lambda: table.merge(rows, "t.k = s.k").when_not_matched_insert_all().execute(),
                lambda: (table.upsert(rows), table.update(f"k = {number}", {"v": "'y'"})),
                lambda: (table.upsert(rows), table.delete(f"k = -{number} - 1")),
            )[number % 5]()
            assert number in [row.k for row in table.to_df().collect()]
"""


def made_at_once(folder: Path, work: str) -> tuple[list[object], list[list[int]]]:
    """Make the first calls of several threads at once. Return their errors, and the keys of the tables afterwards."""
    code = AT_ONCE.format(threads=THREADS, folder=str(folder), work=work.strip())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    failed, keys = json.loads(done.stdout.splitlines()[-1])
    return failed, keys


EXPECTED: Final = [list(range(n, THREADS, 3)) for n in range(3)]


def test_sixteen_threads_call_first_at_once(tmp_path: Path) -> None:
    assert made_at_once(tmp_path / "w", ARROW) == ([], EXPECTED)


@pytest.mark.full
def test_sixteen_threads_start_spark_at_once(tmp_path: Path) -> None:
    assert made_at_once(tmp_path / "w", SPARK) == ([], EXPECTED)
