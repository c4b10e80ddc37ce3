"""``health().read_cost``: the figure agrees with the plan of a read."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property

import pyarrow as pa
import pytest

from tests.support.counting import counted
from trinity.engine.compacting.health import health_of
from trinity.engine.reading.explain import in_words
from trinity.engine.reading.hidden_rows import forget
from trinity.engine.reading.plan import ReadStrategy, plan_read
from trinity.merge.spec import _Parser
from trinity.spi import Bucket, Column, DataFile, Origin, SplitSource, TableDefinition, Tier
from trinity.storage import PositionDeletes

pytestmark = pytest.mark.inner

BASE = 100_000
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def version(
    base: int, log: int, commits: int = 1, *, deleted: int = 0, origin: Origin = Origin.OWN, engine: str = "deduplicate"
) -> SplitSource:
    """Return a version with this many rows in each tier; each file of the log is one commit."""
    columns = (Column("k", "bigint", nullable=False), Column("v", "bigint"))
    definition = TableDefinition("default", "t", columns, ("k",), properties={"merge-engine": engine})
    deletes = PositionDeletes(deleted, ("/t/deletes",)) if deleted else None
    bucket = Bucket(0, 1, "bigint")
    files = [DataFile("/t/base", 1, base, Tier.BASE, 1, bucket, deletes=deletes)] if base else []
    files += [
        DataFile(f"/t/{n}", 1, log // commits, Tier.LOG, 2 + n, origin=origin) for n in range(commits if log else 0)
    ]
    return SplitSource(9, 0, definition, SCHEMA, tuple(files), ())


@pytest.mark.parametrize(
    ("splits", "strategy", "least", "most"),
    [
        (version(BASE, 0), ReadStrategy.SCAN, 1.0, 1.0),
        (version(BASE, 0, deleted=9), ReadStrategy.SCAN, 1.3, 1.5),
        (version(BASE, BASE // 100), ReadStrategy.SEARCH, 1.3, 1.7),
        (version(BASE, BASE // 10), ReadStrategy.SEARCH, 1.5, 2.1),
        (version(BASE, BASE // 10, 100), ReadStrategy.SEARCH, 1.8, 2.7),
        (version(9_999, 999), ReadStrategy.BUCKETS, 2.3, 3.4),
        (version(BASE, BASE // 10, 257), ReadStrategy.BUCKETS, 3.4, 5.0),
        (version(BASE, BASE // 10, origin=Origin.ADDED), ReadStrategy.SEARCH, 1.5, 2.1),
        (version(0, BASE), ReadStrategy.LOG, 5.0, 5.0),
        (version(BASE, BASE // 10, engine="partial-update"), ReadStrategy.BY_COLUMN, 5.0, 5.0),
    ],
)
def test_the_figure_goes_with_the_plan(splits: SplitSource, strategy: ReadStrategy, least: float, most: float) -> None:
    forget()
    assert plan_read(splits).strategy is strategy
    assert least <= health_of(splits).read_cost <= most


def test_a_plain_table_is_read_by_a_scan() -> None:
    definition = TableDefinition("default", "t", (Column("k", "bigint"),))
    splits = SplitSource(1, 0, definition, SCHEMA, (DataFile("/t/1", 1, 5, Tier.LOG, 1),), ())
    assert health_of(splits).read_cost == 1.0


@pytest.mark.parametrize(
    ("splits", "where", "reason"),
    [
        (version(BASE, 0), None, None),
        (version(9, 9), None, None),
        (version(BASE, 0, engine="aggregation"), None, None),
        (version(BASE, 9, engine="aggregation"), None, None),
        (version(BASE, 9, origin=Origin.ADDED), None, None),
        (version(BASE, 4_000_001), None, "its log has more than 4,000,000 rows (compact('full') folds them)"),
        (version(BASE, BASE, 257), None, None),
        (version(BASE, 9), "k = 1", None),
        (version(BASE, 9), "hash(k) = 1", "only Spark evaluates 'HASH(k)'"),
    ],
)
def test_the_plan_tells_who_executes_it(splits: SplitSource, where: str | None, reason: str | None) -> None:
    forget()
    plan = plan_read(splits, where)
    assert (plan.not_local.reason if plan.not_local else None) == reason
    [line] = [line for line in in_words(plan).splitlines() if line.startswith("executor: ")]
    assert line.endswith(f"to_arrow() too: {reason}" if reason else "to_arrow() reads in this process, without it")


def test_the_options_of_a_version_are_parsed_once() -> None:
    with counted(_Parser, "parse", by=lambda parser: parser.definition.name) as parsed:
        splits = version(BASE, 9)
        assert plan_read(splits).spec is plan_read(splits).spec
        health_of(splits)
    assert parsed == {"t": 1}


def test_a_plan_leaves_nothing_in_its_version() -> None:
    """A version goes to Spark's tasks: it holds its fields, and what its own class keeps of them."""
    splits = version(BASE, 9)
    plan_read(splits)
    for value in (splits, splits.definition):
        kept = {name for name, member in vars(type(value)).items() if isinstance(member, cached_property)}
        assert vars(value).keys() <= {field.name for field in fields(value)} | kept
