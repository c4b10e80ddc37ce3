"""Keys and watermarks of types with few values, or with values that are not readable."""

from __future__ import annotations

import datetime as dt
import math
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from trinity import Column, Session, Table

VALUES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "binary": [b"", b"a", b"a\0", b"\x80", b"\xff" * 5],
    "float": [-math.inf, -0.1, 0.0, math.inf, math.nan],
    "double": [-math.inf, -0.1, 0.0, math.inf, math.nan],
    "time": [dt.time(), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999)],
}
ARROW = {
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "float": pa.float32(),
    "double": pa.float64(),
    "time": pa.time64("us"),
}


def _rows(kind: str, rows: list[tuple[Any, int, Any, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    types = {"k": ARROW[kind], "j": pa.int32(), "seen": ARROW[kind], "v": pa.int64()}
    return pa.table({name: pa.array(columns[place], of) for place, (name, of) in enumerate(types.items())})


def _plain(value: Any) -> Any:
    """Return a value that is equal for equal keys."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else round(value, 3) + 0.0
    return value


def _shown(table: Table) -> dict[tuple[Any, int], tuple[Any, int]]:
    rows = table.to_arrow().to_pylist()
    found = {(_plain(row["k"]), row["j"]): (_plain(row["seen"]), row["v"]) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("kind", VALUES)
def test_rows_fold_change_and_are_compacted(local: Session, local_fmt: str, kind: str) -> None:
    columns = [Column("k", kind), Column("j", "int"), Column("seen", kind), Column("v", "bigint")]
    table = local.create_table(
        f"{local_fmt}.default.t", columns, primary_key=["k", "j"], properties={"watermark-key": "seen"}
    )
    values, places = VALUES[kind], range(len(VALUES[kind]))
    drawn = list(enumerate(product(places, [-1, *places], [-1, *places])))
    seen = [*values, None]
    table.upsert(_rows(kind, [(values[k], number, seen[first], 1) for number, (k, first, _) in drawn]))
    later = [
        (-values[k] if repr(values[k]) == "0.0" else values[k], number, seen[then], 2) for number, (k, _, then) in drawn
    ]
    table.upsert(_rows(kind, later))
    expected = {}
    for number, (k, first, then) in drawn:
        last = max(first, then)
        expected[_plain(values[k]), number] = (_plain(seen[last]), 2 if last == then else 1)
    assert _shown(table) == expected
    before = table.splits().version
    table.compact("full")
    assert _shown(table) == expected
    gone = [key for key in expected if key[0] == _plain(values[-1])][:3]
    table.delete(_rows(kind, [(values[-1], j, None, 0) for _, j in gone]).select(["k", "j"]))
    table.update("v = 2 AND j < 4", {"v": "v + 10"})
    left = {key: value for key, value in expected.items() if key not in gone}
    left = {key: (seen, v + 10 if v == 2 and key[1] < 4 else v) for key, (seen, v) in left.items()}
    assert _shown(table) == left
    kinds = table.changes(before).to_arrow().column("_change_type").to_pylist()
    assert kinds.count("delete") == len(gone)
