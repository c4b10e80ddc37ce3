"""The adapter's knowledge of the order of rows that another engine may have rewritten (L3); no JVM."""

from __future__ import annotations

from typing import Any

from trinity.spi import Column, Origin, RowOrder, TableDefinition
from trinity_delta.actions import TAG_TIER
from trinity_delta.state import order_actions, order_after, order_since, origin_of

OWN = {"dataChange": True, "tags": {TAG_TIER: "log"}}
OTHERS = {"dataChange": True}
TABLE = TableDefinition("s", "t", (Column("k", "int"),), ("k",)).with_stamps()


def after(order: RowOrder, added: dict[str, Any], **info: Any) -> RowOrder:
    return order_after(order, {"add": [added], "commitInfo": [info]}, TABLE, 7)


def test_who_made_a_file() -> None:
    assert origin_of(OWN, alone=False) is Origin.OWN
    assert origin_of(OTHERS, alone=True) is Origin.ADDED
    assert origin_of(OTHERS, alone=False) is Origin.REWRITTEN


def test_rows_of_others_are_noticed_and_copies_are_not() -> None:
    known = RowOrder(through=6)
    assert after(known, OTHERS, operation="WRITE").strangers == 7
    assert after(known, OTHERS, operation="MERGE", operationMetrics={"numTargetRowsInserted": "2"}).strangers == 7
    assert after(known, OTHERS, operation="MERGE", operationMetrics={"numTargetRowsInserted": "0"}) == known
    assert after(known, OTHERS, operation="UPDATE") == known
    assert after(known, {"dataChange": False}, operation="OPTIMIZE") == known
    assert after(known, OWN, operation="WRITE") == known
    assert order_after(known, {"add": [OTHERS]}, TABLE.with_columns(TABLE.visible), 7) == known


def test_what_a_commit_remembers() -> None:
    (action,) = order_actions(TABLE, RowOrder({11: 3}, 2), 7)
    assert order_actions(TABLE.with_columns(TABLE.visible), RowOrder({11: 3}, 2), 7) == []
    assert after(RowOrder(), OWN) == RowOrder()
    found = {kind: [body] for kind, body in action.items()}
    assert order_after(RowOrder(), found, TABLE, 7) == RowOrder({11: 3}, 2, 7)
    assert RowOrder({11: 3, 12: 9}, 2, 7).folded(5) == RowOrder({12: 9}, 0, 7)


def test_after_a_checkpoint_the_commits_since_are_asked() -> None:
    known = RowOrder(through=6)
    assert order_since(known, TABLE, 8, [(7, [{"add": OWN}]), (8, [{"add": {"dataChange": False}}])]) == known
    assert order_since(known, TABLE, 8, [(7, [{"add": OTHERS}]), (8, [])]).strangers == 7
    assert order_since(known, TABLE, 8, [(7, None), (8, [])]).strangers == 8
