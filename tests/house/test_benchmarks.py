"""The benchmarks: the page is generated from the result files, and a run replaces only its own cases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from benchmarks.page import PAGE, page_of, plots_of
from benchmarks.result_files import load_results, save_results
from benchmarks.results import Result, against_best
from benchmarks.run import FILES, GROUPS
from benchmarks.timing import Rounds, Timings, timings_of
from tests.support.paths import ROOT

ALL: Final = ("parquet", "delta", "iceberg")
FACTS: Final = {
    "version": "0.1.0",
    "python": "3.11.7",
    "spark": "4.1.1",
    "cores": 2,
    "memory_gib": 16,
    "cpu": "a processor",
    "load_before": 0.1,
    "rows": 4_000_000,
    "runs": 3,
}
CASES: Final[dict[str, tuple[str, ...]]] = {
    "read, compacted": ALL,
    "100 keys, compacted": ALL,
    "read, 1 % in the log": ALL,
    "read, 10 % in the log": ALL,
    "second read, 10 % in the log": ALL,
    "100 keys, 10 % in the log": ALL,
    "read after resolve of 10 %": ALL,
    "own reader after resolve of 10 %": ("delta", "iceberg"),
    "read, 10 % in 100 commits": ALL,
    "first read after one more commit, 10 % in the log": ALL,
    "resolve of 10 %": ALL,
    "full compaction after ten commits": ALL,
    "20 commits, each read": ALL,
    "20 commits from Arrow, each read": ALL,
    "10,000 rows from Arrow, read": ALL,
    "tenfold rows: read, 1 % in the log": ("parquet",),
    "tenfold rows: read, 10 % in the log": ("parquet",),
    "tenfold rows: read after resolve of 10 %": ("parquet",),
    "append, Spark DataFrame": ALL,
    "append, bytes": ALL,
    "append, Arrow table": ("parquet", "iceberg"),
    "commit of one row": ALL,
    "commit, synced": ALL,
    "executemany, 10,000 rows": ALL,
    **{
        f"{commits} commits: {case}": ALL
        for commits in ("1,000", "10,000")
        for case in (
            "the last, beside the tenth",
            "opening the table, beside a table of ten commits",
            "objects that a read opens, by commits",
            "rows written, by rows appended",
        )
    },
    "10,000 commits: metadata of a commit, beside the first 1,000": ALL,
    "fold, three sequence groups": ALL,
    "fold, sums": ALL,
    "changes, computed": ALL,
    "changes, lookup": ALL,
    "200 micro-batches": ALL,
    **{
        f"MERGE {share}, {kind}": ALL for share in ("1 %", "10 %") for kind in ("plain", "keyed, SET *", "keyed, other")
    },
}


def result(case: str, ours: tuple[float, ...] = (1.0, 2.0, 4.0)) -> Result:
    return against_best(
        case, "parquet", Timings.of(ours), {"Delta": Timings.of([4.0]), "Iceberg": Timings.of([2.5])}, 0.9
    )


def test_the_page_is_what_the_result_files_say() -> None:
    text = PAGE.read_text()
    assert "<!-- bench: latest: read;" in text
    assert text == page_of(text), "python -m benchmarks.page"
    assert {name: (PAGE.parent / name).read_text() for name in plots_of(text)} == plots_of(text)


def test_a_table_has_ratio_range_budget_date_and_machine(tmp_path: Path) -> None:
    save_results([result("read, compacted")], "latest", {**FACTS, "date": "2026-01-02T03:04:05+00:00"}, tmp_path)
    page = page_of("a\n<!-- bench: latest: read -->\nold\n<!-- bench end -->\nb\n", tmp_path).splitlines()
    assert page == [
        "a",
        "<!-- bench: latest: read -->",
        "| case | Parquet | budget |",
        "|---|---|---|",
        "| read, compacted | 0.80 (0.40 to 1.60) | 0.9 |",
        "",
        (
            "2026-01-02: 4,000,000 rows, medians of at most 3 rounds; "
            "2 cores, 16 GiB, a processor; Python 3.11.7, Spark 4.1.1."
        ),
        "<!-- bench end -->",
        "b",
    ]


def test_the_seconds_of_every_peer(tmp_path: Path) -> None:
    save_results([result("read")], "latest", {**FACTS, "date": "2026-01-02T03:04:05+00:00"}, tmp_path)
    page = page_of("<!-- bench: seconds: latest: read -->\n<!-- bench end -->\n", tmp_path)
    assert "| read | Trinity, Parquet | 2.00 | 1.00 | 4.00 |\n| read | Delta | 4.00 |" in page
    assert "| read | Iceberg | 2.50 |" in page


def test_figures_have_their_units(tmp_path: Path) -> None:
    made = Result("rows", "iceberg", Timings.of([12.5]), Timings.of([2000]), 4.0, unit="kB")
    save_results([made], "many", {**FACTS, "date": "2026-01-02T03:04:05+00:00"}, tmp_path)
    page = page_of("<!-- bench: figures: many -->\n<!-- bench end -->\n", tmp_path)
    assert "| case | Iceberg |\n|---|---|\n| rows | 12.5 by 2,000 kB |\n" in page


def test_a_run_replaces_the_cases_that_it_measured(tmp_path: Path) -> None:
    for day, cases in (("01", ("a", "b", "c")), ("02", ("b",)), ("03", ("d",))):
        save_results([result(case) for case in cases], "some", {**FACTS, "date": f"2026-01-{day}"}, tmp_path)
    found = load_results(tmp_path / "some.json")
    assert [(r["case"], r["run"][-2:]) for r in found["results"]] == [
        ("a", "01"),
        ("b", "02"),
        ("c", "01"),
        ("d", "03"),
    ]
    save_results([result(case) for case in ("a", "c")], "some", {**FACTS, "date": "2026-01-04"}, tmp_path)
    assert list(load_results(tmp_path / "some.json")["runs"]) == ["2026-01-02", "2026-01-03", "2026-01-04"]
    page = page_of("<!-- bench: some -->\n<!-- bench end -->\n", tmp_path)
    assert "| b | 0.80 (0.40 to 1.60) | 0.9 | 2 |" in page
    assert "\n2. 2026-01-02: " in page


def test_files_of_old_keep_their_results_without_a_date(tmp_path: Path) -> None:
    old = {"case": "a", "catalog": "delta", "ours": 1.0, "reference": 2.0, "factor": 1.5, "allowance": 0.1, "unit": "s"}
    facts = {"version": "0.1.0", "python": "3.11.7", "cores": 2, "rows": 100, "runs": 5}
    (tmp_path / "old.json").write_text(json.dumps({**facts, "results": [old]}))
    save_results([result("b")], "old", {**FACTS, "date": "2026-01-02"}, tmp_path)
    page = page_of("<!-- bench: old -->\n<!-- bench end -->\n", tmp_path)
    assert "0.50 | 1.5 + 0.10 s | 1 |" in page
    assert "\n1. 100 rows, medians of at most 5 rounds; 2 cores, Python 3.11.7; the run has no date." in page


def test_rounds_take_turns_and_what_is_around_them_is_not_timed() -> None:
    events: list[str] = []
    works = {name: (lambda number, name=name: events.append(f"{name}{number}")) for name in ("x", "y")}
    found = timings_of(
        Rounds(2), works, before=lambda n, r: events.append(f"<{n}{r}"), after=lambda n, r: events.append(f"{n}{r}>")
    )
    wanted = [f"{n}{r}" for r, names in ((0, "yx"), (1, "xy"), (2, "yx")) for n in names]
    assert events == [text for step in wanted for text in (f"<{step}", step, f"{step}>")]
    assert set(found) == {"x", "y"}
    assert found["x"].least <= found["x"].median <= found["x"].most


@pytest.mark.full
def test_every_case_runs_and_has_the_rows_of_its_peers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--results", str(tmp_path), "--name", "quick"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PAIMON_PYTHON": "none"}, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    results = load_results(tmp_path / "quick.json")["results"]
    assert {(r["case"], r["catalog"]) for r in results} == {(c, f) for c, formats in CASES.items() for f in formats}
    for case in CASES:
        found = {r["found"] for r in results if r["case"] == case}
        assert len(found) == 1, f"{case}: {found}"


@pytest.mark.full
def test_every_case_without_spark_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.local", "--quick", "--results", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    by_format: dict[str, set[str]] = {fmt: set() for fmt in ALL}
    for entry in load_results(tmp_path / "local.json")["results"]:
        by_format[entry["catalog"]].add(entry["case"])
    assert by_format["parquet"] == by_format["delta"] == by_format["iceberg"]
    assert len(by_format["parquet"]) == 21


@pytest.mark.full
def test_reads_and_appends_in_a_bucket_beside_those_on_a_disk(tmp_path: Path) -> None:
    few = ("--rows", "20000", "--runs", "1", "--results", str(tmp_path))
    command = [sys.executable, "-m", "benchmarks.buckets", *few]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found: dict[str, set[tuple[str, str]]] = {"disk": set(), "bucket": set()}
    for entry in load_results(tmp_path / "buckets.json")["results"]:
        place, _, case = entry["case"].partition(": ")
        found[place].add((case, entry["catalog"]))
    assert found["bucket"] - found["disk"] == {("append, Arrow table", fmt) for fmt in ALL}
    assert found["disk"] < found["bucket"]
    assert {("read, 10 % in the log", fmt) for fmt in ALL} < found["disk"]


def test_every_group_has_a_place_on_the_page() -> None:
    page = PAGE.read_text()
    assert set(FILES) < set(GROUPS)
    assert [name for name in (*FILES.values(), "latest", "buckets", "local") if f"<!-- bench: {name}" not in page] == []
