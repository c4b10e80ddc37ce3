"""Tables whose metadata do not say how many rows a file has, as other engines may leave Delta tables."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import trinity
from trinity import Session, Table, TrinityError
from trinity.engine.compacting.plan import BUCKET_ROWS
from trinity.engine.reading.files import split_buckets_and_runs, tiers
from trinity.engine.reading.hidden_rows import LEAST_ROWS, MOST_LOOKED_AT
from trinity.engine.reading.plan import MOST_LOG, ReadPlan, ReadStrategy, plan_read

pytestmark = pytest.mark.inner


@contextmanager
def without_counts(table: Table, warehouse: Path) -> Iterator[Table]:
    """Open a table anew, after its number of records has been taken out of the log's statistics."""
    for commit in Path(table.location, "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for added in (action["add"] for action in actions if "add" in action):
            stats = json.loads(added["stats"])
            stats.pop("numRecords")
            added["stats"] = json.dumps(stats)
        commit.write_text("\n".join(map(json.dumps, actions)))
    with trinity.connect(warehouse, engine="local") as session:
        opened = session.table(str(table.name))
        assert not any(file.rows_known for file in opened.splits().files)
        yield opened


@pytest.fixture
def plain(local: Session, warehouse: Path) -> Iterator[Table]:
    """Make a plain table of three rows."""
    table = local.create_table("delta.default.plain", [{"id": 1}, {"id": 2}])
    table.append([{"id": 3}])
    with without_counts(table, warehouse) as opened:
        yield opened


@pytest.fixture
def keyed(local: Session, warehouse: Path) -> Iterator[Table]:
    """Make a table with a base of three rows and a log of two."""
    table = local.create_table("delta.default.keyed", [{"id": n} for n in (1, 2, 3)], primary_key=["id"])
    table.compact(full=True)
    table.upsert([{"id": 1}, {"id": 2}])
    with without_counts(table, warehouse) as opened:
        yield opened


def test_removed_rows_are_counted_by_the_footers(plain: Table) -> None:
    version = plain.version
    assert plain.session.sql(f"DELETE FROM {plain.name}").first() == (3, 0, 3, 0)
    assert plain.restore(version).rows == 3
    assert plain.truncate().rows == 3


def _damage(plain: Table) -> tuple[str, int]:
    """Damage the footer of the file of two rows; return the file's path, and the version."""
    splits = plain.splits()
    [path, _] = [f.path for f in splits.files]
    Path(path).write_bytes(b"damaged")
    return path, splits.version


def _named(caplog: pytest.LogCaptureFixture, path: str) -> bool:
    """Return whether a single warning says that the rows of a file are not counted."""
    found = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    caplog.clear()
    return len(found) == 1 and found[0].startswith(f"The rows of a file are not counted: [BAD_DATA] '{path}'")


def test_a_damaged_file_is_removed_and_not_counted(plain: Table, caplog: pytest.LogCaptureFixture) -> None:
    path, version = _damage(plain)
    done = plain.truncate()
    assert ((done.rows, done.files), _named(caplog, path)) == ((1, 2), True)
    assert (plain.restore(version).rows, _named(caplog, path)) == (1, True)
    assert (plain.session.sql(f"DELETE FROM {plain.name}").first(), _named(caplog, path)) == ((1, 0, 1, 0), True)
    assert plain.to_arrow().num_rows == 0


def test_a_table_with_a_damaged_file_is_repaired(
    plain: Table, warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, version = _damage(plain)
    plain.truncate()
    caplog.clear()
    Path(plain.location, "_delta_log", f"{version + 1:020d}.json").write_text("{")
    with trinity.connect(warehouse, engine="local") as session:
        done = session.repair(plain.name, version=version)
    assert ((done.version, done.rows, done.files), _named(caplog, path)) == ((version, 1, 2), True)


def test_texts_say_that_the_number_is_unknown(plain: Table) -> None:
    assert "log: 2 of 2 files, an unknown number of rows, 2 commits" in plain.explain().splitlines()
    [detail] = plain.session.sql(f"DESCRIBE DETAIL {plain.name}").to_arrow().to_pylist()
    assert (detail["num_files"], detail["num_row_versions"]) == (2, None)


def test_a_log_of_unknown_length_may_be_too_long(keyed: Table) -> None:
    with MOST_LOG.set_to(1), pytest.raises(TrinityError, match="its log has more than 1 rows"):
        keyed.to_arrow()
    with MOST_LOG.set_to(2):
        assert keyed.to_arrow().num_rows == 3


@pytest.fixture
def with_runs(local: Session, warehouse: Path) -> Iterator[Table]:
    """Make a table with a base of twenty rows, of which one is superseded, a run of ten rows, and a log of two."""
    table = local.create_table("delta.default.runs", [{"id": n} for n in range(20)], primary_key=["id"])
    table.compact(full=True)
    table.upsert([{"id": n} for n in range(19, 29)])
    table.compact("resolve")
    table.upsert([{"id": 40}])
    table.upsert([{"id": 41}])
    with without_counts(table, warehouse) as opened:
        yield opened


def test_the_larger_part_of_a_base_of_unknown_size_is_in_buckets(with_runs: Table) -> None:
    splits = with_runs.splits()
    bucketed, runs = split_buckets_and_runs(tiers(splits.files)[0], splits.definition)
    assert (len(bucketed), len(runs)) == (1, 1)


def test_health_knows_which_share_of_a_base_of_unknown_size_is_superseded(with_runs: Table) -> None:
    health = with_runs.health()
    assert (health.superseded, "superseded" in health.advice) == (1, False)


@pytest.mark.parametrize("strength", ["minor", "resolve"])
def test_a_compaction_leaves_a_large_base_of_unknown_size(with_runs: Table, strength: str) -> None:
    before = {f.path for f in tiers(with_runs.splits().files)[0]}
    with_runs.compact(strength)
    base, log = tiers(with_runs.splits().files)
    assert before <= {f.path for f in base}
    assert (len(base) - len(before), len(log)) == ((0, 1) if strength == "minor" else (1, 0))


@BUCKET_ROWS.set_to(1)
def test_rows_of_unknown_number_are_spread_over_buckets(keyed: Table) -> None:
    keyed.compact(full=True)
    assert {f.bucket.count for f in keyed.splits().files if f.bucket} == {8}


def _plan(table: Table) -> ReadPlan:
    return plan_read(table.splits(), "id IN (1, 9)", looks_keys_up=True)


def test_a_base_of_unknown_size_may_be_large(keyed: Table) -> None:
    with LEAST_ROWS.set_to(3):
        assert _plan(keyed).strategy is ReadStrategy.KEYS
        with MOST_LOOKED_AT.set_to(2):
            assert _plan(keyed).strategy is not ReadStrategy.KEYS
    with LEAST_ROWS.set_to(4):
        assert _plan(keyed).strategy is not ReadStrategy.KEYS
