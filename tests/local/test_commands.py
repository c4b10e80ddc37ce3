"""The commands that load, show and maintain tables, from files to files, on all formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import trinity
from trinity.cli.main import app

Run = Callable[..., str]
Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "warehouse"


@pytest.fixture
def run(warehouse: Path) -> Callable[..., str]:
    """Return a function that runs a command, which must succeed, and returns its output."""

    def ran(*command: str) -> str:
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, (command, done.output, done.stderr)
        return done.stdout

    return ran


@pytest.fixture
def rows(run: Run) -> Rows:
    """Return a function that runs a command with JSON output, and returns its objects."""
    return lambda *command: [json.loads(line) for line in run(*command, "--json").splitlines()]


def usage_error(*command: str) -> str:
    """Run a command that exits with 2, and return its error output."""
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2, (command, done.output)
    return " ".join(done.stderr.replace("│", " ").split())


def test_files_become_a_table(run: Run, rows: Rows, fmt: str, tmp_path: Path) -> None:
    name = f"{fmt}.default.people"
    (tmp_path / "a.csv").write_text("id,ts,name,gone\n007,1,Anna,false\n008,1,,false\n")
    with trinity.connect(tmp_path / "warehouse") as session:
        session.sql(
            f"CREATE TABLE {name} (id STRING PRIMARY KEY, ts BIGINT, name STRING, gone BOOLEAN) "
            "TBLPROPERTIES ('watermark-key' = 'ts', 'tombstone-key' = 'gone')"
        )
    assert [(done["table"], done["rows"]) for done in rows("load", name, "a.csv")] == [(name, 2)]
    (tmp_path / "b.jsonl").write_text('{"id": "007", "ts": 2, "name": "Änne"}\n{"id": "008", "ts": 2, "gone": true}\n')
    assert rows("load", name, "b.jsonl", "--txn", "night:1")[0]["rows"] == 2
    assert "loaded before" in run("load", name, "b.jsonl", "--txn", "night:1")
    (tmp_path / "more").mkdir()
    for number in range(3):
        more = {"id": [f"{number}"], "ts": [5], "name": ["n"], "age": [number]}
        pq.write_table(pa.table(more), tmp_path / f"more/{number}.parquet")
    assert "has a column 'age'" in usage_error("load", name, "more")
    run("load", name, "more", "--evolve")
    assert rows("sql", f"SELECT id, name, age FROM {name} ORDER BY id") == [
        {"id": "0", "name": "n", "age": 0},
        {"id": "007", "name": "Änne", "age": None},
        {"id": "1", "name": "n", "age": 1},
        {"id": "2", "name": "n", "age": 2},
    ]


def test_a_new_table_has_the_keys_that_are_named(run: Run, rows: Rows, fmt: str, tmp_path: Path) -> None:
    name = f"{fmt}.default.t"
    (tmp_path / "a.csv").write_text("id,day,ts,gone\n1,2026-01-01,1,false\n")
    options = ["--key", "id, day", "--watermark", "ts", "--tombstone", "gone", "--partition-by", "day"]
    [done] = rows("load", name, "a.csv", *options)
    with trinity.connect(tmp_path / "warehouse") as session:
        made = session.table(name).definition
    assert (made.primary_key, [str(field) for field in made.partition_by]) == (("id", "day"), ["day"])
    assert made.properties == {"watermark-key": "ts", "tombstone-key": "gone"}
    [listed] = rows("tables", f"{fmt}.default", "--like", "T*")
    assert (listed["table"], listed["format"], listed["version"]) == (name, fmt, done["version"])
    assert [row["table"] for row in rows("tables")] == [name]
    described = rows("describe", name)
    assert [row["data_type"] for row in described[:4]] == ["bigint", "date", "bigint", "boolean"]


def test_maintenance(run: Run, rows: Rows, fmt: str, tmp_path: Path) -> None:
    name = f"{fmt}.default.t"
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"id,n\n1,{number}\n{number + 5},0\n")
        [done] = rows("load", name, f"{number}.csv", "--key", "id")
    assert [row["operation"] for row in rows("history", name)][-1] == "create"
    [health] = rows("health", name)
    assert (health["log"]["rows"], health["strength"]) == (6, "full")
    changed = rows("changes", name, "--after", str(done["version"] - 2), "--net")
    assert sorted((row["id"], row["n"]) for row in changed if row["_change_type"] != "update_preimage") == [
        (1, 2), (6, 0), (7, 0),
    ]  # fmt: skip
    [done] = rows("compact", name, "--strength", "full")
    assert done["rows"] == 4
    assert "nothing to compact" in run("compact", name, "--strength", "full")
    [back] = rows("restore", name, "--version", str(done["version"] - 1))
    assert back["version"] == done["version"] + 1
    assert "is as that of" in run("restore", name, "--version", str(done["version"]))
    assert usage_error("restore", name, "--version", "99").startswith("INVALID_ARGUMENTS")
    [removed] = rows("vacuum", name, "--retain", "0 seconds")
    assert removed["files"] > 0
    assert rows("maintain")[0]["strength"] is None
    assert usage_error("vacuum", name, "--retain", "soon").startswith("INVALID_ARGUMENTS")


def test_rows_become_a_file(run: Run, rows: Rows, fmt: str, tmp_path: Path) -> None:
    name = f"{fmt}.default.t"
    (tmp_path / "a.csv").write_text("id,v\n1,a\n2,b\n3,c\n")
    run("load", name, "a.csv", "--key", "id")
    for ending in ("parquet", "csv", "jsonl"):
        done = run("export", name, f"out.{ending}", "--where", "id > 1", "--columns", "v,id")
        assert done == f"out.{ending}: 2 rows.\n"
        with duckdb.connect() as db:
            found = db.sql(f"FROM '{tmp_path}/out.{ending}' ORDER BY id")
            assert (found.columns, found.fetchall()) == (["v", "id"], [("b", 2), ("c", 3)])
    assert "exists already" in usage_error("export", name, "out.csv")
    assert rows("export", name, "all.csv") == [{"file": "all.csv", "rows": 3}]
    assert not list(tmp_path.glob(".*"))


def test_nested_values(run: Run, tmp_path: Path) -> None:
    kinds = pa.map_(pa.date32(), pa.int32())
    given = pa.table({"id": [1], "tags": [[1, 2]], "days": pa.array([[(0, 1)]], kinds), "raw": [b"\x00\xff"]})
    pq.write_table(given, tmp_path / "a.parquet")
    run("load", "parquet.default.t", "a.parquet")
    run("export", "t", "a.jsonl")
    assert json.loads((tmp_path / "a.jsonl").read_text()) == {
        "id": 1, "tags": [1, 2], "days": {"1970-01-01": 1}, "raw": "00ff",
    }  # fmt: skip
    assert "Column 'tags' is list" in usage_error("export", "t", "a2.csv")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_columns_that_only_later_files_have_are_loaded(run: Run, rows: Rows, tmp_path: Path, ending: str) -> None:
    (tmp_path / "both.csv").write_text("id,v,w\n1,a,x\n2,b,\n")
    run("load", "parquet.default.t", "both.csv", "--key", "id")
    run("export", "t", f"1.{ending}", "--where", "id = 2", "--columns", "id,v")
    run("export", "t", f"2.{ending}", "--where", "id = 1")
    for table in ("t", "new"):  # one that has the column, and one that is made
        run("load", table, f"1.{ending}", f"2.{ending}")
        found = rows("sql", f"SELECT id, v, w FROM {table} ORDER BY id")
        assert found == [{"id": 1, "v": "a", "w": "x"}, {"id": 2, "v": "b", "w": None}]


def test_csv_is_read_as_the_types_of_the_table(run: Run, rows: Rows, tmp_path: Path) -> None:
    """The header may have another case."""
    run("sql", "CREATE TABLE t (id INT, amount DECIMAL(20,2), code STRING)")
    (tmp_path / "a.csv").write_text("ID,Amount,CODE\n1,123456789012345678.91,007\n")
    (tmp_path / "b.csv").write_text("id,amount,code\n2,1,7e3\n")
    run("load", "t", "a.csv")
    run("load", "t", "b.csv")
    found = rows("sql", "SELECT * FROM t ORDER BY id")
    assert [(row["amount"], row["code"]) for row in found] == [("123456789012345678.91", "007"), ("1.00", "7e3")]
    run("sql", "CREATE TABLE times (id INT, at TIMESTAMP, clock TIMESTAMP_NTZ)")
    (tmp_path / "c.csv").write_text("ID,At,clock\n1,2024-01-01 10:00:00,2024-01-01 10:00:00\n")
    (tmp_path / "d.csv").write_text("id,at,clock\n2,2024-01-01T10:00:00Z,2024-01-01 10:00:00\n")
    run("load", "times", "c.csv")
    run("load", "times", "d.csv")
    same = rows("sql", "SELECT at = TIMESTAMP '2024-01-01 10:00:00' AS a, clock FROM times WHERE id = 1")
    assert [(row["a"], row["clock"][:16]) for row in same] == [(True, "2024-01-01 10:00")]
    assert rows("sql", "SELECT at = TIMESTAMP '2024-01-01 10:00:00Z' AS a FROM times WHERE id = 2") == [{"a": True}]


def test_json_is_read_as_the_types_of_the_table(run: Run, rows: Rows, tmp_path: Path) -> None:
    columns = (
        "id INT, price DECIMAL(8,2), day DATE, at TIMESTAMP, clock TIMESTAMP_NTZ, yes BOOLEAN, near DOUBLE, name STRING"
    )
    run("sql", f"CREATE TABLE t ({columns})")
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1, "price": "1.5", "day": "2024-02-29", "at": "2024-07-01T12:00:00.5+05:00", "yes": true, "near": 2}\n'
        '{"id": 2, "price": "-0.01", "clock": "2024-03-10 02:30:00.000001", "name": "2024-01-01"}\n'
    )
    run("load", "t", "a.jsonl")
    run("export", "t", "b.jsonl")
    run("sql", "CREATE TABLE again LIKE t")
    run("load", "again", "b.jsonl")
    for table in ("t", "again"):
        assert rows("sql", f"SELECT * FROM {table} ORDER BY id") == [
            {
                "id": 1, "price": "1.50", "day": "2024-02-29", "at": "2024-07-01 07:00:00.500000+00:00", "clock": None,
                "yes": True, "near": 2.0, "name": None,
            },
            {
                "id": 2, "price": "-0.01", "day": None, "at": None, "clock": "2024-03-10 02:30:00.000001", "yes": None,
                "near": None, "name": "2024-01-01",
            },
        ]  # fmt: skip
    (tmp_path / "c.jsonl").write_text('{"id": 3, "price": 1.555}\n')
    assert "1.555 requires scale 3" in usage_error("load", "t", "c.jsonl")


def test_files_that_cannot_be_loaded(run: Run, rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("id,n\n1,1\n")
    run("load", "parquet.default.t", "good.csv", "--key", "id")
    (tmp_path / "value.csv").write_text("id,n\n2,x\n")
    (tmp_path / "ragged.csv").write_text("id,n\n2,1\n3\n")
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n{"id":\n')
    (tmp_path / "bad.parquet").write_text("text")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.xlsx").write_text("")
    for table in ("parquet.default.t", "parquet.default.new"):
        assert "invalid value 'x'" in usage_error("load", "parquet.default.t", "value.csv")
        for file in ("ragged.csv", "bad.jsonl", "bad.parquet", "empty.csv"):
            assert usage_error("load", table, file).startswith(f"INVALID_ARGUMENTS: No rows can be read from '{file}'")
        assert "there are no file" in usage_error("load", table, "folder")
        assert "more than one kind: csv, json" in usage_error("load", table, "good.csv", "bad.jsonl")
        assert "ends in none of" in usage_error("load", table, "a.xlsx")
        assert "APPLICATION:NUMBER" in usage_error("load", table, "good.csv", "--txn", "7")
    late = "id,n\n" + "1,1\n" * 5_000_000 + "2,x\n"  # after the rows from which the types are inferred
    (tmp_path / "late.csv").write_text(late)
    assert "invalid value 'x'" in usage_error("load", "parquet.default.new", "late.csv")
    assert [(row["table"], row["version"]) for row in rows("tables")] == [("parquet.default.t", 1)]


def test_a_warehouse_is_made(run: Run, rows: Rows, tmp_path: Path) -> None:
    assert "There is no warehouse" in usage_error("tables", "-w", "deep/new")
    assert run("init", "deep/new") == "deep/new: catalogs parquet, delta, iceberg\n"
    assert rows("init", "deep/new") == [{"warehouse": "deep/new", "catalogs": ["parquet", "delta", "iceberg"]}]
    assert run("tables", "-w", "deep/new", "--json") == ""
    (tmp_path / "file").write_text("")
    assert usage_error("init", "file").startswith(("FILESYSTEM_ERROR", "CONFIGURATION_INVALID"))
    assert run("--version") == f"{trinity.__version__}\n"


def completed(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return bash's completions of a line whose cursor is at its end."""
    with monkeypatch.context() as environment:
        environment.setenv("_TRINITY_COMPLETE", "complete_bash")
        environment.setenv("COMP_WORDS", line)
        environment.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        return CliRunner().invoke(app, prog_name="trinity").stdout.split()


def test_names_of_tables_are_completed(run: Run, fmt: str, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("trinity health ", monkeypatch) == []
    assert not warehouse.exists()
    run("init")
    names = {f"{fmt}.default.orders", f"{fmt}.default.people", "parquet.default.orchids"}
    for name in names:
        run("sql", f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    for command in ("health", "compact", "vacuum", "describe", "history", "changes", "export", "restore", "tail"):
        assert set(completed(f"trinity {command} ", monkeypatch)) == names
    assert completed(f"trinity health {fmt}.default.p", monkeypatch) == [f"{fmt}.default.people"]
    assert completed("trinity health orch", monkeypatch) == ["orchids"]
    assert completed("trinity health -w elsewhere ", monkeypatch) == []
    assert completed("trinity health -w s3://nowhere/at-all ", monkeypatch) == []
    assert completed("trinity sql --engine l", monkeypatch) == ["local"]
