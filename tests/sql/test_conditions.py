"""Facts that a condition implies about the target's rows: none that Spark's meaning does not imply (L7, L9)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from trinity import Column
from trinity.predicates.conditions import Names, condition_facts
from trinity.spi import TableDefinition
from trinity.syntax.parse import expression_tree

pytestmark = pytest.mark.inner

TABLE = TableDefinition(
    "default",
    "t",
    (
        Column("id", "int"),
        Column("s", "string"),
        Column("d", "decimal(8,2)"),
        Column("day", "date"),
        Column("wide", "decimal(38,38)"),
        Column("at", "timestamp_ntz"),
        Column("open", "boolean"),
    ),
)
NAMES = Names("t", "u", ("id", "w"))


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("t.id BETWEEN 2 AND 5 AND t.id < 4", {"id": (2, 4)}),
        ("7 >= t.id", {"id": (None, 7)}),
        ("t.id <=> -(5)", {"id": (-5, -5)}),
        ("open AND t.id > 1", {"open": (True, True), "id": (1, None)}),
        ("NOT open", {}),
        ("t.id IN (3, -1, 2)", {"id": (-1, 3)}),
        ("s = 'a' AND d > 1.5", {"s": ("a", "a"), "d": (Decimal("1.5"), None)}),
        ("day = DATE '2024-02-29'", {"day": (dt.date(2024, 2, 29), dt.date(2024, 2, 29))}),
        ("s = 5", {}),  # compared as numbers: '05' matches, too
        ("s = CAST('5' AS INT)", {}),
        ("d = '1.5'", {}),
        ("id = CAST(3000000000 AS INT)", {}),  # an error, or another number
        ("wide = 7", {}),  # its 38 digits are rounded for the comparison
        ("at > TIMESTAMP '2024-03-10 03:30:00'", {}),  # converted to the same time as 02:30, which is skipped
        ("id = 5", {}),  # ambiguous: target or source
        ("u.id = 5", {}),
        ("t.id = 1 OR t.id = 2", {}),
        ("NOT t.id = 1", {}),
    ],
)
def test_bounds(condition: str, bounds: dict[str, Any]) -> None:
    assert condition_facts(expression_tree(condition), TABLE, NAMES).bounds == bounds


def test_equalities() -> None:
    facts = condition_facts(expression_tree("t.id = u.id AND s = upper(w)"), TABLE, NAMES)
    assert {name: value.sql() for name, value in facts.equalities.items()} == {"id": "u.id", "s": "UPPER(w)"}
    assert facts.only_equalities
    assert not condition_facts(expression_tree("t.id = u.id AND u.w > 3"), TABLE, NAMES).only_equalities
