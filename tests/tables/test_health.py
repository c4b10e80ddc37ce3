"""The properties of a table's files, and how maintenance changes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from trinity import Column, Session, Table, TrinityError
from trinity.cli.main import app
from trinity.engine.compacting import health
from trinity.merge.properties import compaction_trigger

pytestmark = pytest.mark.inner


@pytest.fixture
def numbers(session: Session, fmt: str) -> Table:
    columns = [Column("k", "bigint"), Column("ts", "bigint"), Column("gone", "boolean")]
    options = {"watermark-key": "ts", "tombstone-key": "gone"}
    return session.create_table(f"{fmt}.default.numbers", columns, primary_key=["k"], properties=options)


def fill(table: Table, start: int, stop: int, ts: int = 1, gone: bool = False) -> None:
    k = range(start, stop)
    table.upsert(pa.table({"k": k, "ts": [ts] * len(k), "gone": [gone] * len(k)}))


@pytest.mark.tiered
def test_health_counts_tiers_and_says_what_helps(numbers: Table) -> None:
    empty = numbers.health()
    assert (empty.log_share, empty.read_cost, empty.strength) == (0, 1, None)
    fill(numbers, 0, 100)
    fill(numbers, 90, 100, ts=2, gone=True)
    before = numbers.health()
    assert (before.log.files, before.log.rows, before.commits) == (2, 110, 2)
    assert (before.base.files, before.log_share, before.strength) == (0, float("inf"), "full")
    assert before.log.bytes == sum(f.size for f in numbers.splits().files)
    numbers.compact(full=True)
    compacted = numbers.health()
    assert (compacted.base.rows, compacted.sidecar.rows, compacted.log.rows) == (90, 10, 0)
    assert (compacted.read_cost, compacted.strength, compacted.version) == (1, None, numbers.splits().version)
    fill(numbers, 0, 5, ts=2)
    assert numbers.health().strength is None
    assert numbers.health().log_share == 5 / 90
    fill(numbers, 5, 10, ts=2)
    assert numbers.health().strength == "full"
    assert numbers.health().read_cost > before.read_cost / 5


@pytest.mark.tiered
def test_many_small_commits_ask_for_a_minor_compaction(numbers: Table) -> None:
    fill(numbers, 0, 1000)
    numbers.compact(full=True)
    for n in range(20):
        fill(numbers, n, n + 1, ts=2)
    assert (numbers.health().commits, numbers.health().strength) == (20, "minor")


@pytest.mark.full
@pytest.mark.tiered
def test_a_table_is_resolved_that_says_so_until_much_of_its_base_is_superseded(
    session: Session, numbers: Table
) -> None:
    fill(numbers, 0, 1000)
    numbers.compact(full=True)
    numbers.set_properties({"compaction.trigger.log-share": "1e9", "compaction.trigger.strength": "resolve"})
    done = []
    for ts in range(2, 8):
        fill(numbers, 0, 100 * (ts - 1), ts)
        # set earlier, this limit would have made the writer compact in the background
        numbers.set_properties({"compaction.trigger.log-share": "0.05"})
        [kept] = session.maintain(str(numbers.name).rpartition(".")[0])
        assert kept.error is None
        done.append((kept.strength, numbers.health().superseded))
        numbers.set_properties({"compaction.trigger.log-share": "1e9"})
    assert done == [*(("resolve", 100 * n) for n in range(1, 6)), ("full", 0)]
    assert numbers.to_df().where("ts = 7").count() == 600


@pytest.mark.parametrize(
    ("options", "share", "commits", "wanted"),
    [
        ({}, 0.2, 1, ("full", "is 20% of the base")),
        ({}, 0.01, 20, ("minor", "has 20 commits")),
        ({}, 0.01, 19, None),
        ({"commits": "50"}, 5.0, 2, ("full", "is 500% of the base")),
        ({"log-share": "0.5"}, 0.2, 598, ("minor", "has 598 commits")),
        ({"log-share": "0.5"}, 0.2, 2, None),
        ({"log-share": "0.5", "strength": "resolve"}, 0.6, 2, ("resolve", "is 60% of the base")),
        ({"log-share": "0.5", "strength": "resolve"}, float("inf"), 2, ("resolve", "is all there is")),
        ({"commits": "5", "strength": "full"}, 0.01, 5, ("full", "has 5 commits")),
        ({"commits": "5", "strength": "minor"}, 0.2, 5, ("full", "is 20% of the base")),
    ],
)
def test_options_that_name_one_limit_leave_the_others(
    options: dict[str, str], share: float, commits: int, wanted: tuple[str, str] | None
) -> None:
    given = {f"compaction.trigger.{k}": v for k, v in options.items()}
    assert health._due(compaction_trigger(given), share, commits) == wanted


@pytest.mark.parametrize("fmt", ["delta"])
def test_upkeep_compacts_fully_what_cannot_be_resolved(session: Session, numbers: Table) -> None:
    numbers.set_properties({"delta.enableDeletionVectors": "false"})
    fill(numbers, 0, 100)
    numbers.compact(full=True)
    numbers.set_properties({"compaction.trigger.log-share": "1e9", "compaction.trigger.strength": "resolve"})
    fill(numbers, 0, 50, ts=2)
    numbers.set_properties({"compaction.trigger.log-share": "0.1"})
    assert numbers.health().strength == "resolve"
    [kept] = session.maintain("delta.default")
    assert (kept.strength, kept.error, numbers.health().strength) == ("full", None, None)


@pytest.mark.tiered
def test_upkeep_does_what_health_asks_for(session: Session, numbers: Table, fmt: str) -> None:
    fill(numbers, 0, 100)
    plain = session.create_table(f"{fmt}.default.plain", [Column("k", "bigint")])
    for n in range(3):
        plain.append(pa.table({"k": [n]}))
    rested = session.create_table(f"{fmt}.default.rested", [Column("k", "bigint")])
    done = {kept.table: kept for kept in session.maintain(f"{fmt}.default", vacuum="0 seconds")}
    assert done[str(numbers.name)].strength == "full"
    assert done[str(plain.name)].strength == "minor"
    assert done[str(rested.name)].strength is None
    assert all(kept.error is None and kept.vacuumed is not None for kept in done.values())
    assert [len(table.splits().files) for table in (numbers, plain, rested)] == [1, 1, 0]
    assert numbers.to_df().count() == 100
    assert plain.to_df().count() == 3
    assert all(kept.strength is None for kept in session.maintain(f"{fmt}.default"))


@pytest.mark.tiered
def test_upkeep_goes_on_where_one_table_fails(session: Session, numbers: Table, fmt: str) -> None:
    fill(numbers, 0, 100)
    fill(session.create_table(f"{fmt}.default.other", numbers.definition.visible, primary_key=["k"]), 0, 9)
    Path(numbers.splits().files[0].path.removeprefix("file:")).unlink()
    done = {kept.table.rsplit(".", 1)[-1]: kept for kept in session.maintain(f"{fmt}.default")}
    assert done["numbers"].error is not None
    assert done["numbers"].error.code == "BAD_DATA"
    assert done["other"].compacted is not None


def test_upkeep_of_a_schema_that_is_not_there(session: Session) -> None:
    with pytest.raises(TrinityError, match="SCHEMA_NOT_FOUND"):
        session.maintain("parquet.nowhere")


@pytest.mark.parametrize("fmt", ["parquet"])
def test_the_commands(session: Session, numbers: Table, warehouse: Path) -> None:
    fill(numbers, 0, 100)
    done = CliRunner().invoke(app, ["health", str(numbers.name), "--warehouse", str(warehouse)])
    assert done.exit_code == 0
    assert "compact(full=True)" in done.output
    kept = CliRunner().invoke(app, ["maintain", "--warehouse", str(warehouse)])
    assert kept.exit_code == 0
    assert "full" in kept.output
    assert numbers.health().strength is None
