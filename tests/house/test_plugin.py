"""A third-party adapter: built as a wheel, installed, found by its entry point, and run by the conformance suite."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import trinity
from tests.support.budgets import QUICK
from tests.support.paths import TESTS
from trinity import Session, TrinityError
from trinity.spi import Capability, ConnectorMetadata, SplitSource, TableHandle
from trinity.storage import TableVersion
from trinity_conformance import BUDGETS, run_check
from trinity_conformance.command.cli import app
from trinity_conformance.command.scaffold import scaffold
from trinity_conformance.shrink.histories import ShrinkBudget

ACME = TESTS / "plugins/acme"


def installed(project: Path, folder: Path) -> Path:
    """Return a folder for ``sys.path`` in which the wheel of a project is unpacked."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    python = sys.executable
    if importlib.util.find_spec("pip") is None:  # some tools make environments without pip
        subprocess.run([python, "-m", "venv", str(folder / "pip")], check=True, capture_output=True)
        python = str(folder / "pip/bin/python")
    site = folder / "site"
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return site


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install Acme, make it importable in this process, and yield its folder."""
    folder = installed(ACME, tmp_path_factory.mktemp("acme"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder


@pytest.fixture
def opened(acme: Path, spark: SparkSession, tmp_path: Path) -> Iterator[Session]:
    catalogs = {"lake": {"connector": "acme", "warehouse": str(tmp_path / "lake")}}
    with trinity.connect(spark=spark, catalogs=catalogs, catalog="lake") as session:
        yield session


def command(site: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``trinity-conformance`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "trinity_conformance", *words],
        env={**os.environ, "PYTHONPATH": str(site)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_imports_public_names_only() -> None:
    for path in (ACME / "acme_trinity").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "trinity":
                assert node.module in ("trinity.errors", "trinity.spi", "trinity.storage")
                assert {a.name for a in node.names} <= set(importlib.import_module(node.module).__all__)


@pytest.mark.full
def test_it_conforms(acme: Path, spark: SparkSession, tmp_path: Path) -> None:
    report = run_check("acme", spark, budget=QUICK, seed=1, folder=tmp_path)
    assert report.conforms, report.text()
    assert all(report.tally.observations[c] for c in ("read-equality", "merge-engines", "row-change"))
    report = run_check("acme", spark, "concurrency", QUICK)
    assert report.conforms, report.text()
    assert report.tally.observations["concurrency"]


def test_it_conforms_without_spark(acme: Path, tmp_path: Path) -> None:
    report = run_check("acme", None, budget=QUICK, seed=1, folder=tmp_path)
    assert report.conforms, report.text()
    assert all(report.tally.observations[c] for c in ("read-equality", "merge-engines", "row-change"))


@pytest.mark.full
@pytest.mark.parametrize("budget", ["smoke", "standard"])
def test_the_command_finds_that_it_conforms(acme: Path, tmp_path: Path, budget: str) -> None:
    done = command(acme, "run", "acme", "--budget", budget, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_sql_upsert_merge_compaction_time_travel(opened: Session) -> None:
    opened.sql(
        "CREATE TABLE orders (id INT, ts INT, gone BOOLEAN, v STRING, PRIMARY KEY (id) NOT ENFORCED) "
        "TBLPROPERTIES ('watermark-key' = 'ts', 'tombstone-key' = 'gone')"
    )
    orders = opened.table("lake.default.orders")
    orders.upsert(pa.table({"id": [1, 2], "ts": [1, 1], "v": ["a", "a"]}), txn=("app", 1))
    first = orders.history().first().version
    assert orders.upsert(pa.table({"id": [1], "ts": [9], "v": ["again"]}), txn=("app", 1)).skipped
    opened.sql(
        "MERGE INTO orders t USING (VALUES (1, 'b'), (3, 'c')) s (id, v) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, ts, v) VALUES (s.id, 1, s.v)"
    )
    opened.sql("DELETE FROM orders WHERE id = 2")
    orders.compact(full=True)
    assert {f.tier.value for f in orders.splits().files} == {"base"}
    assert orders.splits().sidecar
    assert {(r.id, r.v) for r in opened.sql("SELECT id, v FROM orders").collect()} == {(1, "b"), (3, "c")}
    past = opened.sql(f"SELECT id, v FROM orders VERSION AS OF {first}")
    assert {(r.id, r.v) for r in past.collect()} == {(1, "a"), (2, "a")}
    with pytest.raises(TrinityError) as caught:
        trinity.connect(catalogs={"x": {"connector": "acme", "folder": "lake"}}).connector("x")
    assert caught.value.code == "CONFIGURATION_INVALID"


def test_an_adapter_may_lack_row_changes(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    format_class = importlib.import_module("acme_trinity.format").AcmeFormat
    declared = format_class().capabilities - {Capability.ROW_CHANGES}
    monkeypatch.setattr(format_class, "capabilities", property(lambda _: declared))
    metadata = importlib.import_module("acme_trinity.metadata").AcmeMetadata
    monkeypatch.setattr(metadata, "begin_merge", ConnectorMetadata.begin_merge)
    for check in ("row-change", "merge-sinks"):
        report = run_check("acme", None, check)
        assert [r.status for r in report.results] == ["not supported"]
        assert (report.conforms, report.inconclusive) == (True, [])


WRITER = """
import sys, pyarrow as pa, trinity
with trinity.connect(catalogs={"lake": {"connector": "acme", "warehouse": sys.argv[1]}}) as session:
    table = session.table("lake.default.counted")
    for n in range(20):
        table.append(pa.table({"writer": pa.array([int(sys.argv[2])], pa.int32()), "n": pa.array([n], pa.int32())}))
"""


@pytest.mark.full
def test_writers_in_several_processes_lose_nothing(acme: Path, opened: Session, tmp_path: Path) -> None:
    opened.sql("CREATE TABLE counted (writer INT, n INT)")
    environment = {**os.environ, "PYTHONPATH": str(acme)}
    words = [sys.executable, "-c", WRITER, str(tmp_path / "lake")]
    children = [subprocess.Popen([*words, str(writer)], env=environment) for writer in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    table = opened.table("lake.default.counted")
    assert {(r.writer, r.n) for r in table.to_df().collect()} == {(w, n) for w in range(2) for n in range(20)}
    assert [e.version for e in table.connector.metadata.history(table.handle)] == list(range(41))


def test_a_new_adapter_works_as_it_is_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = CliRunner().invoke(app, ["init", "zebra_lake", "--folder", str(tmp_path / "plugin")])
    assert done.exit_code == 0, done.output
    texts = [p.read_text() for p in (tmp_path / "plugin").rglob("*") if p.is_file()]
    assert not any("acme" in text.lower() for text in texts)
    monkeypatch.syspath_prepend(str(installed(tmp_path / "plugin", tmp_path / "dist")))
    catalogs = {"zoo": {"connector": "zebra_lake", "warehouse": str(tmp_path / "zoo")}}
    with trinity.connect(spark=spark, catalogs=catalogs, catalog="zoo") as session:
        session.sql("CREATE TABLE t (k INT, v INT, PRIMARY KEY (k) NOT ENFORCED)")
        session.sql("INSERT INTO t VALUES (1, 1), (1, 2)")
        assert [tuple(r) for r in session.sql("SELECT * FROM t").collect()] == [(1, 2)]


@pytest.mark.full
def test_a_new_adapter_conforms(tmp_path: Path) -> None:
    scaffold("zebra", tmp_path / "plugin")
    site = installed(tmp_path / "plugin", tmp_path / "dist")
    done = command(site, "run", "zebra", "--budget", "smoke", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["Acme", "my-format", "", "parquet"])
def test_init_refuses_a_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["init", name])
    assert done.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert CliRunner().invoke(app, ["init", "zebra", "--folder", str(tmp_path)]).exit_code == 2
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


# -- the suite bites ------------------------------------------------------------------------------------


def commits_in_reverse(metadata: Any, patch: pytest.MonkeyPatch) -> None:
    """Order commits in reverse (against K4)."""
    get_splits = metadata.get_splits

    def reverse(self: Any, table: TableHandle) -> SplitSource:
        splits: SplitSource = get_splits(self, table)
        files = [replace(f, commit=splits.version - (f.commit or 0)) for f in splits.files]
        return replace(splits, files=tuple(files))

    patch.setattr(metadata, "get_splits", reverse)


def no_sidecar(metadata: Any, patch: pytest.MonkeyPatch) -> None:
    """Lose tombstones in compactions (against U4)."""
    get_splits = metadata.get_splits
    patch.setattr(metadata, "get_splits", lambda self, table: replace(get_splits(self, table), sidecar=()))


def no_past(metadata: Any, patch: pytest.MonkeyPatch) -> None:
    """Read every version as the newest one (against L10)."""
    get_splits = metadata.get_splits
    patch.setattr(metadata, "get_splits", lambda self, table: get_splits(self, replace(table, version=None)))


def written(change: Callable[[TableVersion, TableVersion | None], TableVersion]) -> Callable[..., None]:
    """Return a fault that writes a changed version; ``change`` gets it and the version before."""

    def break_it(metadata: Any, patch: pytest.MonkeyPatch) -> None:
        write = metadata.write_version

        def write_other(self: Any, table: TableHandle, version: TableVersion) -> None:
            before = self.read_version(table, version.number - 1) if version.number else None
            write(self, table, change(version, before))

        patch.setattr(metadata, "write_version", write_other)

    return break_it


def own_number(version: TableVersion, before: TableVersion | None) -> TableVersion:
    """Give compacted files the commit number of the compaction (against K6)."""
    if version.operation != "compact" or before is None:
        return version
    known = {f.path for f in before.files}
    files = [f if f.path in known else replace(f, commit=version.number) for f in version.files]
    return replace(version, files=tuple(files))


def no_checks(metadata: Any, patch: pytest.MonkeyPatch) -> None:
    """Ignore commits since a statement began (against L7)."""
    patch.setattr("trinity.storage.commits.check_scope", lambda *_: None)


FAULTS: dict[str, tuple[str, Callable[..., None]]] = {
    "commits in reverse": ("read-equality", commits_in_reverse),
    "no sidecar": ("maintenance-invisible", no_sidecar),
    "no past": ("time-travel", no_past),
    "no transactions": ("idempotence", written(lambda version, _: replace(version, txns={}))),
    "compaction under its own number": ("concurrency", written(own_number)),
    "no conflicts": ("concurrency", no_checks),
}


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, acme: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    check, break_it = FAULTS[fault]
    break_it(importlib.import_module("acme_trinity.metadata").AcmeMetadata, monkeypatch)
    budget = replace(BUDGETS["smoke"], shrink=ShrinkBudget(math.inf, 10))
    report = run_check("acme", spark, check, budget)
    assert report.failures


@pytest.mark.full
def test_the_command_shows_a_fault_and_plays_it_again(tmp_path: Path) -> None:
    scaffold("broken", tmp_path / "plugin")
    metadata = tmp_path / "plugin/broken_trinity/metadata.py"
    metadata.write_text(metadata.read_text().replace('"txns": dict(version.txns)', '"txns": {}'))
    site = installed(tmp_path / "plugin", tmp_path / "dist")
    done = command(site, "run", "broken", "--check", "idempotence", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    [trace] = (tmp_path / ".trinity-conformance").iterdir()
    assert f"replay: trinity-conformance replay {trace.stem}" in done.stdout
    again = command(site, "replay", trace.stem, "--format", "broken", folder=tmp_path)
    assert (again.returncode, "broken: failed at step" in again.stdout) == (1, True)
    good = command(site, "replay", trace.stem, "--format", "memory", folder=tmp_path)
    assert (good.returncode, "memory: passed" in good.stdout) == (0, True)
