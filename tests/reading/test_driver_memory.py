"""The data that row changes send to the driver does not grow with the table: no table data is collected there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from trinity import Session

KEYED = "PRIMARY KEY (k)) TBLPROPERTIES ('watermark-key' = 'w')"
MERGE = """MERGE INTO {t} t USING s ON t.k = s.k WHEN MATCHED AND s.k % 2 = 0 THEN DELETE
           WHEN MATCHED THEN UPDATE SET v = concat(t.v, '!') WHEN NOT MATCHED THEN INSERT *"""
UPSERT = "MERGE INTO {t} t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
UPDATE = "UPDATE {t} SET v = 'new' WHERE k IN (SELECT k FROM s)"
FULL = pytest.mark.full
CASES = [
    pytest.param(")", MERGE, id="plain MERGE"),
    pytest.param(")", UPDATE, id="plain UPDATE", marks=FULL),
    pytest.param(f", {KEYED}", MERGE, id="keyed MERGE"),
    pytest.param(f", {KEYED}", UPSERT, id="keyed upsert", marks=FULL),
    pytest.param(f", {KEYED}", UPDATE, id="keyed UPDATE", marks=FULL),
    pytest.param(f", {KEYED}", None, id="compaction", marks=FULL),
]
"""(end of the table's definition, statement); the statement None is a full compaction."""


def sent_to_driver(session: Session, work: Callable[[], object]) -> int:
    """Return the bytes of all task results that reach the driver, Spark's own accumulators included."""
    context: Any = session.spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    before = {stage.stageId() for stage in stages(context)}
    work()
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return sum(stage.resultSize() for stage in stages(context) if stage.stageId() not in before)


def stages(context: Any) -> list[Any]:
    """Return the stages that Spark still lists."""
    gateway, store = context._gateway, context._jsc.sc().statusStore()
    found = store.stageList(None, False, False, gateway.new_array(gateway.jvm.double, 0), None)
    return [found.apply(n) for n in range(found.size())]


@pytest.mark.full
@pytest.mark.parametrize(("end", "statement"), CASES)
def test_what_the_driver_is_sent_does_not_grow_with_the_table(
    session: Session, tiered_fmt: str, end: str, statement: str | None
) -> None:
    session.sql("SELECT id * 20 AS k, 1 AS w, 'changed' AS v FROM range(100)").createOrReplaceTempView("s")
    sent = {}
    for rows in (2_000, 200_000):
        name = f"{tiered_fmt}.default.t{rows}"
        session.sql(f"CREATE TABLE {name} (k BIGINT, w INT, v STRING{end}")
        session.sql(f"INSERT INTO {name} SELECT id, 0, concat('a text of row ', id) FROM range(0, {rows}, 1, 2)")
        sent[rows] = sent_to_driver(session, partial(run, session, name, statement))
    assert sent[200_000] < 2 * sent[2_000], sent


def run(session: Session, table: str, statement: str | None) -> None:
    if statement is None:
        session.table(table).compact(full=True)
    else:
        session.sql(statement.format(t=table))
