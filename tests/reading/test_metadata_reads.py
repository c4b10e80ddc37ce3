"""Reads of a table's metadata files by a statement: each file once, up to its commit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

import trinity
from tests.support.counting import counted
from tests.support.tables import new_rows
from trinity import Column, Session, Table
from trinity.merge.spec import _Parser
from trinity.spi import TableDefinition
from trinity.storage import ObjectStore

pytestmark = pytest.mark.inner

_KINDS: Final = {
    "parquet": {"manifest": r"_trinity/log/\d+\.json"},
    "delta": {"commit": r"_delta_log/\d+\.json"},
    "iceberg": {
        "metadata": r"metadata/\d+-[^/]*\.metadata\.json",
        "list": r"metadata/snap-[^/]*\.avro",
        "index": r"_trinity/index-[^/]*\.json",
    },
}
"""Format -> kind of file -> pattern of its name. A commit reads the manifests of files that it removes again."""
_MERGE: Final = (
    "MERGE INTO t USING (VALUES (1, 'a'), (9, 'b')) AS n (k, v) ON t.k = n.k "
    "WHEN MATCHED THEN UPDATE SET v = n.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (n.k, n.v)"
)


def _reading(table: Table) -> AbstractContextManager[Counter[str]]:
    """Count how often files below the table's folder are read, by name."""
    return counted(ObjectStore, "get", by=lambda store, name: store.path(name).removeprefix(f"{table.location}/"))


def _most(reads: Counter[str], fmt: str) -> dict[str, int]:
    """Return kind of file -> the most reads of one file of that kind."""
    kinds = _KINDS[fmt].items()
    most = {k: max((n for name, n in reads.items() if re.fullmatch(text, name)), default=0) for k, text in kinds}
    return {kind: times for kind, times in most.items() if times}


@pytest.fixture(params=["iceberg", *(pytest.param(f, marks=pytest.mark.full) for f in ("parquet", "delta"))])
def table(request: pytest.FixtureRequest, session: Session) -> Table:
    """Make a keyed table of two commits, in the current schema as ``t``."""
    session.use(request.param, "default")
    columns = [Column("k", "int"), Column("v", "string")]
    made = session.create_table(f"{request.param}.default.t", columns, primary_key=["k"])
    for keys in ((1, 2), (3,)):
        made.upsert(new_rows(*keys))
    return made


_STATEMENTS: Final[list[Any]] = [
    pytest.param(lambda t: t.upsert(new_rows(4)), id="append"),
    pytest.param(lambda t: t.session.sql("INSERT INTO t VALUES (4, 'x')"), id="insert"),
    pytest.param(lambda t: t.session.sql("UPDATE t SET v = 'c' WHERE k = 1"), id="update"),
    pytest.param(lambda t: t.session.sql("DELETE FROM t WHERE k = 1"), id="delete", marks=pytest.mark.full),
    pytest.param(lambda t: t.session.sql(_MERGE), id="merge", marks=pytest.mark.full),
    pytest.param(lambda t: t.compact(full=True), id="compact", marks=pytest.mark.full),
]


@pytest.mark.parametrize("statement", _STATEMENTS)
def test_a_statement_reads_each_file_once(table: Table, warehouse: Path, statement: Callable[[Table], object]) -> None:
    with trinity.connect(warehouse) as fresh:  # the session has read nothing yet
        fresh.use(table.name.catalog, "default")
        with _reading(table) as reads:
            statement(fresh.table("t"))
    most = _most(reads, table.name.catalog)
    assert most
    assert set(most.values()) == {1}


def test_a_read_after_a_read_reads_nothing(table: Table) -> None:
    assert table.to_df().count() == 3
    with _reading(table) as reads:
        table.splits()
        assert table.definition.keyed
    assert _most(reads, table.name.catalog) == {}


def test_a_commit_of_another_session_is_seen(table: Table, warehouse: Path) -> None:
    before = table.splits().version
    with trinity.connect(warehouse) as other:
        other.table(str(table.name)).upsert(new_rows(7))
    assert table.splits().version == before + 1


_LOADED: Final = {
    "parquet": {"newest version": 2, "merge options": 1},
    "delta": {"newest version": 2, "merge options": 1},
    "iceberg": {"newest version": 4, "definition": 1, "merge options": 1},
}
"""Format -> loads and parses of an upsert: the newest version at begin and commit, for Iceberg its catalog's, too."""


@pytest.mark.parametrize("fmt", _LOADED)
def test_an_upsert_loads_the_metadata_once_to_begin_and_once_to_commit(fmt: str, tmp_path: Path) -> None:
    with trinity.connect(tmp_path / "warehouse") as session:
        columns = [Column("k", "int"), Column("v", "string")]
        table = session.create_table(f"{fmt}.default.t", columns, primary_key=["k"])
        for key in (1, 2):
            table.upsert(new_rows(key))
        newest = max(path.name for path in Path(table.location).glob(_NEWEST[fmt]))
        with _reading(table) as reads, _loading(newest) as loads:
            table.upsert(new_rows(3))
    assert {**loads, **_most(reads, fmt)} == _LOADED[fmt]


@pytest.mark.parametrize("fmt", ["parquet", "delta"])  # Iceberg's metadata have it
def test_a_history_reads_what_it_has_not_read(fmt: str, tmp_path: Path) -> None:
    with trinity.connect(tmp_path / "warehouse") as session:
        table = session.create_table(f"{fmt}.default.t", [Column("k", "int"), Column("v", "string")])
        table.append(new_rows(1))
        metadata = table.connector.metadata
        for added in (2, 1, 0):
            for key in range(added):
                table.append(new_rows(key))
            with _reading(table) as reads:
                history = metadata.history(table.handle)
            # the first read also reads the earlier commits
            commits = [name for name in reads if any(re.fullmatch(kind, name) for kind in _KINDS[fmt].values())]
            assert len(commits) == (4 if added == 2 else added)
        assert [entry.version for entry in history] == list(range(5))
        with trinity.connect(tmp_path / "warehouse") as fresh:
            assert fresh.table(str(table.name)).connector.metadata.history(table.handle) == history


_NEWEST: Final = {
    "parquet": "_trinity/log/[0-9]*.json",
    "delta": "_delta_log/[0-9]*.json",
    "iceberg": "metadata/*.metadata.json",
}


@contextmanager
def _loading(newest: str) -> Iterator[dict[str, int]]:
    """Count how often the newest version is checked for, and how often definitions and options are parsed."""
    found = dict[str, int]()
    with (
        counted(ObjectStore, "stat", by=lambda store, name: name.endswith(newest)) as looks,
        counted(TableDefinition, "from_dict") as definitions,
        counted(_Parser, "parse") as options,
    ):
        yield found
    counts = {"newest version": looks[True], "definition": definitions.total(), "merge options": options.total()}
    found |= {what: count for what, count in counts.items() if count}
