"""The second template of an adapter, with commits of its own in a database: without Spark."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import trinity
from tests.support.budgets import QUICK
from tests.support.paths import TESTS
from trinity import Column, Session
from trinity_conformance import BUDGETS, run_check
from trinity_conformance.command.scaffold import scaffold

LEDGER = TESTS / "plugins/ledger"


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.syspath_prepend(str(LEDGER))
    format_class = importlib.import_module("ledger_trinity").LedgerFormat
    catalogs = {"lake": {"connector": format_class, "warehouse": str(tmp_path / "lake")}}
    with trinity.connect(catalogs=catalogs, catalog="lake", engine="local") as session:
        yield session


@pytest.mark.parametrize("budget", ["quick", pytest.param("smoke", marks=pytest.mark.full)])
def test_a_new_adapter_with_a_database_conforms(budget: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scaffold("zebra", tmp_path / "plugin", "catalog")
    texts = [path.read_text() for path in (tmp_path / "plugin").rglob("*") if path.is_file()]
    assert not any("ledger" in text.lower() for text in texts)
    monkeypatch.syspath_prepend(str(tmp_path / "plugin"))
    zebra = importlib.import_module("zebra_trinity").ZebraFormat
    report = run_check(zebra, None, budget=QUICK if budget == "quick" else BUDGETS["smoke"], folder=tmp_path / "lake")
    assert report.conforms, report.text()
    assert report.tally.histories > 0
    assert report.connector == "zebra_trinity.format:ZebraFormat"


def test_a_name_that_is_given_anew_is_another_table(opened: Session) -> None:
    def make() -> trinity.Table:
        return opened.create_table("t", [Column("k", "int")])

    old = make()
    old.append(pa.table({"k": pa.array([1], pa.int32())}))
    [place] = {Path(file.path).parent for file in old.splits().files}
    opened.sql("DROP TABLE t")
    assert not place.exists() or list(place.iterdir()) == []
    assert make().to_arrow().num_rows == 0
    assert old.to_arrow().num_rows == 0  # the table that has the name


def test_a_new_column_has_its_default_in_rows_that_are_there(opened: Session) -> None:
    table = opened.create_table("t", [Column("k", "int"), Column("v", "int")], primary_key=["k"])
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([2], pa.int32())}))
    opened.sql("ALTER TABLE t ADD COLUMN d INT DEFAULT 7")
    assert opened.table("t").to_arrow().to_pylist() == [{"k": 1, "v": 2, "d": 7}]


def test_a_damaged_database_is_bad_data(opened: Session, tmp_path: Path) -> None:
    opened.create_table("t", [Column("k", "int")])
    (tmp_path / "lake/ledger.db").write_bytes(b"no database" * 1000)
    with pytest.raises(trinity.TrinityError) as caught:
        opened.table("t")
    assert caught.value.code == "BAD_DATA"
    assert "restore it from a copy" in caught.value.message


WRITER = """
import sys
import pyarrow as pa
import trinity
from ledger_trinity import LedgerFormat
lake = {"connector": LedgerFormat, "warehouse": sys.argv[1]}
with trinity.connect(catalogs={"lake": lake}, catalog="lake", engine="local") as session:
    table = session.table("counted")
    for n in range(20):
        table.append(pa.table({"writer": pa.array([int(sys.argv[2])], pa.int32()), "n": pa.array([n], pa.int32())}))
"""


@pytest.mark.full
def test_writers_in_several_processes_lose_nothing(opened: Session, tmp_path: Path) -> None:
    table = opened.create_table("counted", [Column("writer", "int"), Column("n", "int")])
    words = [sys.executable, "-c", WRITER, str(tmp_path / "lake")]
    environment = {**os.environ, "PYTHONPATH": str(LEDGER)}
    children = [subprocess.Popen([*words, str(writer)], env=environment) for writer in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    rows = table.to_arrow().to_pylist()
    assert sorted((row["writer"], row["n"]) for row in rows) == [(w, n) for w in range(2) for n in range(20)]
    assert sorted(entry["version"] for entry in table.history().to_arrow().to_pylist()) == list(range(41))
